//! A headless Chromium, most often inside a namespace: a reference for what a viewer should see.

use std::env;
use std::ops::{Deref, DerefMut};
use std::process::Command;

use crate::namespace::Namespace;
use crate::outcome::skipped;
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

    /// Starts it among the processes of this host; `None` where it is not installed, and the test
    /// is skipped.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn of_host() -> Result<Option<Self>, SimError> {
        let Some(installed) = throng_browser::find(&env::var_os("PATH").unwrap_or_default()) else {
            skipped("Chromium is not installed (scripts/setup.sh test)");
            return Ok(None);
        };
        Ok(Some(Self(throng_browser::Chromium::start(Command::new(installed), &[])?)))
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
