//! CPU time by mode, as the kernel counts it in `/proc/stat`, and the shares of an interval.

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
    /// The share of each mode in the time since `before`, in the order user, nice, system, idle,
    /// iowait, irq, softirq, steal, guest, busy; user and nice without guests. `None` when no time
    /// has passed.
    ///
    /// Counters may decrease (iowait does, and those of a core that went offline and came back):
    /// such a mode counts as 0.
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

    /// From the columns of a `cpu` line, in their order. Kernels before 2.6.33 have fewer columns;
    /// missing ones are 0.
    pub fn from_columns(mut columns: impl Iterator<Item = u64>) -> Option<Self> {
        let (user, nice, system, idle) =
            (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
        let mut more = || columns.next().unwrap_or(0);
        Some(Self {
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

    /// The times of all cores together, from the text of `/proc/stat`.
    #[must_use]
    pub fn of_all_cores(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        Self::from_columns(line.split_ascii_whitespace().map_while(|column| column.parse().ok()))
    }

    /// The share of the time since `before` that the hypervisor withheld (CPU steal).
    #[must_use]
    pub fn steal_ratio_since(&self, before: &Self) -> f64 {
        self.since(before).map_or(0.0, |[_, _, _, _, _, _, _, steal, _, _]| steal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_column_of_the_first_line() {
        let all = |text| CpuTimes::of_all_cores(text);
        let before = all("cpu  10 0 20 60 5 1 2 2 9 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!((before.steal, before.guest), (2, 9));
        let now = all("cpu  40 0 40 90 10 1 2 17 9 0\n").unwrap();
        assert_eq!((now.steal_ratio_since(&before), now.steal_ratio_since(&now)), (0.15, 0.0));
        for rubbish in ["", "x", "cpu ", "cpu x", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 x"] {
            assert_eq!(all(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn guests_are_not_counted_twice_and_a_counter_that_steps_back_is_none() {
        let before = CpuTimes { iowait: 10, ..CpuTimes::default() };
        let now =
            CpuTimes { user: 30, guest: 20, idle: 50, steal: 20, iowait: 4, ..CpuTimes::default() };
        let [user, .., iowait, _, _, steal, guest, busy] = now.since(&before).unwrap();
        assert_eq!((user, iowait, steal, guest), (0.1, 0.0, 0.2, 0.2));
        assert!((busy - 0.3).abs() < 1e-9);
        assert_eq!(now.since(&now), None);
    }
}
