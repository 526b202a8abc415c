//! HLS playlists (RFC 8216) as a presentation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use throng_media::manifest::PlaylistCache;
use throng_media::manifest::hls::{
    Key, MasterPlaylist, MediaPlaylist, Playlist, RenditionKind, Segment as Listed, Variables,
};
use throng_observation::{Failure, FailureReason, Url};

use super::presentation::{LanePlan, Rendition, Resource, Segment, SegmentKey, Segments};
use super::window::Window;
use super::{broken, first_and_last, resolved, unreadable};

/// The only encryption that is played; sample encryption needs a licence server (DRM).
const AES_128: &str = "AES-128";

/// What a playlist may import that no master playlist named.
pub(in crate::player) static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();

/// A playlist as it was received.
pub(in crate::player) struct Received<'a> {
    /// Where it came from: its URIs are relative to it.
    pub(in crate::player) url: &'a Url,
    pub(in crate::player) text: &'a [u8],
    /// When the response began.
    pub(in crate::player) answered_at: Instant,
    /// The variables of the master playlist (`EXT-X-DEFINE`), which it may import.
    pub(in crate::player) imported: &'a BTreeMap<String, String>,
}

/// A lane of video with what is muxed into it, and one of audio where it comes separately.
pub(in crate::player) fn lanes(
    cache: &PlaylistCache,
    received: &Received<'_>,
) -> Result<Vec<LanePlan>, Failure> {
    let url = received.url;
    let lanes = match &*parse(cache, received)? {
        Playlist::Master(master) => of_master(url, master)?,
        Playlist::Media(media) => {
            let segments = Some(segments(received, media)?);
            vec![vec![Rendition {
                bandwidth_bps: 0,
                listed_at: Some(0),
                resolution: None,
                playlist: Some(url.clone()),
                variables: Arc::default(),
                segments,
            }]]
        }
    };
    Ok(lanes.into_iter().map(LanePlan::Segments).collect())
}

/// A media playlist.
pub(in crate::player) fn media(
    cache: &PlaylistCache,
    received: &Received<'_>,
) -> Result<Arc<MediaPlaylist>, Failure> {
    match &*parse(cache, received)? {
        Playlist::Media(media) => {
            check_keys(received.url, media)?;
            Ok(Arc::clone(media))
        }
        Playlist::Master(_) => {
            Err(broken(received.url, "a master playlist where a media playlist was named"))
        }
    }
}

/// The segments of a media playlist.
pub(in crate::player) fn segments(
    received: &Received<'_>,
    media: &Arc<MediaPlaylist>,
) -> Result<Segments, Failure> {
    check_keys(received.url, media)?;
    if leaves_out(media) {
        return Err(unasked_update(received.url));
    }
    if media.has_ended {
        return recorded(received.url, media).map(Segments::Recorded);
    }
    let window = Window::new(received.url.clone(), Arc::clone(media), received.answered_at);
    Ok(Segments::Live(Box::new(window)))
}

/// Whether it is a delta update, which leaves out segments of the playlist before it.
pub(in crate::player) fn leaves_out(media: &MediaPlaylist) -> bool {
    media.skipped_segments.is_some_and(|skipped| skipped > 0)
}

pub(in crate::player) fn unasked_update(url: &Url) -> Failure {
    broken(url, "a delta update (EXT-X-SKIP) where the whole playlist was asked for")
}

/// A segment of a live playlist.
pub(in crate::player) fn live_segment(
    window: &Window,
    listed: &Listed,
) -> Result<Segment, Failure> {
    let (starts_us, discontinuity) = window.place(listed);
    segment(window.url(), listed, starts_us, discontinuity)
}

fn parse(cache: &PlaylistCache, received: &Received<'_>) -> Result<Arc<Playlist>, Failure> {
    let query: BTreeMap<String, String> =
        received.url.in_clear().query_pairs().into_owned().collect();
    let variables = Variables { query, imported: received.imported.clone() };
    let parsed = cache.playlist(received.text, &variables);
    parsed.map_err(|error| unreadable(received.url, &error))
}

fn of_master(url: &Url, master: &MasterPlaylist) -> Result<Vec<Vec<Rendition>>, Failure> {
    let Some(first) = master.variants.first() else {
        return Err(broken(url, "a master playlist without variants"));
    };
    let variables = Arc::new(master.variables.clone());
    let rendition = |uri: &str, bandwidth_bps: u64, at: usize| -> Result<Rendition, Failure> {
        let playlist = Some(resolved(url, uri)?);
        Ok(Rendition {
            bandwidth_bps,
            listed_at: Some(at),
            resolution: None,
            playlist,
            variables: Arc::clone(&variables),
            segments: None,
        })
    };
    let variants = master.variants.iter().enumerate();
    // Variants with other audio are the same pictures once more.
    let with_same_audio = variants.filter(|(_, variant)| variant.audio == first.audio);
    let video = with_same_audio.map(|(at, variant)| {
        let resolution = variant.resolution.map(|(width, height)| width.min(height));
        Ok(Rendition { resolution, ..rendition(&variant.uri, variant.bandwidth_bps, at)? })
    });
    let mut video = video.collect::<Result<Vec<_>, Failure>>()?;
    video.sort_by_key(|rendition| rendition.bandwidth_bps);
    let of_group = master.renditions.iter().filter(|rendition| {
        rendition.kind == RenditionKind::Audio && Some(&rendition.group) == first.audio.as_ref()
    });
    // The one that a player chooses which was told no language.
    let audio = of_group.max_by_key(|rendition| (rendition.is_default, rendition.is_autoselect));
    let mut lanes = vec![video];
    if let Some(uri) = audio.and_then(|audio| audio.uri.as_deref()) {
        lanes.push(vec![rendition(uri, 0, 0)?]);
    }
    Ok(lanes)
}

