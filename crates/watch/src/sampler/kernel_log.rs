//! The kernel's log, where it says which processes it ended and why: for lack of memory, or after a
//! fault. Only root may read it on most hosts; without it nothing is missing but these words.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use throng_observation::host::{Culprit, HowEnded};

/// Bytes of the longest record: `CONSOLE_EXT_LOG_MAX` of the kernel.
const RECORD_BYTES_MAX: usize = 8 * 1024;
/// Records that are read at a time; what a kernel logs beyond waits for the next pass.
const RECORDS_MAX: usize = 1024;
/// Ends that are kept until the watcher sees them: a pass or two later.
const ENDS_MAX: usize = 64;
/// How long after its record the end of a process may be seen: a core dump of some GB is written
/// between. The kernel gives numbers again, so that an older record may be of another process.
const END_AGE_MAX: Duration = Duration::from_secs(30);

/// The log from the start of the watch on.
#[derive(Debug)]
pub(super) struct KernelLog {
    /// `None` where it may not be read.
    file: Option<File>,
    record: Box<[u8]>,
    ends: LoggedEnds,
}

impl KernelLog {
    /// Opens `/dev/kmsg` at its end.
    pub(super) fn open() -> Self {
        Self::at(Path::new("/dev/kmsg"))
    }

    fn at(path: &Path) -> Self {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let at_end = opened.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        Self {
            file: at_end.ok(),
            record: vec![0; RECORD_BYTES_MAX].into(),
            ends: LoggedEnds::default(),
        }
    }

    /// Reads what is new; it never waits. Each read(2) returns a record.
    pub(super) fn read(&mut self, now: Instant) {
        for _ in 0..RECORDS_MAX {
            let Some(file) = &mut self.file else { return };
            match file.read(&mut self.record) {
                Ok(0) => return,
                Ok(bytes) => {
                    let record = self.record.get(..bytes).unwrap_or_default();
                    self.ends.record(&String::from_utf8_lossy(record), now);
                }
                Err(error) => match error.kind() {
                    // Records were overwritten before they were read: the next read returns the
                    // oldest that is left.
                    ErrorKind::BrokenPipe | ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return,
                    _ => self.file = None,
                },
            }
        }
    }

    /// Who ended a process of this number and name, of which is seen now that it ended in this way,
    /// as far as was read. `thread_name`: that of its thread of a number. The name counts as well
    /// as the number: the numbers of the log are not those of a container.
    pub(super) fn culprit<'a>(
        &self,
        (pid, name): (u32, &str),
        how: HowEnded,
        now: Instant,
        thread_name: impl Fn(u32) -> Option<&'a str>,
    ) -> Option<Culprit> {
        let is_its = |end: &&LoggedEnd| {
            let is_process = end.id == pid && end.name == name;
            match end.by {
                Culprit::OutOfMemory { .. } => {
                    is_process && (how.is_kill() || how == HowEnded::Unknown)
                }
                Culprit::Fault { .. } => {
                    let is_thread = thread_name(end.id).is_some_and(|name| name == end.name);
                    (how.is_fault() || how == HowEnded::Unknown) && (is_process || is_thread)
                }
                Culprit::ResourceLimit { .. }
                | Culprit::Assertion { .. }
                | Culprit::Service { .. } => false,
            }
        };
        let mut recent = self.ends.ends.iter().rev().filter(|end| end.is_recent(now));
        recent.find(is_its).map(|end| end.by.clone())
    }
}

/// The ends that the records tell, the oldest first.
#[derive(Debug, Default)]
struct LoggedEnds {
    ends: VecDeque<LoggedEnd>,
    /// What was said of the lack of memory for which a process is killed next.
    lack: MemoryShortage,
}

/// An end in the log.
#[derive(Debug, PartialEq)]
struct LoggedEnd {
    /// The number of the process, or of its thread that failed.
    id: u32,
    /// The name of either.
    name: String,
    by: Culprit,
    /// When its record was read.
    read_at: Instant,
}

impl LoggedEnd {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.read_at) <= END_AGE_MAX
    }
}

