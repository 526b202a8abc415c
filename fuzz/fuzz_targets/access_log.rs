//! Lines of access logs.
#![no_main]

#[path = "../../crates/watch/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::access_log(bytes));
