use super::*;
use crate::manifest::ByteRange;

fn media(text: &str) -> MediaPlaylist {
    match Playlist::parse(text.as_bytes()) {
        Ok(Playlist::Media(playlist)) => Arc::unwrap_or_clone(playlist),
        other => panic!("{other:?}"),
    }
}

fn master(text: &str) -> MasterPlaylist {
    match Playlist::parse(text.as_bytes()) {
        Ok(Playlist::Master(playlist)) => playlist,
        other => panic!("{other:?}"),
    }
}

/// A media playlist with these lines after its head.
fn with(lines: &str) -> String {
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:6\n{lines}")
}

#[test]
fn a_master_playlist() {
    let playlist = master(concat!(
        "\u{feff}#EXTM3U\r\n",
        "#EXT-X-VERSION:6\r\n",
        "#EXT-X-INDEPENDENT-SEGMENTS\r\n",
        "\r\n",
        "#EXT-X-DEFINE:NAME=\"host\",VALUE=\"cdn.example\"\r\n",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"English, main\",DEFAULT=YES,LANGUAGE=\"en\",URI=\"audio/en.m3u8\",CHANNELS=\"2\"\r\n",
        "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000,URI=\"iframe.m3u8\"\r\n",
        "# a comment\r\n",
        "#EXT-X-STREAM-INF:BANDWIDTH=1280000,AVERAGE-BANDWIDTH=1000000,CODECS=\"avc1.4d401f,mp4a.40.2\",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO=\"aac\"\r\n",
        "#EXT-X-UNKNOWN:9\r\n",
        "https://{$host}/mid/index.m3u8\r\n",
        "#EXT-X-STREAM-INF:BANDWIDTH=\"64000\", CODECS=mp4a.40.5\r\n",
        "audio-only.m3u8  \r\n",
        "#EXT-X-STREAM-INF:NAME=x\r\nno-bandwidth.m3u8\r\n",
    ));
    assert!(playlist.is_independent);
    assert_eq!(playlist.variables.get("host").map(String::as_str), Some("cdn.example"));
    let [mid, audio, other] = &playlist.variants[..] else { panic!("{playlist:?}") };
    assert_eq!(
        *mid,
        Variant {
            uri: "https://cdn.example/mid/index.m3u8".into(),
            bandwidth_bps: 1_280_000,
            average_bandwidth_bps: Some(1_000_000),
            codecs: Some("avc1.4d401f,mp4a.40.2".into()),
            resolution: Some((1280, 720)),
            frame_rate_hz: Some(29.97),
            audio: Some("aac".into()),
            video: None,
            subtitles: None,
        }
    );
    assert_eq!(
        (audio.bandwidth_bps, &audio.uri[..], audio.codecs.as_deref()),
        (64_000, "audio-only.m3u8", Some("mp4a.40.5"))
    );
    assert_eq!((other.bandwidth_bps, &other.uri[..]), (0, "no-bandwidth.m3u8"));
    let [rendition] = &playlist.renditions[..] else { panic!("{playlist:?}") };
    assert_eq!((rendition.kind, &rendition.name[..]), (RenditionKind::Audio, "English, main"));
    assert_eq!(
        (rendition.group.as_str(), rendition.uri.as_deref()),
        ("aac", Some("audio/en.m3u8"))
    );
    assert!(rendition.is_default && rendition.is_autoselect);
}

