//! Messages of peers over data channels, in the forms of p2p-media-loader 2.2 and 0.6.
#![no_main]

#[path = "../../crates/protocol/tests/laws/mod.rs"]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::peers(bytes));
