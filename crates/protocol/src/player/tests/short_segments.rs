//! Live playlists whose segments have what was made since the one before was fetched, as go2rtc's:
//! how long they last is not what the playlist says.

use super::live::{DATED, fixture as live, last_live, lowest, segments, times_of, whole};
use super::segmented::pictures;
use super::*;

/// Tables of a transport stream.
const TABLES_LEN: usize = 2 * 188;

/// A server of a picture each 40 ms, which has run for a second before anybody came.
#[derive(Default)]
struct Camera {
    /// Segments that were fetched, and the pictures in them.
    segments: u64,
    pictures: u64,
    /// The first segment has no tables, and one that is fetched before another picture is there
    /// has nothing but tables; else it has that picture.
    is_bare: bool,
}

impl Camera {
    fn playlist(&self) -> String {
        let first = self.segments;
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{first}\n\
             #EXTINF:0.500,\n{first}.ts\n#EXTINF:0.500,\n{}.ts\n",
            first + 1
        )
    }

    fn segment(&mut self) -> Vec<u8> {
        let made = 25 + clock().as_millis() as u64 / 40;
        // Who comes is given what is made from then on.
        let first = if self.segments == 0 { made.saturating_sub(1) } else { self.pictures };
        let least = if self.is_bare { first } else { first + 1 };
        let end = made.max(least);
        let mut bytes = pictures(first..end, 1_800);
        if self.is_bare && self.segments == 0 {
            bytes.drain(..TABLES_LEN);
        }
        (self.segments, self.pictures) = (self.segments + 1, end);
        bytes
    }

    fn watched(mut self, bytes_per_s: u64) -> Fixture {
        let answers: Answers = Box::new(move |path, _| {
            let is_playlist = path == "/live.m3u8";
            let body = if is_playlist { self.playlist().into_bytes() } else { self.segment() };
            Some(whole(body))
        });
        Fixture::at("http://10.0.0.1/live.m3u8", PlayerConfig::default(), bytes_per_s, answers)
    }
}

#[test]
fn segments_that_are_shorter_than_their_playlist_says_are_played_without_a_jump() {
    let mut fixture = Camera::default().watched(1_000_000);
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.missed, totals.requests_failed),
        (0, 0, 0, 0),
        "{totals:?} {:?}",
        fixture.anomalies()
    );
    assert!(totals.startup_us < 2_500_000, "{totals:?}");
    assert!(fixture.frames_played(0) > 675, "{} {totals:?}", fixture.frames_played(0));
    // The end of the stream is that of its media, and at most both segments behind it.
    let live = last_live(&fixture);
    assert!((500_000..2_700_000).contains(&live.to_edge_us), "{live:?}");
}

#[test]
fn a_segment_that_is_longer_than_its_playlist_says_ends_a_stall_where_playback_was() {
    let mut fixture = Camera::default().watched(1_000_000);
    fixture.seconds(10);
    fixture.bytes_per_s = 0;
    fixture.seconds(4);
    fixture.bytes_per_s = 1_000_000;
    fixture.seconds(10);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (1, 0), "{:?}", fixture.anomalies());
    let live = last_live(&fixture);
    assert!((500_000..8_000_000).contains(&live.to_edge_us), "{live:?}");
}

#[test]
fn segments_without_media_end_a_viewer_after_five_repeats() {
    let mut fixture = Camera { is_bare: true, ..Camera::default() }.watched(100_000_000);
    fixture.seconds(2);
    let failure = fixture.failure();
    assert!(failure.contains("no audio or video was found in its 376 bytes"), "{failure}");
    assert_eq!((times_of(&fixture, "/0.ts").len(), times_of(&fixture, "/1.ts").len()), (1, 5));
    let said = fixture.anomalies();
    assert!(said[0].contains("/0.ts: MPEG-TS: program map"), "{said:?}");
    assert_eq!(said.len(), 5, "{said:?}");
}

#[test]
fn one_segment_without_media_is_left_out() {
    let answers: Answers = Box::new(|path, _| {
        Some(if path == "/low-26.ts" { whole(pictures(0..0, 1_800)) } else { DATED.answer(path) })
    });
    let mut fixture = live(lowest(), 1_000_000, answers);
    fixture.seconds(40);
    assert_eq!(fixture.ended, None);
    let totals = fixture.totals();
    assert_eq!((totals.requests_failed, totals.missed), (1, 1), "{totals:?}");
    assert!((3_900_000..4_100_000).contains(&totals.skipped_us), "{totals:?}");
    assert_eq!(segments(&fixture).iter().filter(|number| **number == 26).count(), 1);
    assert!(fixture.anomalies()[0].contains("low-26.ts: no audio or video was found"));
}
