//! Access logs: requests and bytes by URI group, status class and protocol version.

mod account;
mod groups;
mod line;

pub use account::{AccessCounter, READ_LINES_MAX};
pub use groups::{GROUPS_MAX, GroupError, UriGroups};
pub use line::{AccessLine, Protocol, parse};
