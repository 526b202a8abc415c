//! Tests of the test servers: conformance servers with hand-written clients, and real servers.

mod conformance;
mod real;
mod rtsp;
