//! The watcher tested on the real machine: known loads, real servers, programs with known CPU time.

mod recorded;

mod cost;
mod limits;
mod outputs;
mod processes;
mod profiler;
mod remote;
mod servers;
mod threads;
