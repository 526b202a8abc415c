//! Of `/proc/PID/stat` (proc_pid_stat(5)): what tells a process from a later one with its number.

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// It has ended, and nobody has waited for it.
    pub(crate) is_zombie: bool,
    /// When it was started, clock ticks since the boot.
    pub(crate) started_ticks: u64,
}

impl Stat {
    /// Of the process with this number, if there is one.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name (field 2) may hold anything, also parentheses.
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let is_zombie = fields.next()? == "Z";
        // Field 22; the state is field 3.
        let started_ticks = fields.nth(18)?.parse().ok()?;
        Some(Self { is_zombie, started_ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_start_are_found_whatever_the_name_is() {
        let stat = |is_zombie| Some(Stat { is_zombie, started_ticks: 8_800 });
        let rest = "1 4700 4700 0 -1 4194560 1 0 0 0 230 17 0 0 20 0 1 0 8800 9 9";
        for (text, expect) in [
            (format!("4711 (sleep) S {rest}"), stat(false)),
            (format!("4711 (a ) Z (c) Z {rest}"), stat(true)),
            ("4711 (sleep) S 1 2".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(Stat::parse(&text), expect, "{text}");
        }
        assert!(Stat::of(std::process::id()).is_some_and(|own| !own.is_zombie));
    }
}
