//! A brief fuzz test that runs with every `cargo test`: valid packets and files of every kind with
//! simple damage, many times a parser. The seed is fixed, so that a failure repeats; long fuzzing
//! is in `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

use throng_media::mark::Mark;
use throng_media::rtcp::{Arrival, Report, ReportBlock, RtcpWriter, SenderInfo};
use throng_media::rtp::{
    AbsCaptureTime, AbsSendTime, AudioLevel, Extension, ExtensionIds, Extensions, HeaderFields,
    NtpTime, PlayoutDelay, write_header,
};

const ROUNDS: usize = 500_000;
/// Magic words of the file formats.
const FILE_WORDS: &[&[u8]] =
    &[&[0, 0, 1], b"OggS", b"OpusHead", b"MEET", b"MEETECHO", b"\"c\":\"h264\""];

fn rtp_packet(first_id: u8, extensions: &Extensions<'_>, payload: &[u8]) -> Vec<u8> {
    let ids = ExtensionIds::from_pairs(
        Extension::ALL.iter().zip(first_id..).map(|(e, id)| (id, e.uri())),
    );
    let fields =
        HeaderFields { payload_type: 96, marker: true, sequence: 65_535, timestamp: 1, ssrc: 2 };
    let mut packet = Vec::new();
    write_header(&mut packet, &fields, &ids, extensions);
    packet.extend_from_slice(payload);
    packet
}

#[test]
fn rtp_holds_its_laws_for_any_bytes() {
    let full = Extensions {
        abs_send_time: Some(AbsSendTime(7)),
        abs_capture_time: Some(AbsCaptureTime {
            captured: NtpTime(1 << 63),
            clock_offset: Some(-1),
        }),
        transport_sequence: Some(9),
        mid: Some("0"),
        rid: Some("hi"),
        repaired_rid: Some("lo"),
        audio_level: Some(AudioLevel { voice: true, minus_dbov: 12 }),
        dependency_descriptor: Some(&[0xc0, 0, 1]),
        video_orientation: Some(1),
        playout_delay: Some(PlayoutDelay { min_ms: 0, max_ms: 100 }),
    };
    let mut padded = rtp_packet(1, &full, &[1, 2, 3, 0, 2]);
    padded[0] |= 0x20;
    let mut with_sources = rtp_packet(1, &Extensions::default(), &[0; 12]);
    with_sources[0] |= 3;
    let seeds = [
        rtp_packet(1, &Extensions::default(), &[0; 40]),
        rtp_packet(1, &full, &[0; 10]),
        rtp_packet(6, &full, &[0; 10]),
        padded,
        with_sources,
    ];
    hunt::hunt(laws::rtp, &seeds, &[], ROUNDS);
}

#[test]
fn rtcp_holds_its_laws_for_any_bytes() {
    let sender = SenderInfo { ssrc: 1, ntp: NtpTime(1 << 63), ..SenderInfo::default() };
    let block = ReportBlock { ssrc: 2, cumulative_lost: -1, ..ReportBlock::default() };
    let arrivals: Vec<_> = [1, 2, 3, 5, 40, 41, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52]
        .into_iter()
        .map(|sequence| Arrival {
            sequence,
            arrived_us: u64::from(sequence % 7) * 40_000 + 1_000_000,
        })
        .collect();
    let build = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let seeds = [
        build(&|out| {
            let _ = RtcpWriter::compound(out, Report::Sender(&sender), &[block; 2], "viewer-7")
                .bye(&[1]);
        }),
        build(&|out| {
            let _ = RtcpWriter::compound(out, Report::Receiver(1), &[block; 33], "").nack(
                1,
                2,
                &[3, 9, 40],
            );
        }),
        build(&|out| {
            let _ = RtcpWriter::reduced_size(out).transport_feedback(1, 2, &mut 0, &arrivals);
        }),
        build(&|out| {
            let _ = RtcpWriter::reduced_size(out)
                .picture_loss(1, 2)
                .full_intra_request(1, 2, 3)
                .remb(1, 2_500_000, &[2, 3]);
        }),
        vec![0x80, 207, 0, 4, 0, 0, 0, 1, 4, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8],
        [&[0x80, 207, 0, 8, 0, 0, 0, 1, 5, 0, 0, 6][..], &[7; 24]].concat(),
        vec![0x83, 204, 0, 3, 0, 0, 0, 1, b't', b'e', b's', b't', 1, 2, 3, 4],
        vec![0xa0, 201, 0, 2, 0, 0, 0, 9, 0, 0, 0, 4],
    ];
    hunt::hunt(laws::rtcp, &seeds, &[], ROUNDS);
}

