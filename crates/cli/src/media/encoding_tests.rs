//! Command lines of `throng media make`, and what FFmpeg is asked for.

use clap::Parser;

use super::*;
use crate::args::{Arguments, Command, MediaCommand};

fn parsed(flags: &str) -> Result<MediaMake, String> {
    let line = ["throng", "media", "make", "-o", "d"].into_iter().chain(flags.split_whitespace());
    match Arguments::try_parse_from(line).map_err(|error| error.to_string())?.command {
        Command::Media(media) => {
            let MediaCommand::Make(make) = media.command;
            Ok(make)
        }
        _ => unreachable!("the line is of `throng media`"),
    }
}

fn encoding(flags: &str) -> Result<Encoding, String> {
    Encoding::of(&parsed(flags)?, 4).map_err(|error| error.error.to_string())
}

fn line(flags: &str, number: u32) -> String {
    encoding(flags).unwrap().arguments(number, 1_000_000).join(" ")
}

#[test]
fn the_container_and_the_audio_follow_the_codec() {
    let containers = ["mpeg2", "h264", "h265", "mpeg4", "vp9"].map(|codec| {
        let encoding = encoding(&format!("--codec {codec}")).unwrap();
        (encoding.container.key(), encoding.encoder(), encoding.audio_encoder())
    });
    let expected = [
        ("ts", "mpeg2video", "mp2"),
        ("mp4", "libx264", "aac"),
        ("mp4", "libx265", "aac"),
        ("mp4", "mpeg4", "aac"),
        ("webm", "libvpx-vp9", "libopus"),
    ];
    assert_eq!(containers, expected);
    assert_eq!(encoding("--codec vp9 --container mp4").unwrap().audio_encoder(), "aac");
}

#[test]
fn rates_and_sizes_are_read_with_their_units() {
    for (text, rate) in
        [("5M", 5_000_000), ("800k", 800_000), ("2.5Mbit/s", 2_500_000), ("300000", 300_000)]
    {
        assert_eq!(parsed(&format!("--bitrate {text}")).unwrap().bitrate, rate);
    }
    assert_eq!(parsed("--size 640x360").unwrap().size, (640, 360));
    for (flags, word) in [
        ("--bitrate 5", "such as 800k"),
        ("--bitrate fast", "such as 800k"),
        ("--size 641x360", "even numbers"),
        ("--count 0", "--count"),
        ("--fragmented --moov-last", "cannot be used with"),
    ] {
        let said = parsed(flags).unwrap_err();
        assert!(said.contains(word), "{flags}: {said}");
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused_by_name() {
    for (flags, word) in [
        ("--codec h264 --container webm", "cannot hold h264"),
        ("--codec vp9 --container ts", "cannot hold vp9"),
        ("--codec mpeg2 --fragmented", "--fragmented: only for --container mp4"),
        ("--codec vp9 --moov-last", "--moov-last: only for --container mp4"),
        ("--codec mpeg2 --fps 20", "24, 25, 30"),
        ("--bitrate 100k", "at least 200k"),
    ] {
        let said = encoding(flags).unwrap_err();
        assert!(said.contains(word), "{flags}: {said}");
    }
}

#[test]
fn the_index_of_an_mp4_is_where_the_flags_want_it() {
    assert!(line("", 1).contains("+faststart"));
    assert!(!line("--moov-last", 1).contains("movflags"));
    assert!(line("--fragmented", 1).contains("empty_moov"));
}

#[test]
fn files_differ_in_noise_colour_and_tone() {
    let (first, second) = (line("", 1), line("", 2));
    for part in ["all_seed=1,", "hue=h=37,", "sine=f=210:"] {
        assert!(first.contains(part) && !second.contains(part), "{part}: {first}");
    }
}

#[test]
fn key_frames_are_a_second_apart_unless_asked_otherwise() {
    assert!(line("--fps 30", 1).contains("-g 30 "));
    assert!(line("--codec h265 --gop 50", 1).contains("keyint=50:min-keyint=50"));
}

#[test]
fn a_single_file_uses_all_cores_and_many_use_one_each() {
    assert!(line("--count 1", 1).contains("-threads 4"));
    assert!(line("--count 30", 1).contains("-threads 1"));
}
