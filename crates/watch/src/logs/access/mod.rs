//! Access logs: requests and bytes by URI group, status class and protocol version.

mod account;
mod combined;
mod groups;
mod json;
mod line;
mod s3;
mod time;

pub use account::{AccessCounter, READ_LINES_MAX};
pub use groups::{GROUPS_MAX, GroupError, UriGroups};
pub use line::{AccessLine, Protocol, parse};
