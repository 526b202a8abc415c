//! C interface of throng-ring: opaque handles, status codes with a message, and no panic or
//! exception across the border. cbindgen generates `include/throng_ring.h` from these files; a test
//! keeps it current.

mod consumer;
mod lane;
mod producer;
mod stats;
mod status;
mod types;

pub use consumer::*;
pub use lane::*;
pub use producer::*;
pub use stats::*;
pub use status::*;
pub use types::*;
