//! What an RTMP server says: the chunk stream behind its handshake.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::rtmp(bytes));
