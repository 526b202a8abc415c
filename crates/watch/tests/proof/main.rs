//! The watcher against the machine's own truth: known loads, real servers, programs whose time is known; and what is said
//! of them.

mod recorded;

mod cost;
mod limits;
mod outputs;
mod processes;
mod profiler;
mod remote;
mod servers;
mod threads;