fn recorded(url: &Url, media: &MediaPlaylist) -> Result<Arc<[Segment]>, Failure> {
    let played = media.segments.iter().filter(|listed| !listed.is_gap);
    let place = |listed: &Listed| i64::try_from(listed.offset_us).unwrap_or(i64::MAX);
    let segments =
        played.map(|listed| segment(url, listed, place(listed), listed.discontinuity_number));
    let segments = segments.collect::<Result<Arc<[_]>, Failure>>()?;
    if segments.is_empty() {
        return Err(broken(url, "a playlist without segments"));
    }
    Ok(segments)
}

fn segment(
    url: &Url,
    listed: &Listed,
    starts_us: i64,
    discontinuity: u64,
) -> Result<Segment, Failure> {
    let init = match &listed.init {
        Some(init) => Some(Arc::new(Resource {
            url: resolved(url, &init.uri)?,
            range: init.byte_range.and_then(first_and_last),
        })),
        None => None,
    };
    let key = match listed.keys.iter().find(|key| is_played(key)) {
        Some(key) => Some(SegmentKey {
            url: resolved(url, &key.uri)?,
            iv: key.iv.unwrap_or(listed.number.into()),
        }),
        None => None,
    };
    Ok(Segment {
        media: Resource {
            url: resolved(url, &listed.uri)?,
            range: listed.byte_range.and_then(first_and_last),
        },
        starts_us,
        duration_us: listed.duration_us,
        init,
        key,
        discontinuity,
        is_progressive: false,
    })
}

fn is_played(key: &Key) -> bool {
    key.method.eq_ignore_ascii_case(AES_128) && key.format == "identity"
}

/// Whether its segments can be decrypted.
fn check_keys(url: &Url, media: &MediaPlaylist) -> Result<(), Failure> {
    let mut of_segments = media.segments.iter().map(|segment| &segment.keys);
    let unknown = of_segments.find(|keys| !keys.is_empty() && !keys.iter().any(is_played));
    let Some(key) = unknown.and_then(|keys| keys.first()) else { return Ok(()) };
    let what = format!(
        "its segments are encrypted by {:.40} for {:.60} (EXT-X-KEY); throng has keys for \
         {AES_128} only",
        key.method, key.format
    );
    Err(Failure::new(FailureReason::Unsupported, format!("{url}: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("http://10.0.0.1/vod/master.m3u8?token=x").unwrap()
    }

    fn read(text: &[u8]) -> Result<Vec<LanePlan>, Failure> {
        let received =
            Received { url: &url(), text, answered_at: Instant::now(), imported: &NO_VARIABLES };
        lanes(&PlaylistCache::default(), &received)
    }

    fn only(lanes: Result<Vec<LanePlan>, Failure>) -> Rendition {
        match lanes.unwrap().remove(0) {
            LanePlan::Segments(mut renditions) => renditions.remove(0),
            plan => panic!("{plan:?}"),
        }
    }

    #[test]
    fn keys_have_the_number_of_their_segment_as_vector_unless_they_name_one() {
        let text = b"#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-KEY:METHOD=AES-128,URI=\"/k1\"
#EXTINF:4,
7.ts
#EXT-X-KEY:METHOD=AES-128,URI=\"k2\",IV=0xff
#EXTINF:4,
8.ts
#EXT-X-KEY:METHOD=NONE
#EXTINF:4,
9.ts
#EXT-X-ENDLIST
";
        let Some(Segments::Recorded(segments)) = only(read(text)).segments else {
            panic!("a recording")
        };
        let key = |segment: &Segment| {
            segment.key.as_ref().map(|key| (key.url.in_clear().path().to_owned(), key.iv))
        };
        assert_eq!(
            segments.iter().map(key).collect::<Vec<_>>(),
            [Some(("/k1".to_owned(), 7)), Some(("/vod/k2".to_owned(), 255)), None]
        );
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
        let lanes = read(text).unwrap();
        let named: Vec<Vec<_>> = lanes
            .iter()
            .map(|lane| {
                let LanePlan::Segments(lane) = lane else { panic!("{lane:?}") };
                let of = |rendition: &Rendition| {
                    let playlist =
                        rendition.playlist.as_ref().map(|url| url.in_clear().path().to_owned());
                    (rendition.bandwidth_bps, playlist.unwrap())
                };
                lane.iter().map(of).collect()
            })
            .collect();
        let video =
            vec![(500_000, "/low.m3u8".to_owned()), (2_000_000, "/vod/high/index.m3u8".to_owned())];
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
        let Some(Segments::Recorded(segments)) = only(read(text)).segments else {
            panic!("a recording")
        };
        let of = |segment: &Segment| {
            (
                segment.media.url.in_clear().path().to_owned(),
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
        assert_eq!((init.url.in_clear().path(), init.range), ("/vod/init.mp4", Some((0, 99))));
        assert_eq!(super::super::presentation::duration_us(&segments), 9_500_000);
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        for (text, expect) in [
            ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST\n", "without segments"),
            (
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n",
                "encrypted by SAMPLE-AES for identity",
            ),
            ("<html>", "line 1"),
        ] {
            let failure = read(text.as_bytes()).unwrap_err();
            assert!(failure.detail.contains(expect), "{failure}");
            // Such keys are no fault of the server.
            let is_unsupported = failure.reason == FailureReason::Unsupported;
            assert_eq!(is_unsupported, expect.contains("SAMPLE-AES"), "{failure}");
        }
    }
}
