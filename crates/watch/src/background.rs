//! Background threads that are joined when their handle is dropped.

use std::io;
use std::thread::JoinHandle;

/// Joins its thread when dropped. In a struct it follows the field whose drop makes the thread end.
#[derive(Debug)]
pub(crate) struct BackgroundThread(Option<JoinHandle<()>>);

impl BackgroundThread {
    pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Ok(Self(Some(std::thread::Builder::new().name(name.to_owned()).spawn(work)?)))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}
