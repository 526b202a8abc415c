//! Files in folders that others can write into, or wrote: what throng makes there is made there,
//! whatever links lie in it, and what throng would run is first looked at for whose it is. Whether
//! a throng is at work in a folder is known by a lock on it.
//!
//! Linux: openat(2), symlink(7), flock(2).

mod at_work;
pub use at_work::{AtWork, is_at_work};

mod folder;
pub use folder::{Folder, append, create, put_as, read, read_text, unfinished};

mod owner;
pub use owner::{Stranger, check_own};
