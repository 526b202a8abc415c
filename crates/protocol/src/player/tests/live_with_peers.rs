//! Viewers of a live stream in fragmented MP4 who get segments from peers.

use throng_scenario::{PeerConfig, PeerPreset};

use super::fragmented::{init, seconds};
use super::live::{fixture, lowest, whole};
use super::*;

/// What the program was on for at the start, seconds.
const ON_AIR_S: u32 = 100;
const SEGMENT_S: u32 = 4;
/// Segments in a playlist.
const LISTED: u32 = 15;

/// A server whose playlist has the initialisation segment at another place each time that it has
/// another segment, as where a balancer leads to one server after the other.
fn answer(path: &str) -> Reply {
    let complete = (ON_AIR_S + clock().as_secs() as u32) / SEGMENT_S;
    let number = path.strip_prefix("/low-").and_then(|rest| rest.strip_suffix(".m4s"));
    let number: Option<u32> = number.and_then(|number| number.parse().ok());
    whole(match (path, number) {
        ("/master.m3u8", _) => b"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n".to_vec(),
        ("/low.m3u8", _) => {
            let first = complete - LISTED;
            let segments: String = (first..complete)
                .map(|number| format!("#EXTINF:{SEGMENT_S}.0,\nlow-{number}.m4s\n"))
                .collect();
            format!(
                "#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n#EXT-X-MEDIA-SEQUENCE:{first}\n\
                 #EXT-X-MAP:URI=\"init-{complete}.mp4\"\n{segments}"
            )
            .into_bytes()
        }
        (_, Some(number)) => seconds(number * SEGMENT_S..(number + 1) * SEGMENT_S),
        (path, None) if path.starts_with("/init-") => init((320, 180)),
        (_, None) => return Reply::of(404, &[]),
    })
}

#[test]
fn what_is_waited_for_comes_though_its_initialisation_segment_has_moved() {
    let peers = Some(PeerConfig::preset(PeerPreset::Lan));
    let player = PlayerConfig { peers, ..lowest() };
    let mut fixture = fixture(player, 4_000_000, Box::new(|path, _| Some(answer(path))));
    fixture.seconds(40);
    let numbered = |begin: &str| -> Vec<u32> {
        let rest = fixture.requests.iter().filter_map(|request| request.strip_prefix(begin));
        rest.map(|rest| rest.split('.').next().unwrap().parse().unwrap()).collect()
    };
    let (inits, segments) = (numbered("/init-"), numbered("/low-"));
    assert!(inits.len() > 3, "it has moved: {:?}", fixture.requests);
    // A segment is asked for 4 s before it is played, and playback is 12 s behind the end.
    assert!(segments.windows(2).all(|pair| pair[1] == pair[0] + 1), "{segments:?}");
    assert!(segments.last().is_some_and(|last| *last >= 31), "{segments:?}");
    assert_eq!(fixture.totals().stall_count, 0, "{:?}", fixture.anomalies());
}
