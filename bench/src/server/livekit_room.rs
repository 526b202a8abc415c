//! A room of the real LiveKit with a publisher whose tracks are muted: the offers to viewers have
//! its tracks, and no media follows.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use throng_sim::livekit::{KEY, LiveKit, PORT, SECRET};
use throng_sim::namespace::Namespace;

use super::{MEDIA, until};
use crate::generator::Target;
use crate::process::Running;

const ROOM: &str = "joins";
/// The publisher mutes both tracks then: LiveKit publishes a track once its first packet has come.
const SCRIPT: &str = r#"crowd.script=[{at="3s",mute="video"},{at="3s",mute="audio"}]"#;
/// From its start to the publisher's muted tracks.
const MUTED_WITHIN: Duration = Duration::from_secs(20);
/// From the end of viewers to a room without them.
const EMPTY_WITHIN: Duration = Duration::from_secs(20);

/// Server and publisher; both end on drop.
#[derive(Debug)]
pub(super) struct LiveKitRoom<'a> {
    // Ends before its server.
    _publisher: Running,
    server: LiveKit<'a>,
}

impl<'a> LiveKitRoom<'a> {
    /// Starts both, and waits until the publisher has muted its tracks. `folder` is its run folder.
    pub(super) fn start(namespace: &'a Namespace, throng: &Path, folder: &Path) -> Result<Self> {
        let server = LiveKit::start(namespace, MEDIA)?;
        let mut command = namespace.command(&throng.to_string_lossy());
        command
            .args(["view", &url(), "-n", "1", "--for", "1h", "--quiet", "-o"])
            .arg(folder)
            .args(access());
        command.args(["--set", "crowd.subscribe=none", "--set", SCRIPT]);
        let publisher = Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        let room = Self { _publisher: publisher, server };
        until(MUTED_WITHIN, "the publisher's muted tracks", || {
            Ok(room.server.participants(ROOM).is_ok_and(|people| people.iter().any(is_muted)))
        })?;
        Ok(room)
    }

    pub(super) fn target() -> Target {
        let set = ["--set".to_owned(), "crowd.publish=none".to_owned()];
        Target {
            throng: access().into_iter().chain(set).collect(),
            pion: ["-livekit-key", KEY, "-livekit-secret", SECRET].map(str::to_owned).to_vec(),
            ..Target::new(url())
        }
    }

    /// Removes all but the publisher: LiveKit keeps participants that were killed for a while, and
    /// tells newcomers of them.
    pub(super) fn clear(&self) -> Result<()> {
        until(EMPTY_WITHIN, "a room without viewers", || {
            let people = self.server.participants(ROOM)?;
            let viewers = people.iter().filter(|person| tracks(person).is_empty());
            let identities: Vec<&str> =
                viewers.filter_map(|person| person["identity"].as_str()).collect();
            for identity in &identities {
                // It may have left since it was listed.
                let _ = self
                    .server
                    .ask("RemoveParticipant", &json!({ "room": ROOM, "identity": identity }));
            }
            Ok(identities.is_empty())
        })
    }
}

fn url() -> String {
    format!("livekit+ws://127.0.0.1:{PORT}/{ROOM}")
}

/// throng's credentials.
fn access() -> [String; 4] {
    let set = |name: &str, value: &str| ["--set".to_owned(), format!("target.{name}={value}")];
    let ([set_key, key], [set_secret, secret]) = (set("api_key", KEY), set("api_secret", SECRET));
    [set_key, key, set_secret, secret]
}

fn tracks(person: &Value) -> &[Value] {
    person["tracks"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether it publishes audio and video, both muted.
fn is_muted(person: &Value) -> bool {
    let tracks = tracks(person);
    tracks.len() == 2 && tracks.iter().all(|track| track["muted"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_is_muted_when_both_tracks_are() {
        let person = |tracks: Value| json!({ "identity": "throng-0", "tracks": tracks });
        assert!(is_muted(&person(json!([{ "muted": true }, { "muted": true }]))));
        // A track that is not muted has no such field.
        assert!(!is_muted(&person(json!([{ "muted": true }, {}]))));
        assert!(!is_muted(&person(json!([{ "muted": true }]))));
        assert!(!is_muted(&json!({ "identity": "pion-0" })));
    }
}
