//! What ffmpeg writes for HLS and DASH, followed from the manifest to the frames of the last
//! segment.

use std::path::Path;

use throng_media::manifest::ByteRange;
use throng_media::manifest::dash::{Location, Manifest, Representation};
use throng_media::manifest::hls::{MediaPlaylist, Playlist, PlaylistKind};
use throng_media::timing::{IndexCache, InitSegment, SegmentIndex, TimedFrame, TimingReader};
use throng_observation::Codec;

use crate::driver::play;
use crate::ffmpeg::{Made, make};

const CODED: &str =
    "-c:v libx264 -preset veryfast -g 10 -keyint_min 10 -sc_threshold 0 -bf 2 -c:a aac";
/// Frames of 2.2 seconds at 25 Hz.
const FRAMES: usize = 55;
/// A picture is shown up to two frames after it is decoded, which some times of ffmpeg are.
const REORDERED_US: u64 = 80_000;

/// A file next to the manifest, or a part of it.
fn load(manifest: &Path, uri: &str, range: Option<ByteRange>) -> Vec<u8> {
    let file = std::fs::read(manifest.with_file_name(uri)).unwrap();
    range.map_or(file.clone(), |range| file[range.offset as usize..range.end() as usize].to_vec())
}

fn video(segment: &[u8], init: Option<&InitSegment>) -> Vec<TimedFrame> {
    let mut reader = TimingReader::segment(IndexCache::default(), init);
    let played = play(segment, &mut reader, 1, 2_000);
    let codecs = reader.tracks().unwrap();
    let track = codecs.iter().position(|track| track.codec == Codec::H264).unwrap();
    played.tracks[track].clone()
}

