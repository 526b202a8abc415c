//! Whether two runs were made on machines that can be compared, by the facts that each recorded.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::host::BOOT_ID_FACT;
use throng_observation::pack::PACKS_FACT;

/// Facts of a machine by name, as run folders have them.
pub type Facts = BTreeMap<String, String>;

/// A fact in which machines differ.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct FactDifference {
    /// The machine: `generator`, or the name of a watched host.
    pub machine: String,
    /// The fact, such as `cpu_model`.
    pub fact: String,
    /// Its value in the first run of the base.
    pub base: String,
    /// Its value in another run.
    pub new: String,
    /// Whether the runs are refused because of it: figures of different hardware are no evidence
    /// about the software.
    pub refuses: bool,
}

/// Names of the same fact by the generator and by the watcher.
const ALIASES: [(&str, &str); 1] = [("cores", "cpus")];

/// Memory may differ by this share: kernels of one release reserve different amounts.
const MEMORY_RATIO: f64 = 0.02;

/// The facts in which the machine called `machine` differs between two runs. A fact that one of
/// them did not record is no difference.
#[must_use]
pub fn differences(machine: &str, base: &Facts, new: &Facts) -> Vec<FactDifference> {
    let (base, new) = (of_machine(base), of_machine(new));
    let shared: BTreeSet<&String> = base.keys().filter(|name| new.contains_key(*name)).collect();
    let differing = shared.into_iter().filter_map(|name| {
        let (old, new) = (base.get(name)?, new.get(name)?);
        (!is_same(name, old, new)).then(|| FactDifference {
            machine: machine.to_owned(),
            fact: name.clone(),
            base: old.clone(),
            new: new.clone(),
            refuses: refuses(name, old, new),
        })
    });
    differing.collect()
}

/// Whether enough was recorded to know the machine again.
#[must_use]
pub fn is_known(facts: &Facts) -> bool {
    let facts = of_machine(facts);
    ["cpu_model", "cpus", "kernel"].iter().all(|name| facts.contains_key(*name))
}

/// The facts that may be compared, under common names: not the knowledge packs, not the boot, and
/// not the control groups of processes, whose names differ by run. The executable, limits and
/// environment of a server's process are among them: of two builds they differ.
fn of_machine(facts: &Facts) -> Facts {
    let is_of_machine =
        |name: &str| ![PACKS_FACT, BOOT_ID_FACT].contains(&name) && !name.ends_with(".cgroup");
    let common = |name: &String| {
        ALIASES
            .iter()
            .find(|(alias, _)| alias == name)
            .map_or_else(|| name.clone(), |(_, common)| (*common).to_owned())
    };
    facts
        .iter()
        .filter(|(name, _)| is_of_machine(name))
        .map(|(name, value)| (common(name), value.clone()))
        .collect()
}

fn is_same(name: &str, base: &str, new: &str) -> bool {
    match (name, base.parse::<f64>(), new.parse::<f64>()) {
        ("memory_bytes", Ok(base), Ok(new)) => (new - base).abs() <= MEMORY_RATIO * base.abs(),
        _ => base == new,
    }
}

/// Facts of the hardware and of what schedules it. A patch release of the kernel is shown, and not
/// refused.
fn refuses(name: &str, base: &str, new: &str) -> bool {
    match name {
        "cpu_model" | "cpus" | "governor" | "architecture" | "memory_bytes" => true,
        "kernel" => release(base) != release(new),
        _ => false,
    }
}

/// `6.18` of `6.18.3-generic`.
fn release(kernel: &str) -> String {
    let numbers = kernel.split(|c: char| !c.is_ascii_digit());
    numbers.take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn hardware_refuses_and_settings_are_shown() {
        let base = facts(&[
            ("cpu_model", "EPYC 7"),
            ("cores", "2"),
            ("kernel", "6.18.1"),
            ("net.core.rmem_max", "212992"),
        ]);
        assert_eq!(differences("generator", &base, &base), []);
        for (name, value, refuses) in [
            ("cpu_model", "Xeon", true),
            ("cpus", "4", true),
            ("kernel", "6.19.1", true),
            ("kernel", "6.18.9-2", false),
            ("net.core.rmem_max", "8388608", false),
        ] {
            let mut new = base.clone();
            new.insert(name.into(), value.into());
            if name == "cpus" {
                new.remove("cores");
            }
            let found = differences("generator", &base, &new);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!((found[0].fact.as_str(), found[0].refuses), (name, refuses));
        }
    }

    #[test]
    fn what_is_not_recorded_and_what_differs_by_run_is_no_difference() {
        let base = facts(&[
            ("cpu_model", "EPYC"),
            ("janus.cgroup", "/a"),
            (BOOT_ID_FACT, "5f"),
            (PACKS_FACT, "x"),
            ("memory_bytes", "1000000"),
        ]);
        let new = facts(&[
            ("janus.cgroup", "/b"),
            (BOOT_ID_FACT, "6f"),
            (PACKS_FACT, "y"),
            ("governor", "powersave"),
            ("memory_bytes", "1010000"),
        ]);
        assert_eq!(differences("a", &base, &new), []);
        assert!(!is_known(&base) && !is_known(&Facts::new()));
        assert!(is_known(&facts(&[("cpu_model", "EPYC"), ("cores", "2"), ("kernel", "6")])));
        assert_eq!(release(""), "");
    }
}