#[test]
fn a_media_playlist() {
    let playlist = media(&with(concat!(
        "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-START:TIME-OFFSET=-4.5,PRECISE=YES\n",
        "#EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"800@0\"\n",
        "#EXT-X-KEY:METHOD=AES-128,URI=\"key\",IV=0x000000000000000000000000000000ff\n",
        "#EXT-X-PROGRAM-DATE-TIME:2026-11-24T10:00:00Z\n",
        "#EXTINF:6.006,a title\n#EXT-X-BYTERANGE:1000@800\nall.mp4\n",
        "#EXTINF:5\n#EXT-X-BYTERANGE:500\nall.mp4\n",
        "#EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-GAP\n#EXTINF:4,\nother.mp4\n",
        "left-out.mp4\n",
        "#EXT-X-PROGRAM-DATE-TIME:yesterday\n#EXTINF:3,\nlast.mp4\n#EXT-X-ENDLIST\n",
    )));
    let segments = &playlist.segments;
    assert_eq!(segments.iter().map(|segment| segment.number).collect::<Vec<_>>(), [7, 8, 9, 10]);
    assert_eq!(
        segments.iter().map(|segment| segment.duration_us).collect::<Vec<_>>(),
        [6_006_000, 5_000_000, 4_000_000, 3_000_000]
    );
    assert_eq!(playlist.duration_us(), 18_006_000);
    let at = 1_795_514_400_000_000;
    let times = [at, at + 6_006_000, at + 11_006_000, at + 15_006_000].map(Some);
    assert_eq!(segments.iter().map(|segment| segment.program_time_us).collect::<Vec<_>>(), times);
    assert_eq!(segments[0].byte_range, Some(ByteRange { offset: 800, bytes: 1_000 }));
    assert_eq!(segments[1].byte_range, Some(ByteRange { offset: 1_800, bytes: 500 }));
    assert_eq!(segments[2].byte_range, None);
    let init = InitSection {
        uri: "init.mp4".into(),
        byte_range: Some(ByteRange { offset: 0, bytes: 800 }),
    };
    assert!(segments.iter().all(|segment| segment.init.as_deref() == Some(&init)));
    assert_eq!(
        segments[0]
            .keys
            .iter()
            .map(|key| (&key.method[..], &key.uri[..], key.iv))
            .collect::<Vec<_>>(),
        [("AES-128", "key", Some(255))]
    );
    assert!(segments[2].keys.is_empty() && segments[2].is_gap && segments[2].is_discontinuity);
    assert_eq!(
        segments.iter().map(|segment| segment.discontinuity_number).collect::<Vec<_>>(),
        [3, 3, 4, 4]
    );
    assert_eq!((playlist.kind, playlist.has_ended), (Some(PlaylistKind::Vod), true));
    assert_eq!(playlist.start, Some(Start { time_offset_us: -4_500_000, is_precise: true }));
}

#[test]
fn a_low_latency_playlist() {
    // What a low-latency origin (multimux) writes, shortened.
    let playlist = media(&with(concat!(
        "#EXT-X-VERSION:9\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.75,CAN-SKIP-UNTIL=12.0\n",
        "#EXT-X-PART-INF:PART-TARGET=0.25\n#EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n",
        "#EXT-X-PART:DURATION=0.25,URI=\"s103.mp4\",BYTERANGE=\"100@0\",INDEPENDENT=YES\n",
        "#EXT-X-PART:DURATION=0.25,URI=\"s103.mp4\",BYTERANGE=\"50\",GAP=YES\n",
        "#EXTINF:0.5,\ns103.mp4\n",
        "#EXT-X-PART:DURATION=0.2,URI=\"s104.0.mp4\"\n",
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"s104.1.mp4\",BYTERANGE-START=7\n",
        "#EXT-X-PRELOAD-HINT:TYPE=LATER,URI=\"x\"\n",
        "#EXT-X-RENDITION-REPORT:URI=\"../other.m3u8\",LAST-MSN=104,LAST-PART=0\n",
    )));
    assert_eq!(playlist.version, 9);
    assert_eq!(playlist.part_target_us, Some(250_000));
    assert_eq!(
        playlist.server_control,
        ServerControl {
            can_block_reload: true,
            can_skip_until_us: Some(12_000_000),
            can_skip_date_ranges: false,
            hold_back_us: None,
            part_hold_back_us: Some(750_000),
        }
    );
    assert_eq!((playlist.segments[0].number, playlist.skipped_segments), (103, Some(3)));
    let ranges: Vec<_> =
        playlist.segments[0].parts.iter().map(|part| part.byte_range.unwrap()).collect();
    assert_eq!(ranges, [ByteRange { offset: 0, bytes: 100 }, ByteRange { offset: 100, bytes: 50 }]);
    assert!(playlist.segments[0].parts[0].is_independent && playlist.segments[0].parts[1].is_gap);
    assert_eq!(playlist.parts.len(), 1);
    let hint =
        PreloadHint { kind: HintKind::Part, uri: "s104.1.mp4".into(), offset: 7, bytes: None };
    assert_eq!(playlist.preload_hints, [hint]);
    assert_eq!(
        (playlist.rendition_reports[0].last_sequence, playlist.rendition_reports[0].last_part),
        (Some(104), Some(0))
    );
    assert!(!playlist.has_ended);
}

