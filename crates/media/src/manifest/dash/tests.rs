use super::*;
use crate::manifest::ByteRange;

fn parse(body: &str) -> Manifest {
    Manifest::parse(body.as_bytes()).unwrap()
}

fn urls(segments: impl Iterator<Item = Segment>) -> Vec<(u64, i64, u64, String)> {
    segments
        .take(20)
        .map(|segment| (segment.number, segment.time_us, segment.duration_us, segment.location.url))
        .collect()
}

fn only(manifest: &Manifest) -> &Representation {
    &manifest.periods[0].adaptation_sets[0].representations[0]
}

/// An MPD with one representation, whose segments are these.
fn of(mpd: &str, segments: &str) -> String {
    format!(
        "<MPD {mpd}><Period><AdaptationSet mimeType='video/mp4'><Representation id='v' bandwidth='9'>\
         {segments}</Representation></AdaptationSet></Period></MPD>"
    )
}

#[test]
fn a_static_manifest_of_two_periods() {
    let manifest = parse(
        r#"<?xml version="1.0" encoding="utf-8"?>
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT20S" minBufferTime="PT2S">
          <BaseURL>https://cdn.example/?a=1&amp;b=2</BaseURL>
          <Period id="first" duration="PT9.5S">
            <AdaptationSet contentType="video" frameRate="30000/1001" codecs="avc1.64001f" mimeType="video/mp4">
              <SegmentTemplate timescale="1000" startNumber="5" duration="4000" initialization="$RepresentationID$/init.mp4"/>
              <Representation id="hi" bandwidth="2000000" width="1280" height="720">
                <BaseURL>video/</BaseURL>
                <SegmentTemplate media="$RepresentationID$/$Number%03d$.m4s"/>
              </Representation>
            </AdaptationSet>
            <AdaptationSet lang="en" mimeType="audio/mp4"><Representation id="a" bandwidth="64000" codecs="mp4a.40.2">
              <SegmentTemplate timescale="48000" presentationTimeOffset="96000" media="a-$Time$.m4s">
                <SegmentTimeline><S t="96000" d="48000" r="1"/><S d="24000"/></SegmentTimeline>
              </SegmentTemplate></Representation></AdaptationSet>
          </Period>
          <Period><AdaptationSet mimeType="application/ttml+xml"><Representation id="t"/></AdaptationSet></Period>
        </MPD>"#,
    );
    assert!(!manifest.is_dynamic);
    assert_eq!(
        (manifest.duration_us, manifest.minimum_buffer_us),
        (Some(20_000_000), Some(2_000_000))
    );
    let [first, second] = &manifest.periods[..] else { panic!("{manifest:?}") };
    assert_eq!(
        (first.start_us, first.duration_us, first.id.as_deref()),
        (0, Some(9_500_000), Some("first"))
    );
    assert_eq!((second.start_us, second.duration_us), (9_500_000, Some(10_500_000)));

    let video = &first.adaptation_sets[0];
    let hi = &video.representations[0];
    assert_eq!(
        (video.kind, hi.bandwidth_bps, hi.width, hi.height),
        (ContentKind::Video, 2_000_000, Some(1280), Some(720))
    );
    assert_eq!(hi.base_urls, ["https://cdn.example/?a=1&b=2", "video/"]);
    assert_eq!(hi.codecs.as_deref(), Some("avc1.64001f"));
    assert!((hi.frame_rate_hz.unwrap() - 29.97).abs() < 0.01);
    assert_eq!(hi.initialization.as_ref().unwrap().url, "hi/init.mp4");
    let expect = [
        (5, 0, 4_000_000, "hi/005.m4s".to_owned()),
        (6, 4_000_000, 4_000_000, "hi/006.m4s".to_owned()),
        (7, 8_000_000, 1_500_000, "hi/007.m4s".to_owned()),
    ];
    assert_eq!(urls(hi.segments()), expect);
    assert_eq!(urls(hi.available(&manifest, 0)), expect);
    for (time_us, number) in
        [(-5, 5), (0, 5), (3_999_999, 5), (4_000_000, 6), (9_499_999, 7), (99_000_000, 7)]
    {
        assert_eq!(hi.segment_at(time_us).unwrap().number, number, "{time_us}");
    }
    assert_eq!(hi.segment(6).unwrap().time_us, 4_000_000);
    assert_eq!((hi.segment(4), hi.segment(8)), (None, None));

    let audio = &first.adaptation_sets[1];
    assert_eq!((audio.kind, audio.language.as_deref()), (ContentKind::Audio, Some("en")));
    assert_eq!(
        urls(audio.representations[0].segments()),
        [
            (1, 0, 1_000_000, "a-96000.m4s".to_owned()),
            (2, 1_000_000, 1_000_000, "a-144000.m4s".to_owned()),
            (3, 2_000_000, 500_000, "a-192000.m4s".to_owned()),
        ]
    );
    assert_eq!(second.adaptation_sets[0].kind, ContentKind::Other);
}

