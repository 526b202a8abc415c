//! Process discovery: finds the processes of the targets and their descendants, also those that
//! start later.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::{RawDir, SeekFrom, seek};

use crate::proc::stat::{self, Stat};
use crate::proc::{cgroup, scan};
use crate::sampler::files::Reader;
use crate::sampler::threads::DirBuffer;
use crate::target::Target;

mod port;
pub(crate) use port::{holders, socket_inodes};

/// Processes that are remembered; on a machine with more, the others are examined in every pass.
const KNOWN_MAX: usize = 65_536;
/// A process may exec another program soon after its fork.
const SETTLE_TIME: Duration = Duration::from_secs(4);
/// Older processes are examined once in this many passes: daemons may change their name late.
const RECHECK_PASSES: u32 = 16;
/// How often to search for a port's process while none is known.
const PORT_EVERY: Duration = Duration::from_secs(2);

/// A process that matches a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetProcess {
    pub(crate) pid: u32,
    pub(crate) with_descendants: bool,
    /// Index of the target.
    pub(crate) target: usize,
}

/// Finds the processes of the targets.
#[derive(Debug)]
pub(crate) struct Finder {
    targets: Vec<Target>,
    /// The process group of each target that is a command, once started.
    groups: Vec<Option<u32>>,
    proc: File,
    known: HashMap<u32, KnownProcess>,
    pass: u32,
    ports_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct KnownProcess {
    since: Instant,
    pass: u32,
}

/// The properties by which a process is matched.
struct Candidate<'a> {
    pid: u32,
    name: &'a [u8],
    parent: u32,
    group: u32,
    has_lost_main_thread: bool,
}

impl Finder {
    pub(crate) fn new(targets: Vec<Target>) -> io::Result<Self> {
        let groups = vec![None; targets.len()];
        let proc = File::open("/proc")?;
        Ok(Self { targets, groups, proc, known: HashMap::new(), pass: 0, ports_at: None })
    }

    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Sets the process group of a started command.
    pub(crate) fn started(&mut self, target: usize, group: u32) {
        if let Some(place) = self.groups.get_mut(target) {
            *place = Some(group);
        }
    }

    /// Whether it is the process of a started command, not one of its descendants.
    pub(crate) fn is_command(&self, pid: u32) -> bool {
        self.groups.contains(&Some(pid))
    }

    /// Forgets a process, so that it is examined again: it has executed another program.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// The processes that match and are not watched yet. `watched` returns a watched process's
    /// target and whether its descendants are watched too; `is_served` returns whether a target has
    /// a process.
    pub(crate) fn find(
        &mut self,
        reader: &mut Reader,
        dir: &mut DirBuffer,
        watched: impl Fn(u32) -> Option<(usize, bool)>,
        is_served: impl Fn(usize) -> bool,
    ) -> io::Result<Vec<TargetProcess>> {
        self.pass = self.pass.wrapping_add(1);
        if self.targets.iter().all(|target| matches!(target, Target::Pid(_))) {
            return Ok(self.find_pids(reader, &watched));
        }
        seek(&self.proc, SeekFrom::Start(0))?;
        let mut found: Vec<TargetProcess> = Vec::new();
        let now = Instant::now();
        let mut entries = RawDir::new(&self.proc, dir);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let Ok(Ok(pid)) = entry.file_name().to_str().map(str::parse::<u32>) else { continue };
            if watched(pid).is_some() || !is_due(&mut self.known, pid, self.pass, now) {
                continue;
            }
            // A process found in this very pass may be the parent: PIDs are listed in ascending
            // order.
            let of_parent = |parent| {
                let new = || {
                    found
                        .iter()
                        .find(|new| new.pid == parent)
                        .map(|new| (new.target, new.with_descendants))
                };
                watched(parent).or_else(new)
            };
            if let Some(new) = match_process(&self.targets, &self.groups, reader, pid, of_parent) {
                found.push(new);
            }
        }
        let pass = self.pass;
        self.known.retain(|_, known| known.pass == pass);
        self.find_ports(now, reader, &watched, &is_served, &mut found);
        Ok(found)
    }

    /// Where all targets are PIDs, no other process needs to be examined.
    fn find_pids(
        &self,
        reader: &mut Reader,
        watched: &impl Fn(u32) -> Option<(usize, bool)>,
    ) -> Vec<TargetProcess> {
        let numbers = self.targets.iter().filter_map(|target| match target {
            Target::Pid(pid) => Some(*pid),
            _ => None,
        });
        let new = numbers.filter(|pid| watched(*pid).is_none());
        let mut found: Vec<_> = new
            .filter_map(|pid| match_process(&self.targets, &self.groups, reader, pid, |_| None))
            .collect();
        found.dedup();
        found
    }

    fn find_ports(
        &mut self,
        now: Instant,
        reader: &mut Reader,
        watched: &impl Fn(u32) -> Option<(usize, bool)>,
        is_served: &impl Fn(usize) -> bool,
        found: &mut Vec<TargetProcess>,
    ) {
        if self.ports_at.is_some_and(|at| now < at) {
            return;
        }
        for (target, port) in
            self.targets.iter().enumerate().filter_map(|(place, target)| match target {
                Target::Port(port) => Some((place, *port)),
                _ => None,
            })
        {
            if is_served(target) {
                continue;
            }
            self.ports_at = Some(now + PORT_EVERY);
            for pid in port::holders(reader, port) {
                if watched(pid).is_none() && !found.iter().any(|new| new.pid == pid) {
                    found.push(TargetProcess { pid, with_descendants: true, target });
                }
            }
        }
    }
}

