//! What must hold whatever a server says: one function a parser, shared by the brief fuzz of `cargo test` and by the fuzz
//! targets. Each panics when its law is broken.

#![allow(dead_code, unused_imports, reason = "a fuzz target uses one of the laws")]

mod description;
mod dialogue;
mod relay;
mod room;

pub(crate) use description::sdp;
pub(crate) use dialogue::{janus, ome, whep};
pub(crate) use relay::relay;
pub(crate) use room::{videoroom, whip};
