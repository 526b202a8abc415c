//! The frames of a chat's server: XMPP, and a chat that a scenario describes.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::chat(bytes));
