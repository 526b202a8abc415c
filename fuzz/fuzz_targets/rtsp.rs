//! The byte stream of an RTSP server: messages and interleaved frames.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::rtsp(bytes));
