//! Messages of LiveKit, each behind its length, and actions of the participant.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::livekit(bytes));