/// Packets of codec `choice` in the form that [`laws::codec`] reads.
fn stream(choice: u8, packets: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = vec![choice];
    for (descriptor, payload) in packets {
        bytes.push(descriptor.len() as u8);
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend_from_slice(descriptor);
        bytes.extend_from_slice(payload);
    }
    bytes
}

fn marks() -> (Vec<u8>, Vec<u8>) {
    let mark = Mark { frame: 7, captured_unix_ns: 1_700_000_000_000_000_000 };
    let (mut h264, mut h265) = (Vec::new(), Vec::new());
    mark.write_h264(&mut h264);
    mark.write_h265(&mut h265);
    (h264, h265)
}

#[test]
fn codecs_hold_their_laws_for_any_bytes() {
    let (h264, h265) = marks();
    // A dependency structure of one template, one decode target and no chains.
    let structure: &[u8] = &[0x80, 0, 1, 0x80, 0, 0x38, 0x00];
    let mut transport_packet = [0xff; 188];
    transport_packet[..4].copy_from_slice(&[0x47, 0x41, 0, 0x10]);
    let seeds = [
        stream(
            0,
            &[
                (&[], &h264),
                (&[], &[0x7c, 0x85, 0x88]),
                (&[], &[0x78, 0, 2, 0x67, 1, 0, 2, 0x65, 0x88]),
            ],
        ),
        stream(0, &[(&[], &[0x79, 0, 1, 0, 2, 0x41, 0x9a]), (&[], &[0x7d, 0x85, 0, 1, 0x88])]),
        stream(
            1,
            &[
                (&[], &h265),
                (&[], &[0x62, 1, 0x93, 0x80]),
                (&[], &[0x60, 1, 0, 3, 66, 1, 9, 0, 2, 2, 1]),
            ],
        ),
        stream(1, &[(&[], &[0x64, 1, 0x62, 0x10, 9, 0x81, 0x80]), (&[], &[0x02, 3, 0x80])]),
        stream(2, &[(&[], &[0x90, 0xf0, 0x80, 5, 9, 0x83, 0]), (&[], &[0x10, 1])]),
        stream(3, &[(&[], &[0xba, 0x80, 1, 0x00, 0x38, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0x04, 1])]),
        stream(3, &[(&[], &[0x78, 0x03, 0x03, 0x02, 0]), (&[], &[0x68, 0x20, 9, 0])]),
        stream(
            4,
            &[
                (structure, &[0x18, 0x30, 0x10]),
                (&[0xc0, 0, 2], &[0x28, 2, 0x08, 0, 0x34, 0x48, 0x10]),
            ],
        ),
        stream(4, &[(&[], &[0x08, 2, 0x08, 0, 2, 0x32, 1, 0x10]), (&[], &[0x90, 1])]),
        stream(5, &[(&[], &[0x7b, 3, 0]), (&[], &[0x78, 0])]),
        stream(6, &[(&[], &[0xff; 20])]),
        stream(8, &[(&[], &[1, 2, 3])]),
        stream(9, &[(&[], &[4, 0, 0x31, 0, 0x40, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0xb3])]),
        stream(
            9,
            &[(&[], &[0, 0, 0, 0, 0, 0, 1, 0xb8, 0, 0, 1, 0, 0, 0x9f]), (&[], &[0, 0, 0x13, 0, 5])],
        ),
        stream(10, &[(&[], &[0, 0, 1, 0xb3, 0, 0x10, 7, 0, 0, 1, 0xb6, 0x10])]),
        stream(11, &[(&[], &[0, 0, 0, 0, 0x41, 0xff, 80, 45, 0, 16, 255, 255, 0, 0, 0, 2, 8, 8])]),
        stream(12, &[(&[], &transport_packet)]),
        stream(13, &[(&[], &[0, 0x10, 0, 0x18, 1, 2, 3]), (&[], &[0, 0x10, 0x7d, 0, 1])]),
        stream(
            13,
            &[(&[], &[3, 1, 2, 3]), (&[], &[9, 1]), (&[], &[0x82, 0x10, 0x90, 0x90, 0x90, 0x80])],
        ),
        stream(
            14,
            &[(&[], &[0, 0, 0, 0, 0xff, 0xfd, 0xe0, 0xc4]), (&[], &[4, 0xff, 0xfb, 0x50, 0xc4])],
        ),
    ];
    hunt::hunt(laws::codec, &seeds, &[], ROUNDS);
}