/// Whether to examine a process in this pass.
fn is_due(known: &mut HashMap<u32, KnownProcess>, pid: u32, pass: u32, now: Instant) -> bool {
    if known.len() >= KNOWN_MAX && !known.contains_key(&pid) {
        return true;
    }
    let is_new = !known.contains_key(&pid);
    let entry = known.entry(pid).or_insert(KnownProcess { since: now, pass });
    entry.pass = pass;
    is_new
        || now.duration_since(entry.since) < SETTLE_TIME
        || pid.wrapping_add(pass).is_multiple_of(RECHECK_PASSES)
}

fn match_process(
    targets: &[Target],
    groups: &[Option<u32>],
    reader: &mut Reader,
    pid: u32,
    watched: impl Fn(u32) -> Option<(usize, bool)>,
) -> Option<TargetProcess> {
    let mut name = [0; 64];
    let candidate = {
        let stat = stat::parse(reader.path_one(&format!("/proc/{pid}/stat")).ok()?)?;
        if stat.is_over() {
            return None;
        }
        let Stat { name: full, parent, group, .. } = stat;
        let has_lost_main_thread = stat.has_lost_main_thread();
        let length = full.len().min(name.len());
        name.get_mut(..length)?.copy_from_slice(full.get(..length)?);
        Candidate { pid, name: name.get(..length)?, parent, group, has_lost_main_thread }
    };
    if let Some((target, true)) = watched(candidate.parent) {
        return Some(TargetProcess { pid, with_descendants: true, target });
    }
    let place = targets
        .iter()
        .zip(groups)
        .position(|(target, group)| matches_target(target, *group, &candidate, reader))?;
    let with_descendants = !matches!(targets.get(place)?, Target::Pid(_));
    Some(TargetProcess { pid, with_descendants, target: place })
}

