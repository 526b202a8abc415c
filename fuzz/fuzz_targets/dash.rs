//! MPDs of DASH.
#![no_main]

#[path = "../../crates/media/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::dash(bytes));