/// What the kernel logs of a lack of memory before it says whom it killed.
#[derive(Debug, Default)]
struct MemoryShortage {
    /// The control group that has reached its limit; `None` if that was the host.
    full: Option<String>,
    /// The control group of the victim.
    victim: Option<String>,
    /// What the full group used, and its limit, bytes.
    usage: Option<(u64, u64)>,
}

impl LoggedEnds {
    /// Takes in a record as `/dev/kmsg` has it: `PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT`, and
    /// lines with properties after it.
    fn record(&mut self, record: &str, read_at: Instant) {
        let Some((head, text)) = record.split_once(';') else { return };
        let priority = head.split(',').next().and_then(|priority| priority.parse::<u32>().ok());
        // Above the three bits of the level: programs write here too, as another facility.
        if priority.is_none_or(|priority| priority >> 3 != 0) {
            return;
        }
        let text = text.lines().next().unwrap_or_default();
        if text.contains(" invoked oom-killer: ") {
            self.lack = MemoryShortage::default();
        } else if self.lack.learn(text) {
            return;
        }
        let kill = killed(text)
            .and_then(|(id, name)| Some((id, name, std::mem::take(&mut self.lack).culprit(text)?)));
        if let Some((id, name, by)) = kill.or_else(|| fault(text)) {
            if self.ends.len() >= ENDS_MAX {
                self.ends.pop_front();
            }
            self.ends.push_back(LoggedEnd { id, name, by, read_at });
        }
    }
}

impl MemoryShortage {
    /// Notes what the line says of it, if it does.
    fn learn(&mut self, text: &str) -> bool {
        if let Some(usage) = text.strip_prefix("memory: usage ") {
            self.usage = kilobytes(usage, "").zip(kilobytes(usage, "limit "));
        } else if let Some(said) = text.strip_prefix("oom-kill:") {
            self.full = between(said, ",oom_memcg=", ",task_memcg=").map(str::to_owned);
            self.victim = between(said, ",task_memcg=", ",task=").map(str::to_owned);
        } else if let Some(groups) = text.strip_prefix("Task in ") {
            // Until Linux 4.18.
            let both = groups.split_once(" killed as a result of limit of ");
            (self.victim, self.full) = both
                .map(|(victim, full)| (victim.trim().to_owned(), full.trim().to_owned()))
                .unzip();
        } else {
            return false;
        }
        true
    }

    /// The culprit of the line that says who was killed; `None` where no group was named.
    fn culprit(self, killed: &str) -> Option<Culprit> {
        match (self.full, self.usage) {
            (Some(group), Some((used_bytes, limit))) => {
                Some(Culprit::OutOfMemory { group, limit_bytes: Some(limit), used_bytes })
            }
            (Some(_), None) => None,
            (None, _) => {
                let resident = ["anon-rss:", "file-rss:", "shmem-rss:"];
                let used_bytes = resident.iter().filter_map(|name| kilobytes(killed, name)).sum();
                Some(Culprit::OutOfMemory { group: self.victim?, limit_bytes: None, used_bytes })
            }
        }
    }
}

/// `Memory cgroup out of memory: Killed process 7 (media) total-vm:…`: the number and the name.
fn killed(text: &str) -> Option<(u32, String)> {
    let (_, said) = text.split_once("Killed process ")?;
    let (id, said) = said.split_once(" (")?;
    // A name may have parentheses.
    let name = said.split_once(") total-vm:").or_else(|| said.split_once("), UID"))?.0;
    Some((id.parse().ok()?, name.to_owned()))
}

/// What follows the name and number of a thread that the processor stopped (x86 and ARM).
const FAULTS: &[&str] =
    &["]: segfault at ", "] general protection fault", "] trap ", "]: unhandled exception: "];

/// `media[7]: segfault at 10 ip … error 4 in media[…]`, `traps: media[7] trap invalid opcode …`:
/// the number and the name of the thread, and what it did.
fn fault(text: &str) -> Option<(u32, String, Culprit)> {
    let text = text.strip_prefix("traps: ").unwrap_or(text);
    let (thread, said) = text.split_at(FAULTS.iter().filter_map(|fault| text.find(fault)).min()?);
    let (name, id) = thread.rsplit_once('[')?;
    let said = said.trim_start_matches([']', ':', ' ']);
    let what = said.split(" likely on CPU").next().unwrap_or(said).trim_end().to_owned();
    Some((id.parse().ok()?, name.to_owned(), Culprit::Fault { what }))
}