#[test]
fn single_files_and_lists() {
    let single = parse(&of(
        "mediaPresentationDuration='PT10S'",
        "<BaseURL>v.mp4</BaseURL><SegmentBase indexRange='800-1199' timescale='90000' presentationTimeOffset='90000'>\
         <Initialization range='0-799'/></SegmentBase>",
    ));
    let representation = only(&single);
    let index_range = Some(ByteRange { offset: 800, bytes: 400 });
    assert_eq!(
        representation.single_file,
        Some(SingleFile { index_range, presentation_time_offset_us: 1_000_000 })
    );
    let head =
        Location { url: String::new(), byte_range: Some(ByteRange { offset: 0, bytes: 800 }) };
    assert_eq!(representation.initialization, Some(head));
    assert_eq!(representation.segments().count(), 0);
    let plain = parse(&of("", "<BaseURL>v.webm</BaseURL>"));
    assert_eq!(only(&plain).single_file, Some(SingleFile::default()));

    let list = parse(&of(
        "mediaPresentationDuration='PT10S'",
        "<SegmentList duration='4'><Initialization sourceURL='i.mp4'/><SegmentURL media='1.mp4'/>\
         <SegmentURL media='2.mp4' mediaRange='5-9'/><SegmentURL media='3.mp4'/></SegmentList>",
    ));
    let segments: Vec<_> = only(&list).segments().collect();
    assert_eq!(segments.len(), 3);
    assert_eq!(segments[1].location.byte_range, Some(ByteRange { offset: 5, bytes: 5 }));
    assert_eq!((segments[2].time_us, segments[2].duration_us), (8_000_000, 2_000_000));
    assert_eq!(only(&list).segment_at(99_000_000).unwrap().location.url, "3.mp4");
}