#[test]
fn variables_come_from_the_playlist_the_master_and_the_uri() {
    let text = with(concat!(
        "#EXT-X-DEFINE:IMPORT=\"path\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXT-X-DEFINE:NAME=\"ext\",VALUE=\"ts?{$path}\"\n",
        "#EXTINF:1,\n{$path}/1.{$ext}&t={$token}\n",
    ));
    let variables = Variables {
        imported: [("path".to_owned(), "a/b".to_owned())].into(),
        query: [("token".to_owned(), "7".to_owned())].into(),
    };
    let Ok(Playlist::Media(playlist)) = Playlist::parse_with(text.as_bytes(), &variables) else {
        panic!("{text}")
    };
    assert_eq!(playlist.segments[0].uri, "a/b/1.ts?a/b&t=7");
    let error = Playlist::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 3: #EXT-X-DEFINE imports path, which the master playlist has not");
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    for (text, expect) in [
        ("", "line 1: #EXTM3U is missing; it begins with \"\""),
        ("\n<!DOCTYPE html>", "line 2: #EXTM3U is missing; it begins with \"<!DOCTYPE html>\""),
        ("#EXTM3U\n#EXTINF:1,\na.ts\n", "line 3: #EXT-X-TARGETDURATION is missing"),
        (
            "#EXTM3U\n",
            "line 1: playlist has neither segments (#EXTINF) nor variants (#EXT-X-STREAM-INF)",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n",
            "line 2: #EXT-X-STREAM-INF is not followed by a URI",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=fast\na",
            "line 2: #EXT-X-STREAM-INF has BANDWIDTH=\"fast\": invalid digit found in string",
        ),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:RESOLUTION=720p\na",
            "line 2: #EXT-X-STREAM-INF has RESOLUTION=\"720p\", not widthxheight",
        ),
        (
            "#EXTM3U\n#EXT-X-MEDIA:TYPE=SMELL,GROUP-ID=\"a\"\n",
            "line 2: #EXT-X-MEDIA has TYPE=\"SMELL\"",
        ),
        ("#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO\n", "line 2: #EXT-X-MEDIA has no GROUP-ID"),
        (
            "#EXTM3U\n#EXT-X-TARGETDURATION:long\n",
            "line 2: #EXT-X-TARGETDURATION has \"long\", not seconds",
        ),
    ] {
        assert_eq!(Playlist::parse(text.as_bytes()).unwrap_err().to_string(), expect, "{text}");
    }
    for (line, expect) in [
        ("#EXTINF:-1,", "#EXTINF has the duration \"-1\", not seconds"),
        ("#EXTINF:1e99,", "#EXTINF has the duration \"1e99\", not seconds"),
        ("#EXT-X-MAP:BYTERANGE=\"1\"", "#EXT-X-MAP has no URI"),
        ("#EXT-X-MAP:URI=\"a", "#EXT-X-MAP has no end of the quotes of URI"),
        ("#EXT-X-KEY:METHOD=AES-128", "#EXT-X-KEY has no URI"),
        (
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=9",
            "#EXT-X-KEY has IV=\"9\", not 0x and 32 digits",
        ),
        ("#EXT-X-MEDIA-SEQUENCE:-1", "#EXT-X-MEDIA-SEQUENCE has \"-1\", not a number"),
        ("#EXT-X-PLAYLIST-TYPE:LIVE", "#EXT-X-PLAYLIST-TYPE is \"LIVE\", neither VOD nor EVENT"),
        ("#EXT-X-PART:URI=\"a\"", "#EXT-X-PART has no DURATION"),
        ("#EXT-X-SKIP:x", "#EXT-X-SKIP has \"x\" where an attribute is due"),
        ("#EXT-X-DEFINE:VALUE=1", "#EXT-X-DEFINE has none of NAME, IMPORT, QUERYPARAM"),
        (
            "#EXT-X-DEFINE:NAME=a,VALUE=b\n#EXT-X-MAP:URI=\"{$c}\"",
            "#EXT-X-MAP has an undefined variable c",
        ),
    ] {
        let error = Playlist::parse(with(line).as_bytes()).unwrap_err();
        assert!(error.to_string().ends_with(&format!(": {expect}")), "{error}");
        assert!(error.line >= 3);
    }
    let range = with("#EXTINF:1,\n#EXT-X-BYTERANGE:18446744073709551615@9\na.ts");
    let error = Playlist::parse(range.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 5: URI has a byte range beyond any file");
}

