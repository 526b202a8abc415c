//! What a program wrote last, for messages about its failure.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read from the end of a file.
const TAIL_BYTES: u64 = 4_096;

/// The last `count` lines of a file that are not empty; empty if it cannot be read.
#[must_use]
pub fn last_lines(path: &Path, count: usize) -> Vec<String> {
    File::open(path).map(|file| last_lines_of(file, count)).unwrap_or_default()
}

/// The same of a file that is open.
pub(crate) fn last_lines_of(file: File, count: usize) -> Vec<String> {
    let text = tail(file).unwrap_or_default();
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let from = lines.len().saturating_sub(count);
    lines.into_iter().skip(from).map(str::to_owned).collect()
}

fn tail(mut file: File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
