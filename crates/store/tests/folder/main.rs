//! Tests of run folders: complete, interrupted, damaged.

mod run_folder;
mod watched_hosts;
