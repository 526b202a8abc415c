//! `/proc/stat`: CPU time by mode and core, in ticks; switches, forks, tasks.

use throng_observation::host::CpuTimes;

use super::scan::{fields, lines, next_number, number};

/// A parsed line of the file.
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

/// Parses the known lines.
pub fn parse(text: &[u8]) -> impl Iterator<Item = Line> {
    lines(text).filter_map(line)
}

fn line(line: &[u8]) -> Option<Line> {
    let mut fields = fields(line);
    let key = fields.next()?;
    if let Some(core) = key.strip_prefix(b"cpu") {
        let times = CpuTimes::from_columns(fields.map_while(number))?;
        return if core.is_empty() {
            Some(Line::All(times))
        } else {
            Some(Line::Core(u32::try_from(number(core)?).ok()?, times))
        };
    }
    // The line of interrupts is long; only its key is read.
    let kind = match key {
        b"ctxt" => Line::ContextSwitches,
        b"processes" => Line::Forks,
        b"procs_running" => Line::Running,
        b"procs_blocked" => Line::Blocked,
        _ => return None,
    };
    next_number(&mut fields).map(kind)
}
