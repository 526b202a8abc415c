//! Logs and endpoints of real servers, started here on loopback. Without the server its tests are
//! skipped.

mod chat_and_rooms;
mod harness;
mod janus;
mod programs;
mod web;
