//! Responses of a WHIP server: status, header fields, body.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::whip(bytes));
