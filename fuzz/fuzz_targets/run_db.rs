//! The database of a run.
#![no_main]

#[path = "../../crates/store/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::run_db(bytes));
