//! Answers of metrics endpoints: the kind as a digit, then answers with zero bytes between them.
#![no_main]

#[path = "../../crates/watch/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::scrape(bytes));
