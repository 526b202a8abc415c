//! Tests of run folders: complete, interrupted, damaged.

mod links;
mod run_folder;
mod watched_hosts;
