//! Reads `p2p` of a player: how viewers get segments from each other.

use url::Url;

use super::fields::{Fields, Reader};
use crate::peers::{PeerConfig, PeerEngine, PeerPreset};
use crate::units;

const EXAMPLE: &str =
    "a table such as { preset = \"home\", tracker = \"wss://HOST/tracker/socket\" }";

/// Most of what a viewer can be said to upload, bits per second.
const UPLOAD_MAX: u64 = 100_000_000_000;
/// Most peers of one viewer.
const DEGREE_MAX: u64 = 10_000;

/// The peers of a player; `None` if its table has none.
pub(super) fn peers(reader: &mut Reader, player: &mut Fields<'_>) -> Option<PeerConfig> {
    let path = player.path_of("p2p");
    let node = player.get("p2p")?;
    let mut fields = reader.table(node, &path, EXAMPLE)?;
    let preset = reader.word(&mut fields, "preset", &PeerPreset::NAMES);
    let usual = PeerConfig::preset(
        preset.and_then(|name| PeerPreset::from_name(&name)).unwrap_or_default(),
    );
    let engine = reader.word(&mut fields, "engine", &PeerEngine::NAMES);
    let swarm_path = fields.path_of("swarm");
    let swarm = fields.get("swarm").and_then(|node| reader.text(node, &swarm_path, "a name"));
    let config = PeerConfig {
        engine: engine.and_then(|name| PeerEngine::from_name(&name)).unwrap_or_default(),
        tracker: url(reader, &mut fields, "tracker", &["ws", "wss"], "wss://HOST/tracker/socket"),
        swarm,
        hashes: url(
            reader,
            &mut fields,
            "hashes",
            &["http", "https"],
            "https://HOST/…/segments-sha256.json",
        ),
        upload_bps: reader.integer(&mut fields, "upload_bps", 1, UPLOAD_MAX).or(usual.upload_bps),
        sharers_milli: reader
            .share_milli(&mut fields, "sharers", "0.3")
            .unwrap_or(usual.sharers_milli),
        unreachable_milli: reader
            .share_milli(&mut fields, "unreachable", "0.3")
            .unwrap_or(usual.unreachable_milli),
        channels_milli: reader
            .share_milli(&mut fields, "data_channels", "0.05")
            .unwrap_or(usual.channels_milli),
        degree_max: reader.integer(&mut fields, "degree", 1, DEGREE_MAX),
        urgent: reader.quantity(&mut fields, "urgent", "4s", units::duration),
        from: reader.quantity(&mut fields, "from", "10m", units::duration).unwrap_or(usual.from),
        until: reader.quantity(&mut fields, "until", "20m", units::duration),
        seed: reader.integer(&mut fields, "seed", 0, super::crowd::SEED_MAX).unwrap_or(usual.seed),
    };
    if config.until.is_some_and(|until| until <= config.from) {
        let message =
            format!("`{}` is not after from: peers would never be used", fields.path_of("until"));
        reader.fail(fields.span_of("until"), message, "write a later until, or remove it");
    }
    if let (PeerEngine::V4, None, Some(span)) =
        (config.engine, &config.swarm, fields.span_of("engine"))
    {
        let message = format!(
            "`{}` names its swarms by the video, and there is no swarm",
            fields.path_of("engine")
        );
        reader.fail(
            span,
            message,
            "write swarm = \"UUID OF THE VIDEO\", or remove engine: a page of PeerTube says both",
        );
    }
    reader.finish(&fields);
    Some(config)
}

/// A URL of one of these schemes.
fn url(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
    schemes: &[&str],
    example: &str,
) -> Option<Url> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let text = reader.text(node, &path, example)?;
    let url =
        Url::parse(&text).ok().filter(|url| schemes.contains(&url.scheme()) && url.has_host());
    if url.is_none() {
        let message = format!("`{path}` is not a URL of {}", schemes.join(": or "));
        reader.fail(node.span, message, format!("write {key} = \"{example}\""));
    }
    url
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
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
