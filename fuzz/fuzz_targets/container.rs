//! Files of coded media: Annex-B, IVF, Ogg.
#![no_main]

#[path = "../../crates/media/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::container(bytes));
