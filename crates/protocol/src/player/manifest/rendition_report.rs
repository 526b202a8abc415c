//! The first request for another rendition of a low-latency stream: its playlist is awaited from
//! where the playlist of the rendition before says that it is (`EXT-X-RENDITION-REPORT`, RFC
//! 8216bis section 4.4.5.4), so that no second request is needed to reach the end. The rules are
//! those of hls.js (`switchParams` of `base-playlist-controller.ts`).

use std::time::Instant;

use throng_media::manifest::hls::RenditionReport;
use throng_observation::Url;

use super::window::Window;
use crate::player::playback::timeline::as_us;

/// The segment and part after which the playlist at `url` is asked for, where `before` reports
/// about it.
pub(in crate::player) fn awaited(
    before: &Window,
    url: &Url,
    now: Instant,
    low_latency: bool,
) -> Option<(u64, Option<u64>)> {
    let report = report(before, url)?;
    let (segment, part) = last_of(before);
    // hls.js takes 0 for a number that is missing.
    let segment = report.last_sequence.filter(|number| *number > 0).unwrap_or(segment);
    let part = report.last_part.filter(|number| *number > 0).or(part);
    let is_old = low_latency && is_older_than_two_parts(before, now);
    Some((segment, part.map(|part| part.saturating_add(u64::from(is_old)))))
}

/// The report about the playlist at `url`: the one with this URI, else the last one whose URI it
/// begins with, because reports may leave out a query.
fn report<'a>(before: &'a Window, url: &Url) -> Option<&'a RenditionReport> {
    let reports = &before.playlist().rendition_reports;
    let of = |report: &RenditionReport| before.url().join(&report.uri).ok();
    let exact = reports.iter().find(|report| of(report).as_ref() == Some(url));
    let begins = |report: &&RenditionReport| {
        of(report).is_some_and(|of| url.in_clear().as_str().starts_with(of.in_clear().as_str()))
    };
    exact.or_else(|| reports.iter().rfind(begins))
}

/// The last segment of a playlist that has something, and the last part in it.
fn last_of(window: &Window) -> (u64, Option<u64>) {
    let playlist = window.playlist();
    let last_index = |parts: usize| u64::try_from(parts).ok()?.checked_sub(1);
    if let Some(part) = last_index(playlist.parts.len()) {
        return (window.end(), Some(part));
    }
    let of_segment = playlist.segments.last().and_then(|segment| last_index(segment.parts.len()));
    (window.end().saturating_sub(1), of_segment)
}

/// Whether the report is so old that another part must have come since.
fn is_older_than_two_parts(before: &Window, now: Instant) -> bool {
    let playlist = before.playlist();
    let age_us = as_us(now.saturating_duration_since(before.advanced_at())).unsigned_abs();
    let part_us = playlist.part_target_us.unwrap_or_default();
    age_us.saturating_sub(part_us).min(playlist.target_duration_us) > part_us
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use throng_media::manifest::hls::Playlist;

    use super::*;

    /// A playlist that ends with part 1 of segment 12.
    fn window(reports: &str, received_at: Instant) -> Window {
        let text = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-PART-INF:PART-TARGET=1\n\
             #EXTINF:4,\n10.ts\n#EXTINF:4,\n11.ts\n\
             #EXT-X-PART:DURATION=1,URI=\"12-0.ts\"\n#EXT-X-PART:DURATION=1,URI=\"12-1.ts\"\n{reports}"
        );
        let url = Url::parse("http://10.0.0.1/live/low/index.m3u8?_HLS_msn=12").unwrap();
        let Playlist::Media(media) = Playlist::parse(text.as_bytes()).unwrap() else {
            panic!("a master playlist")
        };
        Window::new(url, Arc::clone(&media), received_at)
    }

    fn asked(reports: &str, after: Duration) -> Option<(u64, Option<u64>)> {
        let now = Instant::now();
        let url = Url::parse("http://10.0.0.1/live/high/index.m3u8?token=x").unwrap();
        awaited(&window(reports, now), &url, now + after, true)
    }

    #[test]
    fn the_report_about_the_playlist_says_from_where_on_it_is_awaited() {
        let of = |uri: &str, rest: &str| format!("#EXT-X-RENDITION-REPORT:URI=\"{uri}\"{rest}\n");
        let last = ",LAST-MSN=13,LAST-PART=2";
        let huge = ",LAST-MSN=18446744073709551615,LAST-PART=18446744073709551615";
        for (reports, expect) in [
            (String::new(), None),
            (of("../other.m3u8", last), None),
            (of("../high/index.m3u8?token=x", last), Some((13, Some(2)))),
            (of("/live/high/index.m3u8", last), Some((13, Some(2)))),
            (
                of("../high/index.m3u8", ",LAST-MSN=9") + &of("../high/index.m3u8?token=x", last),
                Some((13, Some(2))),
            ),
            (of("../high/index.m3u8", ",LAST-MSN=13"), Some((13, Some(1)))),
            (of("../high/index.m3u8", ""), Some((12, Some(1)))),
            (of("../high/index.m3u8", ",LAST-MSN=-1,LAST-PART=x"), Some((12, Some(1)))),
            (of("../high/index.m3u8", huge), Some((u64::MAX, Some(u64::MAX)))),
            (of("http://[", last), None),
            ("#EXT-X-RENDITION-REPORT:LAST-MSN=13\n".to_owned(), None),
        ] {
            assert_eq!(asked(&reports, Duration::ZERO), expect, "{reports}");
        }
    }

    #[test]
    fn an_old_report_is_followed_by_the_next_part() {
        let report = "#EXT-X-RENDITION-REPORT:URI=\"../high/index.m3u8\",LAST-MSN=13,LAST-PART=2\n";
        assert_eq!(asked(report, Duration::from_millis(1_900)), Some((13, Some(2))));
        assert_eq!(asked(report, Duration::from_millis(2_100)), Some((13, Some(3))));
    }
}
