//! DASH manifests (ISO/IEC 23009-1) as a presentation.

use std::sync::Arc;

use throng_media::manifest::PlaylistCache;
use throng_media::manifest::dash::{
    AdaptationSet, ContentKind, Location, Manifest, Period, Representation, Segment as DashSegment,
};
use throng_observation::{Failure, FailureReason, Url};

use super::dash_window::DashWindow;
use super::hls::Received;
use super::presentation::{LanePlan, Rendition, Resource, Segment, Segments};
use super::{broken, first_and_last, resolved, unreadable};

/// Reads a manifest.
pub(in crate::player) fn manifest(
    cache: &PlaylistCache,
    received: &Received<'_>,
) -> Result<Arc<Manifest>, Failure> {
    cache.manifest(received.text).map_err(|error| unreadable(received.url, &error))
}

/// A lane for video and one for audio, as far as there are both. The first adaptation set of each
/// kind is played, as by a player that was told no language.
pub(in crate::player) fn lanes(
    url: &Url,
    manifest: &Arc<Manifest>,
) -> Result<Vec<LanePlan>, Failure> {
    if manifest.is_dynamic {
        return live_lanes(url, manifest);
    }
    let mut lanes = Vec::new();
    for kind in [ContentKind::Video, ContentKind::Audio] {
        lanes.extend(lane(url, manifest, kind)?);
    }
    if lanes.is_empty() {
        return Err(without_media(url, manifest));
    }
    Ok(lanes)
}

/// The lanes of a live manifest: which segments exist follows from the clock.
fn live_lanes(url: &Url, manifest: &Arc<Manifest>) -> Result<Vec<LanePlan>, Failure> {
    let mut lanes = Vec::new();
    for kind in [ContentKind::Video, ContentKind::Audio] {
        let sets = manifest.periods.iter().filter_map(|period| set_of(period, kind));
        // Periods may have different numbers of representations: what all have is played.
        let Some(count) =
            sets.map(|set| set.representations.len()).min().filter(|count| *count > 0)
        else {
            continue;
        };
        let rendition = |rank: usize| {
            let window = DashWindow::new(url.clone(), Arc::clone(manifest), kind, rank);
            let (bandwidth_bps, resolution) = (window.bandwidth_bps(), window.resolution());
            let segments = Some(Segments::Dynamic(Box::new(window)));
            Rendition {
                bandwidth_bps,
                listed_at: None,
                resolution,
                playlist: None,
                variables: Arc::default(),
                segments,
            }
        };
        lanes.push(LanePlan::Segments((0..count).map(rendition).collect()));
    }
    if lanes.is_empty() {
        return Err(without_media(url, manifest));
    }
    Ok(lanes)
}

/// It has nothing that is played. Whatever else it has is described as it should be.
fn without_media(url: &Url, manifest: &Manifest) -> Failure {
    let what = "neither video nor audio";
    match manifest.periods.iter().all(|period| period.adaptation_sets.is_empty()) {
        true => broken(url, what),
        false => Failure::new(FailureReason::Unsupported, format!("{url}: {what}")),
    }
}

/// What is played of a period: the first adaptation set of the kind.
pub(in crate::player) fn set_of(period: &Period, kind: ContentKind) -> Option<&AdaptationSet> {
    period.adaptation_sets.iter().find(|set| set.kind == kind)
}

/// The smaller of width and height, pixels, where the manifest says them.
pub(in crate::player) fn resolution(representation: &Representation) -> Option<u32> {
    let size = representation.width.zip(representation.height);
    size.map(|(width, height)| width.min(height)).filter(|lines| *lines > 0)
}

/// A segment of a live manifest, whose times are those of the program.
pub(in crate::player) fn live_segment(
    url: &Url,
    representation: &Representation,
    (segment, zero_us): (&DashSegment, i64),
    period: u64,
) -> Result<Segment, Failure> {
    let base = base(url, representation)?;
    let init =
        representation.initialization.as_ref().map(|init| resource(&base, init)).transpose()?;
    Ok(Segment {
        media: resource(&base, &segment.location)?,
        starts_us: segment.time_us.saturating_add(zero_us),
        duration_us: segment.duration_us,
        init: init.map(Arc::new),
        key: None,
        discontinuity: period,
        is_progressive: representation.available_early_us() > 0,
    })
}

