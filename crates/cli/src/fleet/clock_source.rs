//! What this host says of its own clock: what its owner declares, or what chrony knows.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use throng_fleet::HostClock;
use throng_fleet::disciplined::{ClockBasis, ClockWord, WordSource, chrony_word};
use throng_fleet::message::ClockSaid;

use crate::args::duration;
use crate::console::CliError;

/// Reads the state of the clock without looking up names.
const CHRONYC: [&str; 4] = ["chronyc", "-n", "-c", "tracking"];

/// Prints whether the kernel takes its clock for synchronised, by whatever service.
const TIMEDATECTL: [&str; 5] = ["timedatectl", "show", "-p", "NTPSynchronized", "--value"];

/// How long a program may take; one that hangs has no word.
const WITHIN: Duration = Duration::from_secs(1);

/// Time between two questions: chrony's bound grows by a microsecond or so in it, and what may be
/// added for its age stays small.
const ASK_EVERY: Duration = Duration::from_secs(16);

/// How often somebody who waits looks whether the answer is there, or still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A larger error is no knowledge of a clock.
const DECLARED_MAX: Duration = Duration::from_secs(1);

/// Where the word of this host comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockSource {
    Declared(ClockWord),
    Chrony,
}

impl ClockSource {
    /// By the flag `--clock-error`, which comes before chrony.
    pub(crate) fn of(flag: Option<&str>) -> Result<Self, CliError> {
        let Some(text) = flag else { return Ok(Self::Chrony) };
        let error = duration("--clock-error", text)?;
        if error.is_zero() || error > DECLARED_MAX {
            return Err(CliError::usage(
                "--clock-error: write more than 0 and at most 1s, such as 100us",
            ));
        }
        let bound_us = u64::try_from(error.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        Ok(Self::Declared(ClockWord { bound_us, source: WordSource::Declared }))
    }

    /// The word of this host, which is kept up to date for as long as somebody holds it.
    pub(crate) fn watch(self) -> HostClock {
        let clock = HostClock::default();
        match self {
            Self::Declared(word) => clock.says(Some(word), Instant::now()),
            Self::Chrony => {
                ask(&clock);
                let kept = clock.clone();
                // Without the thread the first word ages.
                let _ = std::thread::Builder::new()
                    .name("host-clock".into())
                    .spawn(move || keep(&kept));
            }
        }
        clock
    }
}

/// Asks again and again while somebody else holds `clock`.
fn keep(clock: &HostClock) {
    loop {
        let asked_at = Instant::now();
        while asked_at.elapsed() < ASK_EVERY {
            if clock.is_alone() {
                return;
            }
            std::thread::sleep(10 * LOOK_EVERY);
        }
        ask(clock);
    }
}

fn ask(clock: &HostClock) {
    let asked_at = Instant::now();
    clock.says(Chrony::asked().word(), asked_at);
}

/// What chrony knows of this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chrony {
    /// It keeps the clock by a source of time.
    Keeps(ClockWord),
    /// It is there and follows no source.
    FollowsNone,
    /// It is not there, or does not answer.
    Silent,
}

impl Chrony {
    /// By its own word, for which it has a second.
    pub(crate) fn asked() -> Self {
        answer(&CHRONYC).map_or(Self::Silent, |said| Self::of(&said))
    }

    /// By what `chronyc` printed.
    fn of(said: &str) -> Self {
        chrony_word(said).map_or(Self::FollowsNone, Self::Keeps)
    }

    fn word(self) -> Option<ClockWord> {
        match self {
            Self::Keeps(word) => Some(word),
            Self::FollowsNone | Self::Silent => None,
        }
    }
}

