//! Coded pictures to decode: of the test card, of a stream that FFmpeg encodes, of a stream that a
//! tap stored.

use std::process::Stdio;

use throng_media::card::{self, Rung};
use throng_media::container::annexb;
use throng_media::container::ivf::IvfReader;
use throng_media::container::matroska::MatroskaReader;
use throng_observation::Codec;

use crate::ffmpeg::{DecodeError, Program};

/// A coded picture.
#[derive(Clone, Debug, PartialEq)]
pub struct CodedPicture {
    /// It can be decoded without others.
    pub key_frame: bool,
    /// Its time, milliseconds after the first.
    pub at_ms: f64,
    /// The frame in the decoder's format.
    pub bytes: Vec<u8>,
}

/// The test card, in order.
///
/// # Errors
/// [`DecodeError::Codec`] for any codec but H.264 and VP8.
pub fn card(rung: Rung, codec: Codec) -> Result<Vec<CodedPicture>, DecodeError> {
    let file = card::file(rung, codec).ok_or(DecodeError::Codec(codec))?;
    pictures_of(file, codec, f64::from(rung.fps()))
}

/// The pictures of an Annex-B stream (H.264) or an IVF file (the others), `fps` a second.
///
/// # Errors
/// [`DecodeError::Stream`] if the file is malformed.
pub fn pictures_of(file: &[u8], codec: Codec, fps: f64) -> Result<Vec<CodedPicture>, DecodeError> {
    let at_ms = |index: usize| index as f64 * 1e3 / fps;
    if codec == Codec::H264 {
        let units = annexb::h264_access_units(file).enumerate();
        return Ok(units
            .map(|(index, unit)| CodedPicture {
                key_frame: unit
                    .nals
                    .iter()
                    .any(|nal| nal.first().is_some_and(|head| head & 0x1f == 5)),
                at_ms: at_ms(index),
                bytes: unit.nals.iter().flat_map(|nal| [&[0, 0, 0, 1], *nal].concat()).collect(),
            })
            .collect());
    }
    let broken =
        |error: &dyn std::fmt::Display| DecodeError::Stream(format!("the coded stream: {error}"));
    let reader = IvfReader::new(file).map_err(|error| broken(&error))?;
    let is_key = |index: usize, frame: &[u8]| match codec {
        Codec::Vp8 => throng_media::packetise::vp8::is_key_frame(frame),
        Codec::Vp9 => throng_media::packetise::vp9::is_key_frame(frame),
        Codec::Av1 => throng_media::packetise::av1::starts_sequence(frame),
        _ => index == 0,
    };
    reader
        .enumerate()
        .map(|(index, frame)| {
            let data = frame.map_err(|error| broken(&error))?.data;
            Ok(CodedPicture {
                key_frame: is_key(index, data),
                at_ms: at_ms(index),
                bytes: data.to_vec(),
            })
        })
        .collect()
}

/// The codec and the pictures of a file that a tap stored, at their times of arrival.
///
/// # Errors
/// [`DecodeError::Stream`]; a truncated file is read to its last whole picture.
pub fn recorded_pictures(file: &[u8]) -> Result<(Codec, Vec<CodedPicture>), DecodeError> {
    let reader =
        MatroskaReader::new(file).map_err(|error| DecodeError::Stream(error.to_string()))?;
    let codec = reader.codec;
    let whole = reader.map_while(Result::ok).collect::<Vec<_>>();
    let first_ms = whole.first().map_or(0, |frame| frame.at_ms);
    let pictures = whole.into_iter().map(|frame| CodedPicture {
        key_frame: frame.key_frame,
        at_ms: frame.at_ms.saturating_sub(first_ms) as f64,
        bytes: frame.data.to_vec(),
    });
    Ok((codec, pictures.collect()))
}

/// The options of FFmpeg's encoder for a codec: fast, with the settings of a call.
fn encoder(codec: Codec) -> Option<&'static str> {
    Some(match codec {
        Codec::Vp8 => "-c:v libvpx -deadline realtime -cpu-used 8 -lag-in-frames 0 -f ivf",
        Codec::Vp9 => "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -lag-in-frames 0 -f ivf",
        Codec::Av1 => "-c:v libaom-av1 -usage realtime -cpu-used 9 -lag-in-frames 0 -f ivf",
        Codec::H264 => {
            "-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -f h264"
        }
        _ => return None,
    })
}

/// Encodes a moving picture for `seconds`, with a key frame at its start, so that it loops.
///
/// # Errors
/// Without FFmpeg, or if it has no such encoder.
pub fn encode(
    program: &Program,
    codec: Codec,
    (width, height): (u16, u16),
    fps: f64,
    bits_per_s: f64,
    seconds: u32,
) -> Result<Vec<CodedPicture>, DecodeError> {
    let arguments = encoder(codec).ok_or(DecodeError::Codec(codec))?;
    let source = format!("testsrc2=size={width}x{height}:rate={fps}:duration={seconds}");
    let rate = format!("{bits_per_s:.0}");
    let mut command = program.command();
    command.args([
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        &source,
        "-pix_fmt",
        "yuv420p",
        "-g",
        "9999",
    ]);
    command
        .args(["-b:v", &rate, "-maxrate", &rate, "-bufsize", &rate])
        .args(arguments.split(' '))
        .arg("pipe:1");
    let output = command.stdin(Stdio::null()).output().map_err(|error| program.failed(error))?;
    if !output.status.success() {
        let error_lines = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(DecodeError::GaveUp { error_lines });
    }
    let pictures = pictures_of(&output.stdout, codec, fps)?;
    if pictures.is_empty() {
        return Err(DecodeError::Stream("FFmpeg encoded nothing".into()));
    }
    Ok(pictures)
}