#[test]
fn a_live_window_moves_with_time() {
    let start_us = 1_795_514_400_000_000;
    let live = |template: &str| {
        parse(&of(
            "type='dynamic' availabilityStartTime='2026-11-24T10:00:00Z' timeShiftBufferDepth='PT6S' \
             minimumUpdatePeriod='PT2S' suggestedPresentationDelay='PT4S'",
            template,
        ))
    };
    let manifest = live("<SegmentTemplate duration='2' media='$Number$' startNumber='0'/>");
    assert_eq!(manifest.availability_start_us, Some(start_us));
    assert_eq!(
        (manifest.minimum_update_period_us, manifest.suggested_presentation_delay_us),
        (Some(2_000_000), Some(4_000_000))
    );
    let numbers = |manifest: &Manifest, after_s: f64| -> Vec<u64> {
        let now = start_us + (after_s * 1e6) as i64;
        only(manifest).available(manifest, now).take(20).map(|segment| segment.number).collect()
    };
    for (after_s, expect) in [
        (-1.0, &[][..]),
        (1.9, &[]),
        (2.0, &[0]),
        (7.9, &[0, 1, 2]),
        (11.0, &[2, 3, 4]),
        (100_000.0, &[49_997, 49_998, 49_999]),
    ] {
        assert_eq!(numbers(&manifest, after_s), expect, "{after_s}");
    }
    // Chunks of a segment are available 1.5 s before its end.
    let early = live(
        "<SegmentTemplate duration='2' media='$Number$' startNumber='0' availabilityTimeOffset='1.5'/>",
    );
    assert_eq!(numbers(&early, 0.4), [] as [u64; 0]);
    assert_eq!(numbers(&early, 0.5), [0]);
    assert_eq!(numbers(&early, 10.5), [2, 3, 4, 5]);
    let timeline = live(
        "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='4' d='2' r='3'/></SegmentTimeline></SegmentTemplate>",
    );
    assert_eq!(numbers(&timeline, 12.0), [2, 3, 4]);
    assert_eq!(numbers(&timeline, 9.0), [1, 2]);
    let open = live(
        "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='0' d='2' r='-1'/></SegmentTimeline></SegmentTemplate>",
    );
    assert_eq!(numbers(&open, 11.0), [3, 4, 5]);
    assert_eq!(urls(only(&open).segments()), [] as [(u64, i64, u64, String); 0]);
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let is_legal = |error: &str| error.ends_with("not read") || error.ends_with("not loaded");
    for (text, expect) in [
        ("", "line 1: XML ends before its root element does"),
        ("<html/>", "line 1: element is the root, not MPD: html"),
        ("<MPD>\n<Period>", "line 2: XML ends before its root element does"),
        ("<MPD/>", "line 1: MPD has no Period"),
        (
            "<MPD type='dynamic'><Period/></MPD>",
            "line 1: MPD is dynamic and has no availabilityStartTime",
        ),
        (
            "<MPD>\n\n<Period xlink:href='http://x'/></MPD>",
            "line 3: Period is remote (xlink:href), which is not loaded",
        ),
        (
            "<MPD>\n<Period/>\n<Period/></MPD>",
            "line 3: Period has no start, and the period before it has no duration",
        ),
        (
            "<MPD mediaPresentationDuration='10s'/>",
            "line 1: MPD has mediaPresentationDuration=\"10s\", which is not a duration such as PT1.5S",
        ),
        (
            "<!DOCTYPE a [<!ENTITY b 'c'>]><MPD/>",
            "line 1: XML has a document type definition, which is not read",
        ),
        (
            "<MPD><BaseURL>&b;</BaseURL></MPD>",
            "line 1: XML uses an entity that XML does not define",
        ),
    ] {
        let error = Manifest::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expect, "{text}");
        assert_eq!(error.is_unsupported(), is_legal(expect), "{text}");
    }
    for (segments, expect) in [
        ("<SegmentTemplate/>", "SegmentTemplate has no media"),
        (
            "<SegmentTemplate media='$Numbr$'/>",
            "SegmentTemplate has a template with the unknown $Numbr$",
        ),
        ("<SegmentTemplate media='a' timescale='0'/>", "SegmentTemplate has a timescale of 0"),
        ("<SegmentTemplate media='a' duration='0'/>", "SegmentTemplate has a duration of 0"),
        ("<SegmentList/>", "SegmentList has no SegmentURL"),
        (
            "<SegmentBase indexRange='9'/>",
            "SegmentBase has indexRange=\"9\", which is not a byte range such as 0-799",
        ),
        (
            "<SegmentBase indexRange='9-8'/>",
            "SegmentBase has indexRange=\"9-8\", which is not a byte range such as 0-799",
        ),
        (
            "<SegmentList xlink:href='x'/>",
            "SegmentList is remote (xlink:href), which is not loaded",
        ),
    ] {
        let error = Manifest::parse(of("", segments).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("line 1: {expect}"));
        assert_eq!(error.is_unsupported(), is_legal(expect), "{segments}");
    }
    let empty = "<MPD><Period xlink:href='urn:mpeg:dash:resolve-to-zero:2013'/><Period start='PT3S'/></MPD>";
    assert_eq!(parse(empty).periods[0].start_us, 3_000_000);
    let deep = "<a>".repeat(40);
    assert!(
        Manifest::parse(deep.as_bytes()).unwrap_err().to_string().contains("more than 32 deep")
    );
}

#[test]
fn bombs_of_entities_and_of_runs_have_no_effect() {
    let bomb = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><MPD><Period id='&b;'/></MPD>";
    assert!(Manifest::parse(bomb.as_bytes()).is_err());
    let runs = of(
        "",
        "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='0' d='1' r='9000000000'/></SegmentTimeline></SegmentTemplate>",
    );
    let manifest = parse(&runs);
    assert_eq!(only(&manifest).segment_at(8_000_000_000_000_000).unwrap().number, 8_000_000_001);
    assert_eq!(urls(only(&manifest).segments()).len(), 20);
}