fn media_playlist(made: &Made) -> MediaPlaylist {
    match Playlist::parse(&made.bytes()) {
        Ok(Playlist::Media(playlist)) => playlist.as_ref().clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn playlists_lead_to_all_frames() {
    for options in [
        "",
        "-hls_segment_type fmp4",
        "-hls_flags single_file",
        "-hls_segment_type fmp4 -hls_flags single_file+program_date_time+independent_segments",
    ] {
        let options = format!(
            "{CODED} -f hls -hls_time 0.4 -hls_list_size 0 -hls_playlist_type vod {options}"
        );
        let Some(made) = make(options.trim(), "a.m3u8") else { return };
        let playlist = media_playlist(&made);
        assert_eq!((playlist.kind, playlist.has_ended), (Some(PlaylistKind::Vod), true));
        assert!(playlist.duration_us().abs_diff(2_200_000) < 50_000, "{options}");
        let mut frames = 0;
        for segment in &playlist.segments {
            let init =
                segment.init.as_ref().map(|init| load(&made.path(), &init.uri, init.byte_range));
            let init = init.map(|bytes| InitSegment::parse(&bytes).unwrap());
            let video = video(&load(&made.path(), &segment.uri, segment.byte_range), init.as_ref());
            assert!(video[0].is_key, "{options}");
            assert!(
                (video.len() as u64 * 40_000).abs_diff(segment.duration_us) <= 1_000,
                "{options}"
            );
            assert_eq!(segment.program_time_us.is_some(), options.contains("program_date_time"));
            frames += video.len();
        }
        assert_eq!(frames, FRAMES, "{options}");
    }
}

#[test]
fn a_master_playlist_leads_to_its_variants() {
    let options =
        format!("{CODED} -f hls -hls_time 0.4 -hls_list_size 0 -master_pl_name master.m3u8");
    let Some(made) = make(&options, "a.m3u8") else { return };
    let Ok(Playlist::Master(master)) = Playlist::parse(&load(&made.path(), "master.m3u8", None))
    else {
        panic!()
    };
    let [variant] = &master.variants[..] else { panic!("{master:?}") };
    assert_eq!((&variant.uri[..], variant.resolution), ("a.m3u8", Some((160, 90))));
    assert!(
        variant.bandwidth_bps > 10_000 && variant.codecs.as_deref().unwrap().starts_with("avc1.")
    );
    assert!(media_playlist(&made).segments.len() >= 5);
}

fn init_of(manifest: &Path, representation: &Representation) -> Option<InitSegment> {
    let Location { url, byte_range } = representation.initialization.clone()?;
    Some(InitSegment::parse(&load(manifest, &file_of(representation, &url), byte_range)).unwrap())
}

/// The URL of a segment, or the base URL.
fn file_of(representation: &Representation, url: &str) -> String {
    if url.is_empty() { representation.base_urls.last().unwrap().clone() } else { url.to_owned() }
}

#[test]
fn mpds_lead_to_all_frames() {
    for options in
        ["-use_timeline 1", "-use_timeline 0", "-single_file 1", "-dash_segment_type webm"]
    {
        let coded = if options.contains("webm") {
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 10 -keyint_min 10 -c:a libopus"
        } else {
            CODED
        };
        let Some(made) = make(&format!("{coded} -f dash -seg_duration 0.4 {options}"), "a.mpd")
        else {
            return;
        };
        let manifest = Manifest::parse(&made.bytes()).unwrap();
        assert!(!manifest.is_dynamic);
        assert!(manifest.duration_us.unwrap().abs_diff(2_200_000) <= 100_000, "{options}");
        let sets = &manifest.periods[0].adaptation_sets;
        assert_eq!(sets.len(), 2);
        let representation = &sets[0].representations[0];
        assert_eq!((representation.width, representation.height), (Some(160), Some(90)));
        assert_eq!(representation.frame_rate_hz.or(Some(25.0)), Some(25.0));
        let init = init_of(&made.path(), representation).unwrap();
        let mut frames = 0;
        for segment in representation.segments() {
            let Location { url, byte_range } = &segment.location;
            let bytes = load(&made.path(), &file_of(representation, url), *byte_range);
            let mut reader = TimingReader::segment(IndexCache::default(), Some(&init));
            let video = play(&bytes, &mut reader, 1, 2_000).tracks.remove(0);
            assert!(video[0].is_key, "{options}");
            let at_us = video[0].presentation_us.abs_diff(segment.time_us);
            assert!(
                at_us <= REORDERED_US,
                "{options}: {} for {segment:?}",
                video[0].presentation_us
            );
            frames += video.len();
        }
        assert_eq!(frames, FRAMES, "{options}");
        for time_us in [0, 399_999, 400_000, 1_500_000, 99_000_000] {
            let found = representation.segment_at(time_us).unwrap();
            // The first begins a little late, by the delay of Opus.
            assert!(found.time_us <= time_us.max(7_000), "{options}");
            assert_eq!(representation.segment(found.number), Some(found));
        }
    }
}

#[test]
fn an_index_range_leads_to_the_segments_of_a_single_file() {
    let Some(made) = make(&format!("{CODED} -an -movflags dash+global_sidx"), "v.mp4") else {
        return;
    };
    let file = made.bytes();
    let at = file.windows(4).position(|word| word == b"sidx").unwrap() - 4;
    let len = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mpd = format!(
        "<MPD mediaPresentationDuration='PT2.2S'><Period><AdaptationSet mimeType='video/mp4'><Representation id='v' \
         bandwidth='1'><BaseURL>v.mp4</BaseURL><SegmentBase indexRange='{at}-{}'><Initialization range='0-{}'/>\
         </SegmentBase></Representation></AdaptationSet></Period></MPD>",
        at + len - 1,
        at - 1
    );
    let manifest = Manifest::parse(mpd.as_bytes()).unwrap();
    let representation = &manifest.periods[0].adaptation_sets[0].representations[0];
    let init = init_of(&made.path(), representation).unwrap();
    let range = representation.single_file.unwrap().index_range.unwrap();
    let index = load(&made.path(), "v.mp4", Some(range));
    let index = SegmentIndex::parse(&IndexCache::default(), &index, range.offset).unwrap();
    let mut frames = 0;
    for segment in index.segments() {
        let range = ByteRange { offset: segment.offset, bytes: segment.bytes };
        frames += video(&load(&made.path(), "v.mp4", Some(range)), Some(&init)).len();
    }
    assert_eq!(frames, FRAMES);
}
