//! `catalogue.json`: what is in a folder of files.

use std::path::Path;

use serde::Serialize;

use super::encoding::Encoding;

/// The name of the file.
pub(super) const NAME: &str = "catalogue.json";

/// A file, as ffprobe measured it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Entry {
    /// The name in the catalogue's folder.
    pub(super) file: String,
    /// The size.
    pub(super) bytes: u64,
    /// The length.
    pub(super) seconds: f64,
    /// Bits per second of the whole file.
    pub(super) bitrate: f64,
    /// Frames of video.
    pub(super) frames: u64,
}

impl Entry {
    /// How far the bitrate is from `bits_per_s`, as a ratio: 0.02 is 2 % too much.
    pub(super) fn off(&self, bits_per_s: u64) -> f64 {
        self.bitrate / bits_per_s as f64 - 1.0
    }
}

#[derive(Debug, Serialize)]
struct Catalogue<'a> {
    catalogue_version: u32,
    codec: &'static str,
    audio: &'static str,
    container: &'static str,
    /// The bitrate that was asked for.
    bitrate: u64,
    width: u32,
    height: u32,
    fps: u32,
    gop: u32,
    files: &'a [Entry],
}

/// Writes the catalogue of `files` into `folder`, at once: a reader never sees half of it.
pub(super) fn write(folder: &Path, encoding: &Encoding, files: &[Entry]) -> std::io::Result<()> {
    let catalogue = Catalogue {
        catalogue_version: 1,
        codec: encoding.codec.key(),
        audio: encoding.audio_encoder(),
        container: encoding.container.key(),
        bitrate: encoding.bits_per_s,
        width: encoding.size.0,
        height: encoding.size.1,
        fps: encoding.fps,
        gop: encoding.gop,
        files,
    };
    let text = serde_json::to_string_pretty(&catalogue)? + "\n";
    throng_folder::Folder::open(folder)?.put(NAME, text.as_bytes())
}