/// The representations of an adaptation set, by bitrate.
pub(in crate::player) fn sorted(set: &AdaptationSet) -> Vec<&Representation> {
    let mut sorted: Vec<_> = set.representations.iter().collect();
    sorted.sort_by_key(|representation| representation.bandwidth_bps);
    sorted
}

fn lane(url: &Url, manifest: &Manifest, kind: ContentKind) -> Result<Option<LanePlan>, Failure> {
    let mut renditions: Vec<Listed> = Vec::new();
    for (number, period) in manifest.periods.iter().enumerate() {
        let Some(set) = set_of(period, kind) else { continue };
        let representations = sorted(set);
        if representations.first().is_some_and(|first| first.single_file.is_some()) {
            // An index (sidx) at the beginning of the file says what a playlist says elsewhere.
            let files = representations.iter().map(|representation| {
                base(url, representation).map(|url| (url, resolution(representation)))
            });
            return Ok(Some(LanePlan::File(files.collect::<Result<_, _>>()?)));
        }
        // Periods may have different numbers of representations: what all have is played.
        if number == 0 || renditions.is_empty() {
            renditions = representations.iter().copied().map(Listed::new).collect();
        }
        renditions.truncate(representations.len());
        for (listed, representation) in renditions.iter_mut().zip(&representations) {
            add(url, representation, number as u64, &mut listed.segments)?;
        }
    }
    renditions.retain(|listed| !listed.segments.is_empty());
    if renditions.is_empty() {
        return Ok(None);
    }
    Ok(Some(LanePlan::Segments(renditions.into_iter().map(Listed::rendition).collect())))
}

/// A rendition of a recording: what its first period says of it, and the segments of all.
struct Listed {
    bandwidth_bps: u64,
    resolution: Option<u32>,
    segments: Vec<Segment>,
}

impl Listed {
    fn new(representation: &Representation) -> Self {
        let (bandwidth_bps, resolution) =
            (representation.bandwidth_bps, resolution(representation));
        Self { bandwidth_bps, resolution, segments: Vec::new() }
    }

    fn rendition(self) -> Rendition {
        Rendition {
            bandwidth_bps: self.bandwidth_bps,
            listed_at: None,
            resolution: self.resolution,
            playlist: None,
            variables: Arc::default(),
            segments: Some(Segments::Recorded(self.segments.into())),
        }
    }
}

/// Adds the segments of one period.
fn add(
    url: &Url,
    representation: &Representation,
    discontinuity: u64,
    segments: &mut Vec<Segment>,
) -> Result<(), Failure> {
    let base = base(url, representation)?;
    let init = representation
        .initialization
        .as_ref()
        .map(|init| resource(&base, init))
        .transpose()?
        .map(Arc::new);
    for segment in representation.segments() {
        segments.push(Segment {
            media: resource(&base, &segment.location)?,
            starts_us: segment.time_us,
            duration_us: segment.duration_us,
            init: init.clone(),
            key: None,
            discontinuity,
            is_progressive: false,
        });
    }
    Ok(())
}

fn base(url: &Url, representation: &Representation) -> Result<Url, Failure> {
    representation.base_urls.iter().try_fold(url.clone(), |base, part| resolved(&base, part))
}

fn resource(base: &Url, location: &Location) -> Result<Resource, Failure> {
    Ok(Resource {
        url: if location.url.is_empty() { base.clone() } else { resolved(base, &location.url)? },
        range: location.byte_range.and_then(first_and_last),
    })
}

#[cfg(test)]
mod tests {
    use super::super::hls::NO_VARIABLES;
    use super::*;

    fn url() -> Url {
        Url::parse("http://10.0.0.1/vod/film.mpd").unwrap()
    }

    fn read(text: &str) -> Result<Vec<LanePlan>, Failure> {
        let received = Received {
            url: &url(),
            text: text.as_bytes(),
            answered_at: std::time::Instant::now(),
            imported: &NO_VARIABLES,
        };
        lanes(&url(), &manifest(&PlaylistCache::default(), &received)?)
    }

    fn first(rendition: &Rendition) -> &Segment {
        let Some(Segments::Recorded(segments)) = &rendition.segments else {
            panic!("{rendition:?}")
        };
        &segments[0]
    }

    const TEMPLATE: &str = r#"<SegmentTemplate timescale="1000" duration="4000" startNumber="1"
        initialization="$RepresentationID$/init.m4s" media="$RepresentationID$/$Number%03d$.m4s"/>"#;

