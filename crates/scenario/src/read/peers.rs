//! `p2p` of a player: how viewers get segments from each other.

use crate::keys::{self, By, Keyed as _, Table};
use crate::peers::PeerConfig;

const EXAMPLE: &str =
    "a table such as { preset = \"home\", tracker = \"wss://HOST/tracker/socket\" }";

/// The table, in which the preset is read before the other keys.
pub(crate) const PEERS: By<PeerConfig> = By {
    read: |reader, player, key| {
        let path = player.path_of(key);
        let mut fields = reader.table(player.get(key)?, &path, EXAMPLE)?;
        let preset = reader.named(&mut fields, "preset").unwrap_or_default();
        Some(keys::read(reader, &mut fields, PeerConfig::preset(preset)))
    },
    write: |peers| Some(peers.write_keys().into_iter().collect()),
    schema: |generator| generator.subschema_for::<Table<PeerConfig>>().to_value(),
};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::peers::PeerEngine;
    use crate::read::read_cohort;
    use crate::scenario::Scenario;

    fn read(url: &str, p2p: &str) -> Result<Scenario, String> {
        read_cohort(url, &format!("player = {{ p2p = {{ {p2p} }} }}"))
    }

    #[test]
    fn peers_are_read_and_written() {
        let scenario = read(
            "http://127.0.0.1/a.m3u8",
            r#"preset = "home", engine = "0.6", tracker = "ws://127.0.0.1:9/tracker/socket", upload_bps = 2000000, data_channels = 0.25, from = "10m", seed = 7"#,
        );
        let role = scenario.unwrap().crowd[0].role.clone().unwrap();
        let peers = role.player.peers.unwrap();
        assert_eq!(
            (peers.engine, peers.upload_bps, peers.sharers_milli),
            (PeerEngine::V06, Some(2_000_000), 500)
        );
        let with_channels = (0..1_000).filter(|number| peers.has_channels(*number)).count();
        assert!((200..300).contains(&with_channels), "{with_channels}");
        assert_eq!(
            (peers.is_on(Duration::from_secs(599)), peers.is_on(Duration::from_secs(600))),
            (false, true)
        );
    }

    #[test]
    fn a_stored_tracker_and_hashes_keep_no_secret_and_cannot_be_run() {
        let text = |tracker: &str, hashes: &str| {
            format!(
                "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 3\n\
                 player = {{ p2p = {{ tracker = \"{tracker}\", hashes = \"{hashes}\" }} }}\n"
            )
        };
        let (tracker, hashes) = ("wss://h/t?passkey=hunter2&n=1", "https://h/s.json?sig=hunter2");
        let stored = Scenario::parse(&text(tracker, hashes)).unwrap().to_toml();
        for shown in ["\"wss://h/t?passkey=…&n=1\"", "\"https://h/s.json?sig=…\""] {
            assert!(stored.contains(shown) && !stored.contains("hunter2"), "{stored}");
        }
        assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
        let error = Scenario::parse(&stored).unwrap_err().to_string();
        for key in ["tracker", "hashes"] {
            let said = format!("p2p.{key}` was redacted when this scenario was stored");
            assert!(error.contains(&said), "{error}");
        }
        // As an earlier version took it.
        let old = text("wss://me:hunter2@h/t", "https://hunter2@h/s.json");
        let stored = Scenario::parse_stored(&old).unwrap().to_toml();
        assert!(stored.contains("wss://…@h/t") && !stored.contains("hunter2"), "{stored}");
        assert_eq!(Scenario::parse_stored(&stored).unwrap().to_toml(), stored);
    }

    #[test]
    fn what_has_no_sense_is_an_error() {
        let hls = "http://127.0.0.1/a.m3u8";
        for (url, p2p, expect) in [
            (hls, r#"preset = "moon""#, "not one of"),
            (hls, r#"engine = "3""#, "not one of"),
            (
                hls,
                r#"tracker = "http://127.0.0.1/""#,
                "`crowd.player.p2p.tracker` is not a URL of ws: or wss",
            ),
            (hls, r#"engine = "4.0""#, "names its swarms by the video, and there is no swarm"),
            (hls, r#"tracker = "wss://me:pw@h/t""#, "tracker` has a user name or password"),
            (hls, r#"hashes = "http://me@h/t""#, "hashes` has a user name or password"),
            (hls, "sharers = 2", "not a share from 0 to 1"),
            (
                hls,
                "data_channels = 0.5",
                "`player.p2p.data_channels` has no effect without tracker",
            ),
            (hls, r#"from = "2m", until = "1m""#, "is not after from"),
            (hls, "loud = true", "loud"),
            ("rtsp://127.0.0.1/a", "", "p2p"),
        ] {
            let error = read(url, p2p).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