/// The bytes of `NAME123kB`, wherever it stands.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let (_, value) = text.split_once(name)?;
    value.split_once("kB")?.0.parse::<u64>().ok()?.checked_mul(1024)
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    Some(text.split_once(begin)?.1.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: HowEnded = HowEnded::Signal { number: 9, core: false };
    const SEGV: HowEnded = HowEnded::Signal { number: 11, core: true };

    /// A log with these messages of the kernel.
    fn log(messages: &[&str]) -> KernelLog {
        let mut log = KernelLog::at(Path::new("/nowhere"));
        for (number, message) in messages.iter().enumerate() {
            let record = format!("3,{number},52104033,-;{message}\n SUBSYSTEM=memory\n");
            log.ends.record(&record, Instant::now());
        }
        log
    }

    /// A process that ended now, and had no other thread.
    fn culprit(log: &KernelLog, process: (u32, &str), how: HowEnded) -> Option<Culprit> {
        log.culprit(process, how, Instant::now(), |_| None)
    }

    fn said(log: &KernelLog, pid: u32, how: HowEnded) -> Option<String> {
        let thread_name = |tid: u32| (tid == 4711).then_some("SW-WebRTC[0]");
        log.culprit((pid, "media"), how, Instant::now(), thread_name).map(|by| by.words())
    }

    #[test]
    fn a_kill_in_a_control_group_names_the_group_its_limit_and_its_use() {
        // Linux 6.1.
        let log = log(&[
            "media invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            "memory: usage 262144kB, limit 262144kB, failcnt 4711",
            "swap: usage 0kB, limit 0kB, failcnt 0",
            "Memory cgroup stats for /media:",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/media,\
             task_memcg=/media,task=media,pid=1234,uid=0",
            "Memory cgroup out of memory: Killed process 1234 (media) total-vm:412345kB, anon-rss:258012kB, \
             file-rss:2048kB, shmem-rss:0kB, UID:0 pgtables:712kB oom_score_adj:0",
        ]);
        let expect = "the kernel killed it for lack of memory: control group /media used 268 MB of its 268 MB";
        assert_eq!(said(&log, 1234, KILL).as_deref(), Some(expect));
        assert_eq!(said(&log, 1234, HowEnded::Unknown).as_deref(), Some(expect));
        assert_eq!(said(&log, 1234, SEGV), None, "it ended otherwise");
        assert_eq!(said(&log, 1235, KILL), None);
        assert_eq!(culprit(&log, (1234, "other"), KILL), None, "of another namespace");
    }

    #[test]
    fn a_kill_of_an_old_kernel_and_one_on_the_host_are_told_apart() {
        // Linux 4.14.
        let old = log(&[
            "media invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null),  order=0",
            "Task in /docker/3f killed as a result of limit of /docker/3f",
            "memory: usage 102400kB, limit 102400kB, failcnt 31",
            "Memory cgroup out of memory: Kill process 77 (media) score 981 or sacrifice child",
            "Killed process 77 (media) total-vm:205432kB, anon-rss:99328kB, file-rss:512kB, shmem-rss:0kB",
        ]);
        let by = culprit(&old, (77, "media"), KILL);
        let group = "/docker/3f".to_owned();
        let (limit_bytes, used_bytes) = (Some(104_857_600), 104_857_600);
        assert_eq!(by, Some(Culprit::OutOfMemory { group, limit_bytes, used_bytes }));
        // Linux 5.10.
        let host = log(&[
            "tmux: server invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0",
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
             task_memcg=/system.slice/media.service,task=media,pid=77,uid=998",
            "Out of memory: Killed process 77 (media) total-vm:9043216kB, anon-rss:3906252kB, file-rss:0kB, \
             shmem-rss:4kB, UID:998 pgtables:8020kB oom_score_adj:0",
        ]);
        let by = culprit(&host, (77, "media"), KILL);
        let group = "/system.slice/media.service".to_owned();
        let used_bytes = (3_906_252 + 4) * 1024;
        assert_eq!(by, Some(Culprit::OutOfMemory { group, limit_bytes: None, used_bytes }));
    }

    #[test]
    fn a_fault_is_told_with_the_kernels_words_of_any_thread() {
        let log = log(&[
            "media[1234]: segfault at 10 ip 000055d0c7a0b16d sp 00007ffd3a3b8a20 error 4 in \
             media[55d0c7a0b000+1000] likely on CPU 1 (core 1, socket 0)",
            "Code: 48 8b 45 f8 <8b> 40 10",
            "traps: SW-WebRTC[0][4711] trap invalid opcode ip:7f3c sp:7f2b error:0 in libx.so[7f00+8000]",
            "traps: job[99] general protection fault ip:7f11 sp:7ffe error:0 in libc.so.6[7f00+195000]",
        ]);
        let main = "the kernel logged: segfault at 10 ip 000055d0c7a0b16d sp 00007ffd3a3b8a20 error 4 in media[55d0c7a0b000+1000]";
        let expect: Vec<_> = log.ends.ends.iter().map(|end| (end.id, end.name.as_str())).collect();
        assert_eq!(expect, [(1234, "media"), (4711, "SW-WebRTC[0]"), (99, "job")]);
        let by_main = culprit(&log, (1234, "media"), SEGV).map(|by| by.words());
        assert_eq!(by_main.as_deref(), Some(main));
        assert!(said(&log, 7, SEGV).is_some_and(|said| said.contains("trap invalid opcode")));
        assert_eq!(said(&log, 7, KILL), None, "no fault ends by SIGKILL");
    }

    #[test]
    fn a_fault_is_of_a_process_by_number_name_and_time() {
        let log = log(&["job[99]: segfault at 10 ip 0 sp 0 error 4 in libc.so.6[7f00+195000]"]);
        let now = Instant::now();
        let by = |name: &'static str, now| {
            let thread_name = |tid: u32| (tid == 99).then_some(name);
            log.culprit((7, "media"), SEGV, now, thread_name)
        };
        assert!(by("job", now).is_some(), "its thread");
        assert_eq!(by("SW-WebRTC[0]", now), None, "its thread 99 is not that of the log");
        assert!(by("job", now + END_AGE_MAX / 2).is_some(), "a core dump was written");
        assert_eq!(by("job", now + END_AGE_MAX * 2), None, "the number was given again");
    }

    #[test]
    fn what_programs_write_into_the_log_is_not_the_kernels_word() {
        let mut log = log(&[]);
        let text = "media[1234]: segfault at 0 ip 0 sp 0 error 4";
        let foreign = format!("11,5,1,-;{text}\n");
        let records = [foreign.as_str(), text, "", ";", "3,1,1,-;", "x,1,1,-;[: segfault at"];
        for record in records {
            log.ends.record(record, Instant::now());
        }
        log.ends.record("3,1,1,-;Killed process 1234 (media) total-vm:1kB", Instant::now());
        assert!(log.ends.ends.is_empty(), "{:?}", log.ends);
        for number in 0..200 {
            let record = format!("6,1,1,c;job[{number}]: segfault at 0 ip 0 sp 0 error 4");
            log.ends.record(&record, Instant::now());
        }
        assert_eq!(log.ends.ends.len(), ENDS_MAX);
        assert_eq!(log.ends.ends.back().map(|end| end.id), Some(199));
    }

    #[test]
    fn a_log_is_read_from_its_end_and_one_that_may_not_be_read_is_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |pid: u32| format!("6,1,1,-;media[{pid}]: segfault at 0 ip 0 sp 0 error 4\n");
        std::fs::write(file.path(), line(1)).unwrap();
        let mut log = KernelLog::at(file.path());
        log.read(Instant::now());
        assert!(log.ends.ends.is_empty(), "before the watch");
        let mut writer = OpenOptions::new().append(true).open(file.path()).unwrap();
        std::io::Write::write_all(&mut writer, line(2).as_bytes()).unwrap();
        log.read(Instant::now());
        assert_eq!(log.ends.ends.back().map(|end| end.id), Some(2));
        KernelLog::at(Path::new("/nowhere")).read(Instant::now());
    }
}
