//! Recordings of pages (HAR).
#![no_main]

#[path = "../../crates/scenario/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::har(bytes));
