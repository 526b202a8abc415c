//! `/proc/stat`: CPU time by mode and core, in ticks; switches, forks, tasks.

use super::scan::{fields, lines, next_number, number};

/// Time by mode, in ticks. `guest` is also part of `user`, and `guest_nice` of `nice`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's own names, proc(5)")]
pub struct CpuTimes {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
    pub guest: u64,
    pub guest_nice: u64,
}

/// How many shares [`CpuTimes::since`] gives.
pub const MODES: usize = 10;

impl CpuTimes {
    /// The share of each mode in the time since `before`, in the order user, nice, system, idle, iowait, irq, softirq,
    /// steal, guest, busy; user and nice without guests. `None` when no time has passed.
    ///
    /// Counters may step back (iowait does, and a core that went offline and came back): such a mode counts as 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<[f64; MODES]> {
        let d = |now: u64, before: u64| now.saturating_sub(before);
        let guest = d(self.guest, before.guest);
        let guest_nice = d(self.guest_nice, before.guest_nice);
        let modes = [
            d(self.user, before.user).saturating_sub(guest),
            d(self.nice, before.nice).saturating_sub(guest_nice),
            d(self.system, before.system),
            d(self.idle, before.idle),
            d(self.iowait, before.iowait),
            d(self.irq, before.irq),
            d(self.softirq, before.softirq),
            d(self.steal, before.steal),
            guest.saturating_add(guest_nice),
        ];
        let total: f64 = modes.iter().map(|ticks| *ticks as f64).sum();
        if total <= 0.0 {
            return None;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal, guest] =
            modes.map(|ticks| ticks as f64 / total);
        let busy = user + nice + system + irq + softirq + guest;
        Some([user, nice, system, idle, iowait, irq, softirq, steal, guest, busy])
    }
}

/// What a line of the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// All cores together.
    All(CpuTimes),
    /// One core, by its number; offline ones are missing.
    Core(u32, CpuTimes),
    /// Context switches since boot.
    ContextSwitches(u64),
    /// Processes and threads created since boot.
    Forks(u64),
    /// Tasks running or ready to run, now.
    Running(u64),
    /// Tasks blocked on I/O, now.
    Blocked(u64),
}

/// The lines that are understood.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Line> {
    lines(text).filter_map(line)
}

fn line(line: &[u8]) -> Option<Line> {
    let mut fields = fields(line);
    let key = fields.next()?;
    if let Some(core) = key.strip_prefix(b"cpu") {
        let times = times(&mut fields)?;
        return if core.is_empty() {
            Some(Line::All(times))
        } else {
            Some(Line::Core(u32::try_from(number(core)?).ok()?, times))
        };
    }
    // The line of interrupts is long; its key is looked at and no more.
    let kind = match key {
        b"ctxt" => Line::ContextSwitches,
        b"processes" => Line::Forks,
        b"procs_running" => Line::Running,
        b"procs_blocked" => Line::Blocked,
        _ => return None,
    };
    next_number(&mut fields).map(kind)
}

/// Kernels before 2.6.33 have fewer columns; what is missing is 0.
fn times<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<CpuTimes> {
    let (user, nice, system, idle) =
        (next_number(fields)?, next_number(fields)?, next_number(fields)?, next_number(fields)?);
    let mut more = || next_number(fields).unwrap_or(0);
    Some(CpuTimes {
        user,
        nice,
        system,
        idle,
        iowait: more(),
        irq: more(),
        softirq: more(),
        steal: more(),
        guest: more(),
        guest_nice: more(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice_and_a_counter_that_steps_back_is_none() {
        let before = CpuTimes { iowait: 10, ..CpuTimes::default() };
        let now = CpuTimes { user: 30, guest: 20, idle: 50, steal: 20, iowait: 4, ..CpuTimes::default() };
        let [user, .., iowait, _, _, steal, guest, busy] = now.since(&before).unwrap();
        assert_eq!((user, iowait, steal, guest), (0.1, 0.0, 0.2, 0.2));
        assert!((busy - 0.3).abs() < 1e-9);
        assert_eq!(now.since(&now), None);
    }
}
