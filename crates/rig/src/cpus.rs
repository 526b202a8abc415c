//! Lists of CPUs, as `taskset` and cpusets write them: `0`, `0-3,8`.

use rustix::thread::CpuSet;

/// Why a list of CPUs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// Not a list.
    #[error("`{0}` is not a list of CPUs such as 0 or 0-3,8")]
    Syntax(String),
    /// A CPU that this process may not use.
    #[error("CPU {0} is not among those that this process may use")]
    NotThere(usize),
}

/// The CPUs of a list, in order, each once.
///
/// # Errors
/// If it is not a list, or names a CPU that this process may not use.
pub fn parse_cpus(text: &str) -> Result<Vec<usize>, CpuListError> {
    let allowed = rustix::thread::sched_getaffinity(None).ok();
    let is_allowed =
        |cpu: usize| allowed.as_ref().is_none_or(|set| cpu < CpuSet::MAX_CPU && set.is_set(cpu));
    let cpus = listed(text)?;
    match cpus.iter().find(|cpu| !is_allowed(**cpu)) {
        Some(cpu) => Err(CpuListError::NotThere(*cpu)),
        None => Ok(cpus),
    }
}

fn listed(text: &str) -> Result<Vec<usize>, CpuListError> {
    let wrong = || CpuListError::Syntax(text.chars().take(40).collect());
    let number = |text: &str| {
        text.trim().parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU).ok_or_else(wrong)
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The set of the listed CPUs.
pub(crate) fn set_of(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_the_kernel_writes_it() {
        for (text, expect) in
            [("0", Some(vec![0])), ("0-2", Some(vec![0, 1, 2])), ("3,0-1,1", Some(vec![0, 1, 3]))]
        {
            assert_eq!(listed(text).ok(), expect, "{text}");
        }
        for text in ["", "a", "1-", "2-1", "0,", "-1", "99999999", "0-99999999999999999999"] {
            assert!(listed(text).is_err(), "{text}");
        }
    }
}
