//! The watcher against the machine's own truth: known loads, and what is said of them.

mod seen;

mod cost;
mod limits;
mod outputs;
mod processes;
mod remote;
mod threads;
