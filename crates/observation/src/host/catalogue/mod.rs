//! The metrics of a host by name: meaning, unit and source. `docs/host-series.md` is generated from
//! it.

use super::Unit;

/// A metric of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in a run folder; stable.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// Where it is read: kernel file and field.
    pub source: &'static str,
    /// What the values of several objects come to.
    pub together: Together,
}

/// What the values of several objects come to where they are shown as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Their sum.
    Sum,
    /// The largest: their sum is the value of nothing, as of states, of shares of something else
    /// than time, and of what is of the whole host in each of its network namespaces.
    Largest,
    /// The one that is farthest from zero, with its sign: of what may be negative.
    Farthest,
}

impl Metric {
    /// Whether a value is the mean of the time since the reading before: so many things or bytes a
    /// second, or a share of the time. Values times their spans are then a sum.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        match self.unit {
            Unit::PerSecond | Unit::BytesPerSecond => true,
            Unit::Ratio => self.together == Together::Sum,
            Unit::Count | Unit::Bytes | Unit::Milliseconds => false,
        }
    }
}

impl AsRef<str> for Metric {
    fn as_ref(&self) -> &str {
        self.name
    }
}

/// Metrics from logs, by the label `pattern` or `uri_group`: lines a second, bytes a second,
/// requests a second.
pub const LOG_LINES: &str = "log.lines";
/// See [`LOG_LINES`].
pub const ACCESS_BYTES: &str = "access.bytes";
/// See [`LOG_LINES`].
pub const ACCESS_REQUESTS: &str = "access.requests";
/// Answers 5xx so far by `uri_group` and `status`: a sum and no rate, so that the count of any
/// minute is exact.
pub const ACCESS_SERVER_ERRORS: &str = "access.server_errors";

/// Metrics that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their object, labels and limit.
    pub about: &'static str,
    /// The metrics.
    pub metrics: &'static [Metric],
}

/// [`Together`] as it is declared: after the unit, a sum where nothing is.
macro_rules! together {
    () => {
        Together::Sum
    };
    ($together:ident) => {
        Together::$together
    };
}

/// Declares the groups: each metric a constant, all of them in [`GROUPS`].
macro_rules! groups {
    ($($about:literal {
        $(
            $constant:ident = $name:literal, $unit:ident $($together:ident)?, $meaning:literal,
            $source:literal;
        )+
    })+) => {
        $($(
            #[doc = $meaning]
            pub const $constant: Metric = Metric {
                name: $name,
                unit: Unit::$unit,
                meaning: $meaning,
                source: $source,
                together: together!($($together)?),
            };
        )+)+

        /// The metrics that the watcher reads by itself, by their object.
        pub const GROUPS: &[Group] = &[$(Group { about: $about, metrics: &[$($constant),+] }),+];

        /// Every metric that the watcher reads by itself.
        pub const ALL: &[Metric] = &[$($($constant),+),+];
    };
}

mod table;
pub use table::*;

/// The metric of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}

/// `docs/host-series.md`, from [`GROUPS`].
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(HEAD);
    for group in GROUPS {
        page += &format!(
            "\n{}\n\n| Metric | Unit | Meaning | Read from |\n|---|---|---|---|\n",
            group.about
        );
        for Metric { name, unit, meaning, source, together: _ } in group.metrics {
            page += &format!("| `{name}` | {} | {meaning} | {source} |\n", unit.symbol());
        }
    }
    page
}

const HEAD: &str = "# Metrics of a watched host

The metrics of a host in `run.db`, by name. Look one up that a report, a finding or your own
query names.

```
throng watch --for 60s -o host.db
```

A ratio of CPU time is in cores (1 = one core), a ratio of waiting is of the wall clock, both means
over the time since the reading before. A series has further *labels*, and a *limit* where the value
that cannot be passed is known. Counters that the kernel never resets become rates here.

`P` is a watched process, `T` a thread of it. Network files are read through `/proc/P/net`, so they
are those of the server's own network namespace. Metrics of log files, endpoints and server APIs \
                    have
their own names ([watch-logs.md](watch-logs.md)). This page is made from
`crates/observation/src/host/catalogue`, and a test keeps the two equal.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_stands_for_one_metric() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(find("thread.cpu"), Some(&THREAD_CPU));
        assert_eq!(find("thread"), None);
    }

    #[test]
    fn what_is_of_time_is_a_rate_and_states_do_not_add_up() {
        for rate in [THREAD_CPU, HOST_CPU_STEAL, UDP_RCVBUF_ERRORS, NIC_TX_BYTES, CGROUP_THROTTLED]
        {
            assert!(rate.is_rate() && rate.together == Together::Sum, "{rate:?}");
        }
        for level in [PROCESS_FDS, PROCESS_RSS, DISK_QUEUE] {
            assert!(!level.is_rate() && level.together == Together::Sum, "{level:?}");
        }
        for state in [
            THREAD_CPUS_ALLOWED,
            PROCESS_STOPPED,
            CGROUP_THROTTLED_PERIODS,
            CGROUP_CPU_QUOTA,
            DISK_READ_AWAIT,
        ] {
            assert!(!state.is_rate() && state.together == Together::Largest, "{state:?}");
        }
        let of_time = |metric: &&Metric| metric.unit == Unit::Milliseconds;
        assert!(ALL.iter().filter(of_time).all(|metric| metric.together == Together::Largest));
    }

    #[test]
    fn the_page_of_the_docs_equals_the_catalogue() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/host-series.md");
        if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
            std::fs::write(file, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            page == markdown(),
            "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-observation catalogue"
        );
    }
}