    fn mpd(kind: &str, sets: &str) -> String {
        format!(
            r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="{kind}" availabilityStartTime="2026-01-01T00:00:00Z"
              mediaPresentationDuration="PT10S"><Period>{sets}</Period></MPD>"#
        )
    }

    #[test]
    fn video_and_audio_have_a_lane_each_with_their_representations_by_bitrate() {
        let sets = format!(
            r#"<AdaptationSet contentType="video">{TEMPLATE}<Representation id="high" bandwidth="3000000"
               width="720" height="1280"/><Representation id="low" bandwidth="500000"/></AdaptationSet>
               <AdaptationSet mimeType="audio/mp4" lang="de">{TEMPLATE}<Representation id="a" bandwidth="96000"/>
               </AdaptationSet>"#
        );
        let lanes = read(&mpd("static", &sets)).unwrap();
        let [LanePlan::Segments(video), LanePlan::Segments(audio)] = lanes.as_slice() else {
            panic!("{lanes:?}")
        };
        assert_eq!(video.iter().map(|r| r.bandwidth_bps).collect::<Vec<_>>(), [500_000, 3_000_000]);
        assert_eq!(video.iter().map(|r| r.resolution).collect::<Vec<_>>(), [None, Some(720)]);
        let Some(Segments::Recorded(segments)) = &video[0].segments else { panic!("{video:?}") };
        assert_eq!(segments.len(), 3);
        let last = &segments[2];
        assert_eq!(
            (last.media.url.in_clear().path(), last.starts_us),
            ("/vod/low/003.m4s", 8_000_000)
        );
        assert_eq!(last.init.as_ref().unwrap().url.in_clear().path(), "/vod/low/init.m4s");
        assert_eq!(first(&audio[0]).media.url.in_clear().path(), "/vod/a/001.m4s");
    }

    #[test]
    fn live_representations_say_how_large_they_are() {
        let set = format!(
            r#"<AdaptationSet contentType="video">{TEMPLATE}
               <Representation id="v" bandwidth="1" width="1920" height="1080"/></AdaptationSet>"#
        );
        let lanes = read(&mpd("dynamic", &set)).unwrap();
        let [LanePlan::Segments(video)] = lanes.as_slice() else { panic!("{lanes:?}") };
        assert_eq!(video[0].resolution, Some(1_080));
    }

    #[test]
    fn a_representation_in_one_file_is_a_lane_of_that_file() {
        let sets = r#"<AdaptationSet contentType="video">
          <Representation id="v" bandwidth="1" width="640" height="360">
          <BaseURL>v.mp4</BaseURL><SegmentBase indexRange="800-1000"><Initialization range="0-799"/></SegmentBase>
          </Representation></AdaptationSet>"#;
        let lanes = read(&mpd("static", sets)).unwrap();
        let [LanePlan::File(files)] = lanes.as_slice() else { panic!("{lanes:?}") };
        let [(url, lines)] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!((url.in_clear().path(), *lines), ("/vod/v.mp4", Some(360)));
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        let texts = r#"<AdaptationSet contentType="text"><Representation id="t" bandwidth="1">
            <BaseURL>t.vtt</BaseURL></Representation></AdaptationSet>"#;
        for (text, expect) in [
            (mpd("dynamic", ""), "protocol: http://10.0.0.1/vod/film.mpd: neither video nor audio"),
            (mpd("static", ""), "protocol: http://10.0.0.1/vod/film.mpd: neither video nor audio"),
            ("<html/>".to_owned(), "protocol: http://10.0.0.1/vod/film.mpd: line 1"),
            // What the specification allows is no fault of the server.
            (mpd("static", texts), "unsupported: http://10.0.0.1/vod/film.mpd: neither"),
            (mpd("dynamic", texts), "unsupported: http://10.0.0.1/vod/film.mpd: neither"),
            (
                mpd("static", r#"<AdaptationSet xlink:href="set.xml"/>"#),
                "unsupported: http://10.0.0.1/vod/film.mpd: line 2: AdaptationSet is remote",
            ),
            (
                format!("<!DOCTYPE MPD>{}", mpd("static", texts)),
                "unsupported: http://10.0.0.1/vod/film.mpd: line 1: XML has a document type",
            ),
        ] {
            let failure = read(&text).unwrap_err().to_string();
            assert!(failure.starts_with(expect), "{failure}");
        }
    }
}
