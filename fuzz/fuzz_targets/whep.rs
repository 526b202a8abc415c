//! Responses of a WHEP server: status, header fields with ICE servers among them, body.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::whep(bytes));
