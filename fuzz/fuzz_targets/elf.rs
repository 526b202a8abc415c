//! Programs of watched processes.
#![no_main]

#[path = "../../crates/watch/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::elf(bytes));
