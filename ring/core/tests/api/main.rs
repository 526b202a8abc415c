//! The library as a user sees it, both sides in one process.

mod leaving;
mod library;
