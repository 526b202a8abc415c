//! A headless Chromium on a leash: started with a fresh profile, driven over a pipe by the Chrome DevTools Protocol, ended
//! with whoever started it, however that ends.

mod error;
pub use error::BrowserError;

mod find;
pub use find::{NAMES, find};

mod pipe;
mod process;

mod chromium;
pub use chromium::Chromium;
