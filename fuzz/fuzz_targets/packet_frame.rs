//! Frames of a packet ring.
#![no_main]

#[path = "../../crates/net/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::packet_frame(bytes));
