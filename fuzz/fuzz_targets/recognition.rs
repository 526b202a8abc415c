//! Which protocol a server has, by its answers.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::recognition(bytes));
