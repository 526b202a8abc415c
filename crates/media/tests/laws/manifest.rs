//! Manifests: what was read is in order, and segments are found by number and time.

use throng_media::manifest::dash::{Manifest, Representation};
use throng_media::manifest::hls::{MediaPlaylist, Playlist, Variables};

/// Segments looked at: a run of them may have billions.
const SEGMENTS: usize = 50;

/// HLS: numbers follow each other, ranges are inside a file, and errors name a line of the text.
pub(crate) fn hls(bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    match Playlist::parse(bytes) {
        Ok(Playlist::Media(playlist)) => media(&playlist),
        Ok(Playlist::Master(playlist)) => {
            assert!(!playlist.variants.is_empty());
            assert!(playlist.variants.iter().all(|variant| !variant.uri.is_empty()));
            let variables = Variables { imported: playlist.variables, ..Variables::default() };
            let _ = Playlist::parse_with(bytes, &variables);
        }
        Err(error) => assert!((1..=lines).contains(&(error.line as usize)), "{error}"),
    }
}

fn media(playlist: &MediaPlaylist) {
    let numbers = playlist.segments.windows(2);
    assert!(numbers.clone().all(|pair| pair[1].number == pair[0].number.saturating_add(1)));
    assert!(
        numbers.clone().all(|pair| pair[0].discontinuity_number <= pair[1].discontinuity_number)
    );
    let year_us = 366 * 86_400 * 1_000_000;
    assert!(
        playlist
            .segments
            .iter()
            .all(|segment| segment.duration_us <= year_us && !segment.uri.is_empty())
    );
    let ranges = playlist.segments.iter().filter_map(|segment| segment.byte_range);
    assert!(ranges.clone().all(|range| range.offset.checked_add(range.bytes).is_some()));
    let _ = playlist.duration_us();
    let whole = playlist.with_skipped(playlist);
    let skipped = playlist.skipped_segments.unwrap_or_default();
    if let Some(whole) = whole.filter(|_| skipped < SEGMENTS as u64) {
        assert_eq!(whole.segments.len() as u64, skipped + playlist.segments.len() as u64);
    }
}

/// DASH: segments are in order, and those found by number and time are the same.
pub(crate) fn dash(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else { return };
    for period in &manifest.periods {
        for representation in period.adaptation_sets.iter().flat_map(|set| &set.representations) {
            segments(representation);
            let now_us =
                manifest.availability_start_us.unwrap_or_default().saturating_add(10_000_000);
            for now_us in [i64::MIN, now_us, i64::MAX] {
                for segment in representation.available(&manifest, now_us).take(SEGMENTS) {
                    assert_eq!(representation.segment(segment.number).as_ref(), Some(&segment));
                }
                let first = representation.available(&manifest, now_us).next();
                let span = representation.available_span(&manifest, now_us);
                assert!(span.is_none_or(
                    |(from, to)| Some(&from) == first.as_ref() && from.number <= to.number
                ));
            }
        }
    }
}

fn segments(representation: &Representation) {
    let segments: Vec<_> = representation.segments().take(SEGMENTS).collect();
    assert!(segments.windows(2).all(|pair| pair[1].number == pair[0].number + 1));
    for segment in &segments {
        assert_eq!(representation.segment(segment.number).as_ref(), Some(segment));
    }
    for time_us in [i64::MIN, 0, 1_500_000, i64::MAX] {
        if let Some(found) = representation.segment_at(time_us) {
            assert_eq!(representation.segment(found.number), Some(found));
        }
    }
}
