//! Whether two runs were made in one environment: only then does their difference come from what
//! was changed.

use std::collections::BTreeMap;

use throng_analysis::experiment::{SharedCpu, unlike_cpu};

/// What must be the same of all runs: this machine, and who played the crowd where a fleet did.
pub(super) const SAME: [&str; 5] = ["cpu_model", "cores", "kernel", "governor", "played_by"];

/// Why two runs cannot be compared; `None` if they can. `busy_difference`: the most by which the
/// share of this machine's CPU time that others used may differ. The load average is no measure of
/// it: it still has the run before in it.
pub(super) fn difference(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
    busy_difference: f64,
) -> Option<String> {
    let differing = SAME.iter().find(|key| a.get(**key) != b.get(**key));
    if let Some(key) = differing {
        let shown = |run: &BTreeMap<String, String>| {
            run.get(*key).map_or("not known", String::as_str).to_owned()
        };
        return Some(format!("{key} was {} and {}", shown(a), shown(b)));
    }
    unlike_cpu(&shared_cpu(a), &shared_cpu(b), busy_difference)
}

fn shared_cpu(run: &BTreeMap<String, String>) -> SharedCpu {
    let share = |key: &str| run.get(key).and_then(|text| text.parse::<f64>().ok());
    SharedCpu {
        stolen: share("steal_ratio"),
        others_before: share("busy_ratio_before"),
        others: share("others_ratio"),
        idle: share("idle_ratio"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_the_measurement_is_a_difference() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let usual = [
            ("cpu_model", "A"),
            ("kernel", "6.1"),
            ("steal_ratio", "0.0100"),
            ("load_average_before", "0.1"),
            ("busy_ratio_before", "0.05"),
            ("others_ratio", "0.03"),
            ("idle_ratio", "0.02"),
            ("played_by", "a + b"),
        ];
        let with = |key: &str, value: &str| {
            let mut run = of(&usual);
            run.insert(key.into(), value.into());
            run
        };
        for (key, value, expect) in [
            ("load_average_before", "3.0", None),
            ("steal_ratio", "0.0250", None),
            ("steal_ratio", "0.0500", Some("a hypervisor took 1 % and 5 % of the CPU time")),
            ("busy_ratio_before", "0.28", None),
            (
                "busy_ratio_before",
                "0.60",
                Some("before they began, other processes used 5 % and 60 % of the CPU time"),
            ),
            (
                "others_ratio",
                "0.51",
                Some("while they ran, other processes used 3 % and 51 % of the CPU time"),
            ),
            (
                "others_ratio",
                "0.20",
                Some("other processes used 20.0 % of the CPU time, and no core was idle"),
            ),
            ("kernel", "6.2", Some("kernel was 6.1 and 6.2")),
            ("cpu_model", "B", Some("cpu_model was A and B")),
            ("governor", "powersave", Some("governor was not known and powersave")),
            ("steal_ratio", "nonsense", None),
            ("played_by", "a + c", Some("played_by was a + b and a + c")),
        ] {
            assert_eq!(
                difference(&of(&usual), &with(key, value), 0.25).as_deref(),
                expect,
                "{key} {value}"
            );
        }
    }
}
