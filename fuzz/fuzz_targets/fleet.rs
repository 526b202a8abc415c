//! Messages between coordinator and workers.
#![no_main]

#[path = "../../crates/fleet/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::message(bytes));