fn matches_target(
    target: &Target,
    group: Option<u32>,
    candidate: &Candidate<'_>,
    reader: &mut Reader,
) -> bool {
    let pid = candidate.pid;
    match target {
        // The watcher itself does not match by name.
        Target::Process(name) => pid != std::process::id() && is_named(name, candidate, reader),
        Target::Pid(wanted) => *wanted == pid,
        Target::Unit(unit) => {
            let unit = if unit.contains('.') { unit.clone() } else { format!("{unit}.service") };
            in_groups(reader, pid, |path| path.split('/').any(|part| part == unit))
        }
        Target::Cgroup(wanted) => {
            let wanted = wanted.trim_end_matches('/');
            in_groups(reader, pid, |path| {
                path.strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        }
        Target::Command(_) => group.is_some_and(|group| group == candidate.group),
        Target::Port(_) => false, // by its sockets
    }
}

/// Matches the kernel's name, which is cut at 15 bytes, or the file name of the program or of the
/// script it runs.
fn is_named(wanted: &str, candidate: &Candidate<'_>, reader: &mut Reader) -> bool {
    if wanted.as_bytes() == candidate.name {
        return true;
    }
    let other = candidate.has_lost_main_thread.then(|| other_thread(candidate.pid)).flatten();
    let folder = other.unwrap_or_else(|| format!("/proc/{}", candidate.pid));
    let Ok(command_line) = reader.path(&format!("{folder}/cmdline")) else {
        return false;
    };
    let mut words = command_line.split(|byte| *byte == 0);
    let file_name =
        |word: &[u8]| word.rsplit(|byte| *byte == b'/').next() == Some(wanted.as_bytes());
    let is_program = words.next().is_some_and(file_name);
    // The first argument of an interpreter that is not an option is its script.
    is_program || {
        let script = words.find(|word| !word.starts_with(b"-"));
        script.is_some_and(|word| word.contains(&b'/') && file_name(word))
            && is_interpreter(candidate.name)
    }
}

fn is_interpreter(name: &[u8]) -> bool {
    let kinds =
        ["python", "node", "perl", "ruby", "lua", "php", "bash", "sh", "java", "bun", "deno"];
    kinds.iter().any(|kind| name.starts_with(kind.as_bytes()))
}

fn in_groups(reader: &mut Reader, pid: u32, is_it: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = reader.path(&format!("/proc/{pid}/cgroup")) else { return false };
    cgroup::parse(text).any(|membership| is_it(membership.path))
}

/// The folder of a thread of this process besides its main thread.
pub(crate) fn other_thread(pid: u32) -> Option<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let thread = threads.find(|thread| *thread != pid)?;
    Some(format!("/proc/{pid}/task/{thread}"))
}

/// What a process runs, for display: see [`program_and_script`].
pub(crate) fn what_it_runs(reader: &mut Reader, pid: u32) -> Option<String> {
    Some(program_and_script(reader.path(&format!("/proc/{pid}/cmdline")).ok()?))
}

/// The program of a command line, and the script that an interpreter runs. Other words may be
/// secrets, also where the program has written one text over all of them.
fn program_and_script(command_line: &[u8]) -> String {
    let mut words = command_line.split(|byte| *byte == 0).map(scan::text);
    let called = words.next().unwrap_or_default();
    let program = called.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_path = |word: &String| {
        let is_option = word.starts_with('-') || word.contains(['=', ':', '@']);
        word.contains('/') && !is_option && !word.contains(char::is_whitespace)
    };
    let script = words.next().filter(is_path).filter(|_| is_interpreter(name.as_bytes()));
    let shown = std::iter::once(program).chain(script.as_deref());
    shown.collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_program_and_script_and_not_by_its_arguments() {
        for (command_line, told) in [
            (&b"/usr/bin/janus\0-F\0/etc/janus\0--token\0hunter2\0"[..], "/usr/bin/janus"),
            (b"python3\0/srv/app.py\0--key=hunter2\0", "python3 /srv/app.py"),
            (b"/bin/sh\0-c\0curl http://me:hunter2@h/\0", "/bin/sh"),
            (b"sh\0http://me:hunter2@h/\0", "sh"),
            (b"java\0-Dtoken=hunter2\0-jar\0/srv/app.jar\0", "java"),
            (b"media\0/etc/hunter2\0", "media"),
            (b"worker: --token hunter2\0\0\0", "worker:"),
            (b"", ""),
        ] {
            assert_eq!(program_and_script(command_line), told);
        }
    }
}
