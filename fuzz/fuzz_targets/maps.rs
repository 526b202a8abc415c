//! Maps of code: of a JIT compiler, of the kernel, of a process.
#![no_main]

#[path = "../../crates/watch/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::maps(bytes));
