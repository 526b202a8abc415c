//! The `throng` command.
fn main() {}
