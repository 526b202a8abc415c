//! HLS playlists (RFC 8216) of recordings, as a presentation.

use std::collections::BTreeMap;
use std::sync::Arc;

use throng_media::manifest::ByteRange;
use throng_media::manifest::hls::{MasterPlaylist, MediaPlaylist, Playlist, RenditionKind, Variables};
use throng_observation::{Failure, FailureReason};
use url::Url;

use super::presentation::{LanePlan, Rendition, Resource, Segment, Segments};

/// A lane of video with what is muxed into it, and one of audio where it comes separately.
pub(super) fn lanes(url: &Url, text: &[u8]) -> Result<Vec<LanePlan>, Failure> {
    let lanes = match parse(url, text)? {
        Playlist::Master(master) => of_master(url, &master)?,
        Playlist::Media(media) => {
            vec![vec![Rendition { bandwidth_bps: 0, segments: Segments::Known(segments(url, &media)?) }]]
        }
    };
    Ok(lanes.into_iter().map(LanePlan::Segments).collect())
}

/// The segments of a media playlist.
pub(super) fn media(url: &Url, text: &[u8]) -> Result<Arc<[Segment]>, Failure> {
    match parse(url, text)? {
        Playlist::Media(media) => segments(url, &media),
        Playlist::Master(_) => Err(broken(url, "a master playlist where a media playlist was named")),
    }
}

fn parse(url: &Url, text: &[u8]) -> Result<Playlist, Failure> {
    let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let variables = Variables { query, ..Variables::default() };
    Playlist::parse_with(text, &variables).map_err(|error| broken(url, &error.to_string()))
}

fn broken(url: &Url, what: &str) -> Failure {
    Failure::new(FailureReason::Protocol, format!("{url}: {what}"))
}

fn resolved(base: &Url, uri: &str) -> Result<Url, Failure> {
    base.join(uri).map_err(|error| broken(base, &format!("`{uri}` is not a URI: {error}")))
}

fn of_master(url: &Url, master: &MasterPlaylist) -> Result<Vec<Vec<Rendition>>, Failure> {
    let Some(first) = master.variants.first() else {
        return Err(broken(url, "a master playlist without variants"));
    };
    // Variants with other audio are the same pictures once more.
    let with_same_audio = master.variants.iter().filter(|variant| variant.audio == first.audio);
    let mut video = Vec::new();
    for variant in with_same_audio {
        let segments = Segments::Playlist(resolved(url, &variant.uri)?);
        video.push(Rendition { bandwidth_bps: variant.bandwidth_bps, segments });
    }
    video.sort_by_key(|rendition| rendition.bandwidth_bps);
    let of_group = master.renditions.iter().filter(|rendition| {
        rendition.kind == RenditionKind::Audio && Some(&rendition.group) == first.audio.as_ref()
    });
    // The one that a player chooses which was told no language.
    let audio = of_group.max_by_key(|rendition| (rendition.is_default, rendition.is_autoselect));
    let mut lanes = vec![video];
    if let Some(uri) = audio.and_then(|audio| audio.uri.as_deref()) {
        lanes.push(vec![Rendition { bandwidth_bps: 0, segments: Segments::Playlist(resolved(url, uri)?) }]);
    }
    Ok(lanes)
}

fn segments(url: &Url, media: &MediaPlaylist) -> Result<Arc<[Segment]>, Failure> {
    if !media.has_ended {
        return Err(broken(url, "a live playlist (no EXT-X-ENDLIST); throng plays recordings"));
    }
    let mut starts_us = 0_i64;
    let mut segments = Vec::with_capacity(media.segments.len());
    for segment in &media.segments {
        if segment.keys.iter().any(|key| !key.method.eq_ignore_ascii_case("NONE")) {
            return Err(broken(url, "its segments are encrypted (EXT-X-KEY); throng plays clear ones"));
        }
        let init = match &segment.init {
            Some(init) => Some(Arc::new(Resource {
                url: resolved(url, &init.uri)?,
                range: init.byte_range.and_then(first_and_last),
            })),
            None => None,
        };
        if !segment.is_gap {
            segments.push(Segment {
                media: Resource {
                    url: resolved(url, &segment.uri)?,
                    range: segment.byte_range.and_then(first_and_last),
                },
                starts_us,
                duration_us: segment.duration_us,
                init,
                discontinuity: segment.discontinuity_number,
            });
        }
        starts_us = starts_us.saturating_add_unsigned(segment.duration_us);
    }
    if segments.is_empty() {
        return Err(broken(url, "a playlist without segments"));
    }
    Ok(segments.into())
}

fn first_and_last(range: ByteRange) -> Option<(u64, u64)> {
    Some((range.offset, range.end().checked_sub(1)?)).filter(|(first, last)| first <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("http://10.0.0.1/vod/master.m3u8?token=x").unwrap()
    }

    #[test]
    fn a_master_playlist_has_a_lane_of_variants_and_one_of_audio() {
        let text = b"#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",URI=\"en.m3u8\"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"de\",DEFAULT=YES,URI=\"de.m3u8\"
#EXT-X-STREAM-INF:BANDWIDTH=2000000,AUDIO=\"a\"
high/index.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"a\"
/low.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"b\"
other.m3u8
";
        let lanes = lanes(&url(), text).unwrap();
        let named: Vec<Vec<_>> = lanes
            .iter()
            .map(|lane| {
                let LanePlan::Segments(lane) = lane else { panic!("{lane:?}") };
                let of = |rendition: &Rendition| match &rendition.segments {
                    Segments::Playlist(url) => (rendition.bandwidth_bps, url.path().to_owned()),
                    Segments::Known(_) => panic!("{rendition:?}"),
                };
                lane.iter().map(of).collect()
            })
            .collect();
        let video = vec![(500_000, "/low.m3u8".to_owned()), (2_000_000, "/vod/high/index.m3u8".to_owned())];
        assert_eq!(named, [video, vec![(0, "/vod/de.m3u8".to_owned())]]);
    }

    #[test]
    fn a_media_playlist_has_segments_on_one_time_axis() {
        let text = b"#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"100@0\"
#EXTINF:4,
#EXT-X-BYTERANGE:1000@100
all.mp4
#EXT-X-GAP
#EXTINF:2,
gone.mp4
#EXT-X-DISCONTINUITY
#EXTINF:3.5,
b.mp4
#EXT-X-ENDLIST
";
        let segments = media(&url(), text).unwrap();
        let of = |segment: &Segment| {
            (
                segment.media.url.path().to_owned(),
                segment.media.range,
                segment.starts_us,
                segment.discontinuity,
            )
        };
        assert_eq!(
            segments.iter().map(of).collect::<Vec<_>>(),
            [
                ("/vod/all.mp4".to_owned(), Some((100, 1_099)), 0, 0),
                ("/vod/b.mp4".to_owned(), None, 6_000_000, 1)
            ]
        );
        let init = segments[0].init.as_ref().unwrap();
        assert_eq!((init.url.path(), init.range), ("/vod/init.mp4", Some((0, 99))));
        assert_eq!(super::super::presentation::duration_us(&segments), 9_500_000);
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        for (text, expect) in [
            ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n", "a live playlist"),
            ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST\n", "without segments"),
            (
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n",
                "encrypted",
            ),
            ("<html>", "line 1"),
        ] {
            let failure = lanes(&url(), text.as_bytes()).unwrap_err();
            assert!(failure.detail.contains(expect), "{failure}");
        }
    }
}
