//! Catches the panic of a participant, which becomes that participant's failure: a defect in throng
//! or in a library must not end the other participants of the thread.
//!
//! The panic hook prints nothing for panics that are caught here: its lines would break a
//! full-screen view, and a defect that affects a thousand participants would be printed a thousand
//! times. Each failure contains the place and message of the panic.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use throng_observation::{Failure, FailureReason, Outcome};
use throng_protocol::participant::{Input, Output, Participant, Prefetcher};

/// Characters kept of a panic message: a library may print whole packets.
const WORDS_MAX: usize = 200;

thread_local! {
    /// Whether this thread is within [`catch_panic`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Source location of the last panic caught on this thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs, once per process, a panic hook that sends caught panics only to the log (`RUST_LOG`,
/// `RUST_BACKTRACE=1`).
pub(crate) fn install_panic_hook() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(
            move |info| if GUARDED.get() { note(info) } else { usual(info) },
        ));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|at| format!("{}:{}", short(at.file()), at.line()));
    let backtrace = Backtrace::capture();
    tracing::error!(target: "throng", %backtrace, "a participant panicked: {info}");
    PLACE.with_borrow_mut(|known| *known = place);
}

/// A participant whose panics are caught.
pub(super) struct PanicGuard {
    /// `None` after a panic.
    participant: Option<Box<dyn Participant>>,
    /// The failure made from the panic.
    defect: Option<Failure>,
}

impl PanicGuard {
    pub(super) fn new(participant: Box<dyn Participant>) -> Self {
        Self { participant: Some(participant), defect: None }
    }

    /// See [`Participant::handle`].
    pub(super) fn handle(&mut self, now: Instant, input: Input<'_>) {
        // The next output, its last, carries the failure.
        self.act(|participant| participant.handle(now, input));
    }

    /// See [`Participant::poll_output`].
    pub(super) fn poll_output(&mut self, now: Instant) -> Output {
        self.act(|participant| participant.poll_output(now)).unwrap_or_else(|| {
            let defect = self.defect.clone().unwrap_or_else(|| defect(&"no message"));
            Output::Ended(Outcome::Failed(defect))
        })
    }

    /// See [`Participant::receive_lag`].
    pub(super) fn receive_lag(&mut self, lag: Duration) {
        self.act(|participant| participant.receive_lag(lag));
    }

    /// The participant's own memory, without what it points to.
    pub(super) fn itself(&self, prefetcher: &mut Prefetcher<'_>) {
        if let Some(participant) = &self.participant {
            prefetcher.value(&**participant);
        }
    }

    /// See [`Participant::prefetch`]. A panic here is ignored: the next call will panic again.
    pub(super) fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        if let Some(participant) = &self.participant {
            let _ = catch_panic(|| participant.prefetch(level, prefetcher));
        }
    }

    /// `None` when this call or an earlier one panicked.
    fn act<T>(&mut self, act: impl FnOnce(&mut dyn Participant) -> T) -> Option<T> {
        let participant = self.participant.as_deref_mut()?;
        match catch_panic(|| act(participant)) {
            Ok(done) => Some(done),
            Err(defect) => {
                self.defect = Some(defect);
                self.clear();
                None
            }
        }
    }

    fn clear(&mut self) {
        let participant = self.participant.take();
        // Dropping a half-changed participant may panic again.
        let _ = catch_panic(|| drop(participant));
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Runs a participant's code; a panic becomes a failure.
pub(super) fn catch_panic<T>(act: impl FnOnce() -> T) -> Result<T, Failure> {
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(act));
    GUARDED.set(outer);
    done.map_err(|panic| defect(&*panic))
}

fn defect(panic: &(dyn Any + Send)) -> Failure {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let words: String = words.chars().take(WORDS_MAX).collect();
    let place = PLACE.take().unwrap_or_else(|| "an unknown place".into());
    let detail = format!(
        "a defect in throng or one of its libraries, at {place}: {words}; please report it, with \
         what the server sent"
    );
    Failure::new(FailureReason::InternalError, detail)
}

/// A source file's path without its machine-specific part: `str0m-0.25.0/src/rtp.rs`.
fn short(file: &str) -> &str {
    let registry = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    let std = || file.split_once("/library/").map(|(_, rest)| rest);
    registry.map(|(_, rest)| rest).or_else(std).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_that_names_its_place() {
        install_panic_hook();
        assert_eq!(catch_panic(|| 7), Ok(7));
        let line = line!() + 1;
        let failure = catch_panic(|| panic!("packet {}", 9)).unwrap_err();
        assert_eq!(failure.reason, FailureReason::InternalError);
        let place = format!("at {}:{line}: packet 9;", file!());
        assert!(failure.detail.contains(&place), "{}", failure.detail);
        let long = catch_panic(|| std::panic::panic_any("x".repeat(9_999))).unwrap_err();
        assert!(long.detail.len() < 500 && !long.detail.contains(&"x".repeat(WORDS_MAX + 1)));
        let silent = catch_panic(|| std::panic::panic_any(7)).unwrap_err();
        assert!(silent.detail.contains("no message"));
    }

    #[test]
    fn places_are_the_same_on_every_machine() {
        for (file, expect) in [
            (
                "/home/a/.cargo/registry/src/index.example-0a1b/str0m-0.25.0/src/rtp.rs",
                "str0m-0.25.0/src/rtp.rs",
            ),
            ("/rustc/0a1b/library/core/src/option.rs", "core/src/option.rs"),
            ("crates/protocol/src/webrtc/viewer.rs", "crates/protocol/src/webrtc/viewer.rs"),
        ] {
            assert_eq!(short(file), expect);
        }
    }
}
