//! Properties that hold for any input from a server: one function per parser, shared by the short
//! fuzz test of `cargo test` and by the fuzz targets. Each panics when its property is violated.

#![allow(dead_code, unused_imports, reason = "a fuzz target uses one of the laws")]

mod body;
mod chat;
mod description;
mod dialogue;
mod events;
mod ingest;
mod peers;
mod peertube;
mod recognition;
mod relay;
mod room;
mod rtsp;

pub(crate) use body::{cookies, cors, encoding};
pub(crate) use chat::chat;
pub(crate) use description::sdp;
pub(crate) use dialogue::{janus, ome, whep};
pub(crate) use events::events;
pub(crate) use ingest::rtmp;
pub(crate) use peers::peers;
pub(crate) use peertube::{peertube, tracker};
pub(crate) use recognition::recognition;
pub(crate) use relay::relay;
pub(crate) use room::{livekit, videoroom, whip};
pub(crate) use rtsp::rtsp;