#[test]
fn ffmpeg_rounds_the_target_duration_to_nothing() {
    let playlist =
        media("#EXTM3U\n#EXT-X-TARGETDURATION:0\n#EXTINF:0.4,\na.ts\n#EXTINF:0.2,\nb.ts\n");
    assert_eq!(playlist.target_duration_us, 400_000);
}

#[test]
fn bytes_that_are_not_utf_8_are_no_obstacle() {
    let text = [with("#EXTINF:1,caf").as_bytes(), &[0xe9], b"\na.ts\n"].concat();
    let Ok(Playlist::Media(playlist)) = Playlist::parse(&text) else { panic!() };
    assert_eq!(playlist.segments[0].uri, "a.ts");
}

#[test]
fn variables_cannot_blow_a_playlist_up() {
    let mut text = with(&format!("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{}\"\n", "x".repeat(30_000)));
    text.push_str(&"#EXTINF:1,\n{$a}\n".repeat(2_000));
    let error = Playlist::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("variables make the playlist larger"), "{error}");
    let line = with(&format!(
        "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{}\"\n{}\n",
        "x".repeat(3_000),
        "{$a}".repeat(99)
    ));
    assert!(Playlist::parse(line.as_bytes()).unwrap_err().to_string().contains("too long"));
}

#[test]
fn segments_are_placed_and_dates_reach_back_to_those_before_the_first() {
    let playlist = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXTINF:1.5,\nb.ts\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:01:00Z\n#EXTINF:2,\nc.ts\n#EXTINF:2,\nd.ts\n",
    );
    let of = |segment: &Segment| (segment.offset_us, segment.program_time_us.unwrap());
    assert_eq!(
        playlist.segments.iter().map(of).collect::<Vec<_>>(),
        [
            (0, 56_500_000),
            (2_000_000, 58_500_000),
            (3_500_000, 60_000_000),
            (5_500_000, 62_000_000)
        ]
    );
}

#[test]
fn a_delta_update_takes_what_it_skips_from_the_playlist_before() {
    let before = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-MAP:URI=\"i\"\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10Z\n#EXTINF:2,\n7.m4s\n#EXTINF:2,\n8.m4s\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\n9.m4s\n",
    );
    let update = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:8\n#EXT-X-SKIP:SKIPPED-SEGMENTS=2\n#EXTINF:2,\n10.m4s\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\n11.m4s\n",
    );
    let whole = update.with_skipped(&before).unwrap();
    let of = |s: &Segment| {
        (s.number, s.uri.clone(), s.discontinuity_number, s.program_time_us.unwrap_or(0))
    };
    assert_eq!(
        whole.segments.iter().map(of).collect::<Vec<_>>(),
        [
            (8, "8.m4s".into(), 0, 12_000_000),
            (9, "9.m4s".into(), 1, 14_000_000),
            (10, "10.m4s".into(), 1, 16_000_000),
            (11, "11.m4s".into(), 2, 18_000_000)
        ]
    );
    assert!(whole.segments.iter().all(|segment| segment.init.is_some()));
    let later = MediaPlaylist { media_sequence: 9, ..update.clone() };
    assert_eq!(later.with_skipped(&before), None, "one of them is not known");
}
