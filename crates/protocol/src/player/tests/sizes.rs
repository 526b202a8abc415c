//! How large the pictures of a player are, and when that changes.

use std::collections::BTreeMap;

use super::fragmented::{init, seconds};
use super::movie::SIZE;
use super::segmented::{serve, transport_stream};
use super::*;

const LARGE: (u16, u16) = (1_280, 720);

/// Changes of size: when each was seen, and the sizes.
type Changes = Vec<(Duration, (u16, u16), (u16, u16))>;

fn changes(fixture: &Fixture) -> Changes {
    let changes = fixture.observed.iter().filter_map(|(seen, observation)| match observation {
        Observation::SizeChanged { from, to, .. } => Some((*seen, *from, *to)),
        _ => None,
    });
    changes.collect()
}

/// The shorter side of what is shown, in each second.
fn lines(fixture: &Fixture) -> Vec<u16> {
    fixture.track_intervals(0).filter_map(|interval| interval.picture_lines).collect()
}

/// A media playlist of `count` segments of two seconds, each behind the lines that `before` has.
fn playlist(count: u32, before: impl Fn(u32) -> String, name: impl Fn(u32) -> String) -> Vec<u8> {
    let listed = (0..count).map(|n| format!("{}#EXTINF:2,\n{}\n", before(n), name(n)));
    let listed: String = listed.collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{listed}#EXT-X-ENDLIST\n").into_bytes()
}

fn once() -> PlayerConfig {
    PlayerConfig { at_end: AtEnd::Leave, ..buffering(6) }
}

/// The pictures of `files` get larger after four seconds, and that is told once, then.
#[track_caller]
fn assert_grows(files: BTreeMap<String, Vec<u8>>, small: (u16, u16)) {
    let mut fixture = Fixture::at("http://10.0.0.1/a.m3u8", once(), 1_000_000, serve(files));
    fixture.seconds(12);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.anomalies());
    let told = changes(&fixture);
    let [(seen, from, to)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((*from, *to), (small, LARGE));
    assert!((4.0..5.5).contains(&seen.as_secs_f64()), "not when it is received: {seen:?}");
    let lines = lines(&fixture);
    assert_eq!((lines.first(), lines.last()), (Some(&small.1), Some(&720)), "{lines:?}");
}

#[test]
fn a_rendition_that_changes_its_size_is_told_when_it_is_played() {
    let map = |number: u32| match number {
        0 => "#EXT-X-MAP:URI=\"small.mp4\"\n".to_owned(),
        2 => "#EXT-X-MAP:URI=\"large.mp4\"\n".to_owned(),
        _ => String::new(),
    };
    let mut files = BTreeMap::from([
        ("/small.mp4".to_owned(), init(SIZE)),
        ("/large.mp4".to_owned(), init(LARGE)),
        ("/a.m3u8".to_owned(), playlist(4, map, |number| format!("{number}.m4s"))),
    ]);
    files.extend((0..4).map(|n| (format!("/{n}.m4s"), seconds(2 * n..2 * n + 2))));
    assert_grows(files, SIZE);
}

/// A segment whose first picture has this parameter set of H.264 in the place of its slice.
fn with_parameters(number: u64, set: &[u8]) -> Vec<u8> {
    let mut stream = transport_stream(2 * number..2 * number + 2, 1_800);
    let slice = stream.windows(6).position(|bytes| bytes == [0, 0, 0, 1, 0x65, 0x88]).unwrap();
    stream[slice + 4..slice + 4 + set.len()].copy_from_slice(set);
    stream
}

#[test]
fn the_pictures_of_a_transport_stream_say_how_large_they_are() {
    let small = [0x67, 0x42, 0xc0, 0x1f, 0xda, 0x02, 0x80, 0xbe, 0x40];
    let large = [0x67, 0x42, 0xc0, 0x1f, 0xda, 0x01, 0x40, 0x16, 0xe4];
    let mut files = BTreeMap::from([(
        "/a.m3u8".to_owned(),
        playlist(4, |_| String::new(), |number| format!("{number}.ts")),
    )]);
    let segment = |n: u64| {
        let set = if n < 2 { &small } else { &large };
        (format!("/{n}.ts"), with_parameters(n, set))
    };
    files.extend((0..4).map(segment));
    assert_grows(files, (640, 368));
}

#[test]
fn a_switch_of_rendition_is_no_change_of_the_source() {
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n\
                  #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
    let mut files = BTreeMap::from([("/master.m3u8".to_owned(), master.into())]);
    for (name, size) in [("low", SIZE), ("high", LARGE)] {
        let map = |number: u32| {
            if number == 0 { format!("#EXT-X-MAP:URI=\"{name}.mp4\"\n") } else { String::new() }
        };
        let text = playlist(20, map, |number| format!("{name}-{number}.m4s"));
        files.insert(format!("/{name}.m3u8"), text);
        files.insert(format!("/{name}.mp4"), init(size));
        files.extend((0..20).map(|n| (format!("/{name}-{n}.m4s"), seconds(2 * n..2 * n + 2))));
    }
    let url = "http://10.0.0.1/master.m3u8";
    let mut fixture = Fixture::at(url, buffering(6), 1_000_000, serve(files));
    fixture.seconds(20);
    assert_eq!(fixture.totals().switches, 1, "{:?}", fixture.requests);
    assert_eq!(changes(&fixture), Changes::new());
    assert_eq!(lines(&fixture).last(), Some(&720), "{:?}", lines(&fixture));
}

#[test]
fn a_file_says_how_large_its_pictures_are() {
    let movie = movie(10, true);
    let mut fixture = Fixture::of(once(), 10 * movie.bytes_per_s, &movie);
    fixture.seconds(5);
    let lines = lines(&fixture);
    assert!(lines.len() >= 4 && lines.iter().all(|shown| *shown == SIZE.1), "{lines:?}");
}