#[test]
fn marks_hold_their_laws_for_any_bytes() {
    let (h264, h265) = marks();
    let behind = [&[6, 1, 4, 0, 0, 3, 1, 9, 9], &h264[1..]].concat();
    hunt::hunt(laws::mark, &[h264, h265, behind], &[], ROUNDS);
}

#[test]
fn containers_hold_their_laws_for_any_bytes() {
    // The Ogg checksum is corrected and computed bit by bit, which bounds how many files fit into a
    // test.
    hunt::hunt(laws::container, &hunt::seeds_in("fuzz/seeds/container"), FILE_WORDS, 40_000);
}

#[test]
fn media_files_hold_their_laws_for_any_bytes() {
    hunt::hunt(laws::source, &hunt::seeds_in("fuzz/seeds/container"), FILE_WORDS, 20_000);
}

/// Box and element types, sizes beyond every file.
const TIMING_WORDS: &[&[u8]] = &[
    b"moov",
    b"trak",
    b"mdia",
    b"stbl",
    b"stsz",
    b"stz2",
    b"stsc",
    b"stco",
    b"co64",
    b"stts",
    b"ctts",
    b"stss",
    b"elst",
    b"moof",
    b"traf",
    b"tfhd",
    b"trun",
    b"tfdt",
    b"sidx",
    b"mdat",
    b"mvex",
    b"trex",
    &[0xff; 4],
    &[0xff; 8],
    &[0; 8],
    &[0, 0, 0, 1],
    &[0x47, 0x40, 0, 0x10],
    &[0, 0, 1, 0xe0],
    &[0x1f, 0x43, 0xb6, 0x75],
    &[0xa3],
    &[0xa0],
    &[0xa1],
    &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

const HLS_WORDS: &[&[u8]] = &[
    b"#EXTINF:",
    b"#EXT-X-BYTERANGE:",
    b"#EXT-X-KEY:METHOD=NONE\n",
    b"#EXT-X-SKIP:SKIPPED-SEGMENTS=",
    b"@",
    b"{$",
    b"#EXT-X-DISCONTINUITY\n",
    b"#EXT-X-ENDLIST\n",
    b"18446744073709551615",
    b"\n",
    b"\r",
    b"\"",
    b",",
    b"=",
    b"-",
    b"1e400",
    b"\xef\xbb\xbf",
    b"\xff",
];

const DASH_WORDS: &[&[u8]] = &[
    b"<S d='1' r='-1'/>",
    b"<S t='18446744073709551615' d='9'/>",
    b"<Period>",
    b"</Period>",
    b"<SegmentBase/>",
    b"$Number%064d$",
    b"$",
    b"&amp;",
    b"&#0;",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"xlink:href='x'",
    b"PT1e99S",
    b"INF",
    b"'",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775807",
    b"<?",
    b"<!DOCTYPE x>",
    b"\xff",
];

#[test]
fn timing_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::timing, &hunt::seeds_in("fuzz/seeds/timing"), TIMING_WORDS, 20_000);
}

#[test]
fn hls_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::hls, &hunt::seeds_in("fuzz/seeds/hls"), HLS_WORDS, 50_000);
}

#[test]
fn dash_holds_its_laws_for_any_bytes() {
    hunt::hunt(laws::dash, &hunt::seeds_in("fuzz/seeds/dash"), DASH_WORDS, 50_000);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("codec", laws::codec);
    hunt::replay("container", laws::container);
    hunt::replay("dash", laws::dash);
    hunt::replay("hls", laws::hls);
    hunt::replay("mark", laws::mark);
    hunt::replay("rtcp", laws::rtcp);
    hunt::replay("rtp", laws::rtp);
    hunt::replay("source", laws::source);
    hunt::replay("timing", laws::timing);
}
