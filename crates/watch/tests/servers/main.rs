//! Logs and endpoints of real servers, started here on loopback. A server that is not installed is said and passed
//! over (`scripts/setup.sh test` installs those of Debian).
#![expect(clippy::print_stderr, reason = "tests that are passed over say so")]

mod chat_and_rooms;
mod janus;
mod programs;
mod stand;
mod web;
