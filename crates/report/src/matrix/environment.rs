//! Whether two runs were made in one environment: only then does their difference come from what
//! was changed.

use std::collections::BTreeMap;

/// What must be the same of all runs: this machine, and who played the crowd where a fleet did.
pub(super) const SAME: [&str; 5] = ["cpu_model", "cores", "kernel", "governor", "played_by"];
/// Most difference of the share of CPU time that a hypervisor took: 2 points.
const STEAL_DIFFERENCE_MAX: f64 = 0.02;

/// Why two runs cannot be compared; `None` if they can. `busy_difference`: the most by which the
/// share of this machine's CPU time that others used just before the run may differ. The load
/// average is no measure of it: it still has the run before in it.
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
    let rules = [
        ("steal_ratio", STEAL_DIFFERENCE_MAX, "a hypervisor took"),
        ("busy_ratio_before", busy_difference, "before they began, other processes used"),
    ];
    for (key, most, what) in rules {
        let value =
            |run: &BTreeMap<String, String>| run.get(key).and_then(|text| text.parse::<f64>().ok());
        let (Some(a), Some(b)) = (value(a), value(b)) else { continue };
        if (a - b).abs() > most {
            return Some(format!("{what} {:.0} % and {:.0} % of the CPU time", a * 1e2, b * 1e2));
        }
    }
    None
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
