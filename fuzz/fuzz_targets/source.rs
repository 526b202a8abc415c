//! Media files of every kind, from reading to playing.
#![no_main]

#[path = "../../crates/media/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::source(bytes));
