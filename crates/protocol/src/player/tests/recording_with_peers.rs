//! Viewers of a recording as PeerTube's: each rendition is one file of fragmented MP4, whose
//! segments are ranges of it.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use throng_scenario::{PeerConfig, PeerPreset, RenditionPolicy};

use super::fragmented::{init, seconds};
use super::live::whole;
use super::*;

/// Segments of each rendition, of 4 s.
const SEGMENTS: u32 = 15;
const SEGMENT_S: u32 = 4;

/// The files of a recording in two renditions, with the list of hashes.
fn site(is_named: fn(u32) -> bool) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut hashes) = (BTreeMap::new(), Vec::new());
    for name in ["low", "high"] {
        let mut file = init((320, 180));
        let mut playlist = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n#EXT-X-PLAYLIST-TYPE:VOD\n\
             #EXT-X-MAP:URI=\"{name}.mp4\",BYTERANGE=\"{}@0\"\n",
            file.len()
        );
        let mut ranges = Vec::new();
        for number in 0..SEGMENTS {
            let media = seconds(number * SEGMENT_S..(number + 1) * SEGMENT_S);
            let (first, count) = (file.len(), media.len());
            playlist +=
                &format!("#EXTINF:{SEGMENT_S}.0,\n#EXT-X-BYTERANGE:{count}@{first}\n{name}.mp4\n");
            if is_named(number) {
                ranges.push(format!("\"{first}-{}\":\"{}\"", first + count - 1, hash(&media)));
            }
            file.extend(media);
        }
        hashes.push(format!("\"{name}.mp4\":{{{}}}", ranges.join(",")));
        files.insert(format!("/{name}.mp4"), file);
        files.insert(format!("/{name}.m3u8"), (playlist + "#EXT-X-ENDLIST\n").into());
    }
    files.insert("/hashes.json".to_owned(), format!("{{{}}}", hashes.join(",")).into());
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
    files.insert("/master.m3u8".to_owned(), master.into());
    files
}

fn hash(bytes: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, bytes);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A viewer who begins `at`.
fn viewer(
    at: Instant,
    (number, rendition): (u32, RenditionPolicy),
    swarms: &Swarms,
    files: BTreeMap<String, Vec<u8>>,
) -> Fixture {
    let mut peers = PeerConfig::preset(PeerPreset::Lan);
    peers.hashes = Some(Url::parse("http://10.0.0.1/hashes.json").unwrap());
    peers.urgent = Some(Duration::from_secs(4));
    let once = PlayerConfig { at_end: AtEnd::Leave, rendition, ..buffering(8) };
    let player = PlayerConfig { peers: Some(peers), ..once };
    let config = config("http://10.0.0.1/master.m3u8", player);
    let clock = WallClock { at, ..config.clock };
    let config = Config { clock, number, swarms: swarms.clone(), ..config };
    let answers = move |path: &str, range| {
        Some(match (files.get(path), range) {
            (None, _) => Reply::of(404, &[]),
            (Some(body), None) => whole(body.clone()),
            (Some(body), range) => Reply::range(body, range),
        })
    };
    Fixture::watching(config, 4_000_000, Box::new(answers))
}

/// Moves the time of all of them.
fn together(viewers: &mut [Fixture], seconds: u32) {
    for _ in 0..seconds * 100 {
        viewers.iter_mut().for_each(|viewer| viewer.run(STEP));
    }
}

/// Where the ranges of this file begin that were requested, in order.
fn requested(fixture: &Fixture, file: &str) -> Vec<usize> {
    let of_file = fixture.requests.iter().filter_map(|request| request.strip_prefix(file));
    let begins = of_file.map(|first| first.trim().parse::<usize>().unwrap());
    // The initialisation segment is nobody's but the server's.
    begins.filter(|first| *first > 0).collect()
}

#[test]
fn viewers_of_a_recording_send_each_other_the_ranges_of_its_file() {
    let (swarms, files) = (Swarms::default(), site(|_| true));
    let lowest = RenditionPolicy::Lowest;
    let mut viewers = vec![viewer(Instant::now(), (1, lowest), &swarms, files.clone())];
    together(&mut viewers, 2);
    let now = viewers[0].now;
    viewers.push(viewer(now, (2, lowest), &swarms, files.clone()));
    // Other ranges of another file: another swarm.
    viewers.push(viewer(now, (3, RenditionPolicy::Highest), &swarms, files));
    together(&mut viewers, 75);
    let mut from_server = 0;
    for (at, viewer) in viewers.iter().enumerate() {
        assert_eq!(viewer.ended, Some(Outcome::Completed), "{at}: {:?}", viewer.anomalies());
        let totals = viewer.totals();
        assert_eq!((totals.stall_count, totals.requests_failed, totals.hash_reloads), (0, 0, 0));
        let played = viewer.frames_played(0);
        assert!((1_490..=1_500).contains(&played), "{at}: {played} of 60 s");
        let lists = viewer.requests.iter().filter(|request| request.starts_with("/hashes.json"));
        assert_eq!(lists.count(), 1, "{at}: {:?}", viewer.requests);
        let is_high = at == 2;
        let media = requested(viewer, if is_high { "/high.mp4" } else { "/low.mp4" });
        if is_high {
            assert_eq!((media.len() as u32, totals.peer_segments), (SEGMENTS, 0), "{media:?}");
        } else {
            assert!(totals.peer_segments > 0, "{at}: {media:?}");
            assert!(media.len() as u64 + totals.peer_segments >= u64::from(SEGMENTS), "{media:?}");
            from_server += media.len();
        }
    }
    // What each of them plays at once both ask for; of the rest a few, before they hear of it.
    assert!((15..=22).contains(&from_server), "{from_server} of two times 15");
}

#[test]
fn a_range_that_the_list_lacks_is_loaded_again_and_counted() {
    let files = site(|number| number != 1);
    let only = (1, RenditionPolicy::Lowest);
    let mut viewer = viewer(Instant::now(), only, &Swarms::default(), files);
    viewer.seconds(8);
    let media = requested(&viewer, "/low.mp4");
    let again = media.iter().filter(|first| **first == media[1]).count();
    let reloads = viewer.totals().hash_reloads;
    assert!(again >= 2 && reloads >= 1, "{reloads}: {media:?}");
    let is_named = |said: &&str| said.contains("/low.mp4 (bytes ");
    assert!(viewer.anomalies().iter().any(is_named), "{:?}", viewer.anomalies());
    let lists = viewer.requests.iter().filter(|request| request.starts_with("/hashes.json"));
    assert_eq!(lists.count(), 1, "it has the file: {:?}", viewer.requests);
}
