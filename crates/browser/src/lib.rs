//! A headless Chromium: started with a fresh profile, controlled over a pipe with the Chrome
//! DevTools Protocol, and ended with the process that started it, however that one ends.

mod error;
pub use error::BrowserError;

mod find;
pub use find::{NAMES, find};

mod pipe;
mod process;

mod chromium;
pub use chromium::Chromium;
