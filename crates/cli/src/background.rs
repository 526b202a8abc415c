//! What a command does beside its run: servers and senders, each on a thread of its own.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// By how much a thread that gives way is nicer (nice(2)): one core is shared with another thread
/// as 1 to 9.
const NICER_BY: i32 = 10;

/// Lets threads of the usual priority go before the calling one and those that it starts.
pub(crate) fn give_way() {
    // Priorities are of threads on Linux. Where it cannot be lowered, it is the usual one.
    let _ = rustix::process::nice(NICER_BY);
}

/// A thread in the background: it is told to end, and waited for, when this is dropped.
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a thread of this name for what `work` makes, which is to end when the sender of its
    /// argument is gone. An error is the system's, which gives no more threads or descriptors.
    pub(crate) fn start<W: Future<Output = ()> + 'static>(
        name: &str,
        work: impl FnOnce(oneshot::Receiver<()>) -> W + Send + 'static,
    ) -> io::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(work(stopped));
            // A name that is being looked up would be waited for otherwise.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The thread ends when the sender is gone.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_gives_way_does_so_alone() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let given = std::thread::spawn(move || {
            give_way();
            own()
        });
        assert_eq!(given.join().unwrap(), (before + NICER_BY).min(19));
        assert_eq!(own(), before);
    }
}
