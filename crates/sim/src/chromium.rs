//! A headless Chromium inside a namespace: a reference for what a viewer should see.

use std::ops::{Deref, DerefMut};

use crate::namespace::Namespace;
use crate::support::SimError;

/// A running browser with one page; it ends when dropped, and with the thread that started it.
#[derive(Debug)]
pub struct Chromium(throng_browser::Chromium);

impl Chromium {
    /// Starts it inside `namespace`.
    ///
    /// # Errors
    /// When Chromium is not installed or does not come up.
    pub fn start(namespace: &Namespace) -> Result<Self, SimError> {
        Ok(Self(throng_browser::Chromium::start(namespace.command("chromium"), &[])?))
    }
}

impl Deref for Chromium {
    type Target = throng_browser::Chromium;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Chromium {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
