//! Video files as they are downloaded: MP4, MPEG-TS, WebM.
#![no_main]

#[path = "../../crates/media/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::timing(bytes));
