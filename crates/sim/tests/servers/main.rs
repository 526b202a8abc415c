//! The stands themselves: servers that are spoken to by hand, and those that are the real thing.

mod conformance;
mod real;
mod rtsp;
