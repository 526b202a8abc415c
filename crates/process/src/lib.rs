//! What throng starts ends with it, however it ends.
//!
//! | throng ends | what ends the others |
//! |---|---|
//! | as planned, by an error, by a panic | whoever started them, when dropped; then [`EndsAll`] |
//! | by the second signal, without dropping anything | [`end_all`] |
//! | by SIGKILL | the kernel, as [`end_with_this_thread`] and [`end_with_parent`] ask it to |
//!
//! Unsafe for what a child does between fork and exec.

mod death_signal;
pub use death_signal::{Ended, end_throng_with_this_thread, end_with_parent, end_with_this_thread};

mod program;
pub use program::find_program;

mod stat;

mod started;
pub use started::{EndsAll, Started, end_all, end_all_within};
