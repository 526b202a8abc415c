//! Frames of agents and of runs that watch by them.
#![no_main]

#[path = "../../crates/watch/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::agent(bytes));
