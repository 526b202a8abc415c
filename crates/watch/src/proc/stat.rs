//! `/proc/P/stat` and `/proc/P/task/T/stat` (proc(5)): name, parent, state and CPU ticks of a
//! process or thread.

use std::time::Duration;

use throng_observation::host::HowEnded;

use super::scan::{fields, next_number, number};

/// The parsed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// Process or thread id.
    pub id: u32,
    /// Its name: at most 15 arbitrary bytes.
    pub name: &'a [u8],
    /// State: `R`, `S`, `D`, `Z`, `T`, …
    pub state: u8,
    /// Parent process; 0 if that is in another PID namespace.
    pub parent: u32,
    /// Process group; 0 if that is in another PID namespace.
    pub group: u32,
    /// Page faults without I/O.
    pub faults_minor: u64,
    /// Page faults with I/O.
    pub faults_major: u64,
    /// CPU time in user space, ticks.
    pub user_ticks: u64,
    /// CPU time in the kernel, ticks.
    pub system_ticks: u64,
    /// Nice value; above 0 its user time is accounted as low-priority (`nice`) work.
    pub nice: i32,
    /// Number of threads of the process.
    pub threads: u64,
    /// Start time, ticks since boot; identifies the process together with the id.
    pub started_ticks: u64,
    /// Wait for block I/O, ticks; 0 unless delay accounting is on.
    pub blkio_ticks: u64,
    /// Exit status of a zombie as in waitpid(2); 0 also if the reader may not trace the process.
    pub exit_code: i32,
}

impl Stat<'_> {
    /// Its age; `since_boot` is the machine's uptime.
    #[must_use]
    pub fn age(&self, tick_seconds: f64, since_boot: Duration) -> Duration {
        let started = Duration::try_from_secs_f64(self.started_ticks as f64 * tick_seconds);
        since_boot.saturating_sub(started.unwrap_or_default())
    }

    /// Whether all of the process has ended. A main thread that has ended alone (`pthread_exit`)
    /// is a zombie as long as other threads go on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    /// Whether its main thread has ended and others go on: then files that are about memory and
    /// descriptors are empty, but for those of the other threads.
    #[must_use]
    pub fn has_lost_main_thread(&self) -> bool {
        self.state == b'Z' && self.threads > 1
    }

    /// How a zombie ended. That of others is hidden: it reads as 0, and is known to be 0 where
    /// `is_visible`.
    #[must_use]
    pub fn how_ended(&self, is_visible: bool) -> HowEnded {
        if self.exit_code == 0 && !is_visible {
            return HowEnded::Unknown;
        }
        HowEnded::of_wait_status(self.exit_code)
    }
}

/// Parses the file; `None` if it is not a stat file.
///
/// The name is in parentheses and may contain blanks, parentheses and newlines, so it ends at the
/// file's *last* `)`.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Stat<'_>> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let id = u32::try_from(number(text.get(..open)?.trim_ascii())?).ok()?;
    let name = text.get(open + 1..close)?;
    let mut rest = fields(text.get(close + 1..)?);
    let state = *rest.next()?.first()?;
    let small = |value: Option<u64>| u32::try_from(value?).ok();
    let parent = small(next_number(&mut rest))?;
    let group = small(next_number(&mut rest)).unwrap_or(0);
    let mut skip = |n: usize| rest.nth(n).and_then(number);
    let faults_minor = skip(4)?; // 10, after session, tty, its group, flags
    let faults_major = skip(1)?; // 12
    let user_ticks = skip(1)?; // 14
    let system_ticks = skip(0)?; // 15
    let nice = rest.nth(3).and_then(signed)?; // 19, after the times of children and the priority
    let mut skip = |n: usize| rest.nth(n).and_then(number);
    let threads = skip(0)?; // 20
    let started_ticks = skip(1)?; // 22
    let blkio_ticks = skip(19).unwrap_or(0); // 42
    let exit_code = skip(9).and_then(|code| i32::try_from(code).ok()).unwrap_or(0); // 52
    Some(Stat {
        id,
        name,
        state,
        parent,
        group,
        faults_minor,
        faults_major,
        user_ticks,
        system_ticks,
        nice,
        threads,
        started_ticks,
        blkio_ticks,
        exit_code,
    })
}

/// Parses a signed number.
fn signed(field: &[u8]) -> Option<i32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_parentheses_and_blanks() {
        let figures = "S 1 7 8 0 -1 4194560 11 12 13 14 15 16 17 18 20 -5 21 0 23 24 25 26 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 42 0";
        for name in ["janus", "a b", ")", "x) R 1 (", "(sd-pam)", "", "tab\tand\nline"] {
            let text = format!("4242 ({name}) {figures}\n");
            let stat = parse(text.as_bytes()).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(
                (stat.id, stat.name, stat.state, stat.parent),
                (4242, name.as_bytes(), b'S', 1)
            );
            assert_eq!((stat.faults_minor, stat.faults_major), (11, 13));
            assert_eq!((stat.user_ticks, stat.system_ticks, stat.threads), (15, 16, 21));
            assert_eq!(stat.nice, -5);
            assert_eq!((stat.group, stat.started_ticks, stat.blkio_ticks), (7, 23, 42));
        }
        let ended = |code: &str| {
            let text = format!("7 (x) Z{} 0 0 0 0 0 0 0 0 {code}\n", &figures[1..]);
            parse(text.as_bytes())
                .map(|stat| [false, true].map(|is_visible| stat.how_ended(is_visible)))
        };
        assert_eq!(ended("0"), Some([HowEnded::Unknown, HowEnded::Exit { code: 0 }]));
        assert_eq!(ended("256"), Some([HowEnded::Exit { code: 1 }; 2]));
        assert_eq!(ended("9"), Some([HowEnded::Signal { number: 9, core: false }; 2]));
        assert_eq!(ended("134"), Some([HowEnded::Signal { number: 6, core: true }; 2]));
        for (state, threads, expect) in [
            ("Z", 1, (true, false)),
            ("X", 0, (true, false)),
            ("Z", 2, (false, true)),
            ("S", 1, (false, false)),
        ] {
            let text = format!("7 (x) {state}{}", &figures[1..])
                .replace(" 21 0 23", &format!(" {threads} 0 23"));
            let stat = parse(text.as_bytes()).unwrap();
            assert_eq!((stat.is_over(), stat.has_lost_main_thread()), expect, "{state} {threads}");
        }
        for rubbish in ["", "1", "1 (x", "1 x) S", "x (y) S 1 1 1", ")(", "1 (y) "] {
            assert_eq!(parse(rubbish.as_bytes()), None, "{rubbish}");
        }
    }
}
