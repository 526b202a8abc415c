//! In-media marks in H.264 and H.265 NAL units.
#![no_main]

#[path = "../../crates/media/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::mark(bytes));