/// Whether the clock of this host is synchronised, by systemd's word; `None` where it has none.
pub(crate) fn is_synchronised() -> Option<bool> {
    match answer(&TIMEDATECTL)?.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// What a program prints within the time; nothing if it is not installed, fails, or takes longer.
fn answer(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let since = Instant::now();
    // A line fits into the pipe, so that nobody has to read while the program runs.
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if since.elapsed() < WITHIN => std::thread::sleep(LOOK_EVERY),
            Ok(None) | Err(_) => break None,
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status.filter(std::process::ExitStatus::success)?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok()
}

/// What the bound of a worker's clock comes from.
pub(crate) fn basis(said: &ClockSaid, ours: Option<ClockWord>) -> String {
    let named = |source| match source {
        WordSource::Chrony => "chrony",
        WordSource::Declared => "declared",
    };
    match (said.basis, said.word, ours) {
        (ClockBasis::Exchanges, ..) => "half of the round trip".into(),
        (ClockBasis::Contradicted, ..) => {
            "half of the round trip; what the hosts say of their clocks contradicts it".into()
        }
        (ClockBasis::HostClocks, Some(theirs), Some(ours)) if theirs.source == ours.source => {
            format!("{} on both hosts", named(ours.source))
        }
        (ClockBasis::HostClocks, Some(theirs), Some(ours)) => {
            format!("{} there, {} here", named(theirs.source), named(ours.source))
        }
        (ClockBasis::HostClocks, ..) => "what both hosts say of their clocks".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(source: WordSource) -> Option<ClockWord> {
        Some(ClockWord { bound_us: 250, source })
    }

    #[test]
    fn the_owners_word_is_more_than_nothing_and_no_hour() {
        let of = |text| ClockSource::of(Some(text)).map_err(|why| why.error.to_string());
        assert_eq!(ClockSource::of(None).ok(), Some(ClockSource::Chrony));
        assert_eq!(of("250us").ok(), word(WordSource::Declared).map(ClockSource::Declared));
        for text in ["0s", "2s", "1h", "5", "-1ms"] {
            assert!(of(text).is_err_and(|why| why.contains("--clock-error")), "{text}");
        }
        let steady = throng_fleet::SteadyClock::now_on();
        let watched = ClockSource::of(Some("250us")).map(ClockSource::watch).ok();
        assert!(
            watched.and_then(|clock| clock.word(&steady)).is_some_and(|word| word.bound_us >= 250)
        );
    }

    #[test]
    fn a_chrony_that_follows_nobody_is_there_and_has_no_word() {
        // As chronyc 4.3 prints it.
        let none = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,\
                    0.000,1.000000000,1.000000000,0.0,Not synchronised\n";
        assert_eq!((Chrony::of(none), Chrony::of(none).word()), (Chrony::FollowsNone, None));
        let source = "7F000001,127.0.0.1,2,1795730363.735641169,-0.000004111,0.000000258,\
                      0.000001846,2.461,0.015,17.546,0.000010348,0.000009834,0.3,Normal\n";
        let word = ClockWord { bound_us: 21, source: WordSource::Chrony };
        assert_eq!(Chrony::of(source), Chrony::Keeps(word));
    }

    #[test]
    fn a_program_that_is_not_there_fails_or_hangs_has_no_answer() {
        assert_eq!(answer(&["/no/such/chronyc"]), None);
        assert_eq!(answer(&["sh", "-c", "echo 1; exit 1"]), None);
        assert_eq!(answer(&["sh", "-c", "echo 1"]).as_deref(), Some("1\n"));
        let since = Instant::now();
        assert_eq!(answer(&["sleep", "20"]), None);
        assert!(since.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn it_is_said_what_a_bound_comes_from() {
        let said = |basis, source| ClockSaid { basis, word: word(source), ..ClockSaid::default() };
        let both = said(ClockBasis::HostClocks, WordSource::Chrony);
        assert_eq!(basis(&both, word(WordSource::Chrony)), "chrony on both hosts");
        assert_eq!(basis(&both, word(WordSource::Declared)), "chrony there, declared here");
        let alone = said(ClockBasis::Exchanges, WordSource::Chrony);
        assert_eq!(basis(&alone, None), "half of the round trip");
        let wrong = said(ClockBasis::Contradicted, WordSource::Chrony);
        assert!(basis(&wrong, None).contains("contradict"));
    }
}
