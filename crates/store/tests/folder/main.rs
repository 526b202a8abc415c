//! What a run leaves: in good times and bad.

mod run_folder;
mod watched_hosts;
