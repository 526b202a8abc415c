//! A control group with one limit, of either version; gone when dropped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

/// The kernel's usual period.
const PERIOD_US: u64 = 100_000;
/// Makes names unique within a process.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Group(PathBuf);

impl Group {
    /// Limits CPU time to this number of cores.
    pub(crate) fn cpu(cores: f64) -> anyhow::Result<Self> {
        let quota = (cores * PERIOD_US as f64) as u64;
        Self::made("cpu", "cpu", |is_second| {
            if is_second {
                vec![("cpu.max", format!("{quota} {PERIOD_US}"))]
            } else {
                vec![
                    ("cpu.cfs_period_us", PERIOD_US.to_string()),
                    ("cpu.cfs_quota_us", quota.to_string()),
                ]
            }
        })
    }

    /// Limits memory to this number of bytes, without swap: what does not fit is killed.
    pub(crate) fn memory(bytes: u64) -> anyhow::Result<Self> {
        Self::made("memory", "memory", |is_second| {
            if is_second {
                vec![("memory.max", bytes.to_string()), ("memory.swap.max", "0".into())]
            } else {
                // In a group of version 1 a swappiness of 0 is never to swap, other than on the
                // host (Documentation/admin-guide/cgroup-v1/memory.rst, 5.3).
                vec![
                    ("memory.limit_in_bytes", bytes.to_string()),
                    ("memory.swappiness", "0".into()),
                ]
            }
        })
    }

    /// Limits reads from the block device `device` (`MAJOR:MINOR`) to this number of bytes a
    /// second.
    pub(crate) fn disk_read(device: &str, bytes_per_s: u64) -> anyhow::Result<Self> {
        Self::made("blkio", "io", |is_second| {
            if is_second {
                vec![("io.max", format!("{device} rbps={bytes_per_s}"))]
            } else {
                vec![("blkio.throttle.read_bps_device", format!("{device} {bytes_per_s}"))]
            }
        })
    }

    /// `first` and `second` are the controller's names in either version.
    fn made(
        first: &str,
        second: &str,
        settings: impl Fn(bool) -> Vec<(&'static str, String)>,
    ) -> anyhow::Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let is_second = root.join("cgroup.controllers").exists();
        let parent = if is_second { root.to_owned() } else { root.join(first) };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("throng-lab-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let made = Self(folder);
        if is_second {
            std::fs::write(root.join("cgroup.subtree_control"), format!("+{second}"))?;
        }
        for (file, value) in settings(is_second) {
            let path = made.0.join(file);
            std::fs::write(&path, &value)
                .with_context(|| format!("{} = {value}", path.display()))?;
        }
        Ok(made)
    }

    /// Bytes that its processes hold, page cache among them.
    pub(crate) fn memory_bytes(&self) -> anyhow::Result<u64> {
        let read = |file| std::fs::read_to_string(self.0.join(file));
        let text = read("memory.current").or_else(|_| read("memory.usage_in_bytes"))?;
        Ok(text.trim().parse()?)
    }

    /// `program` in the group from its first instruction on: a shell joins the group and then execs
    /// the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        let join =
            format!("echo $$ > {}; exec \"$0\" \"$@\"", self.0.join("cgroup.procs").display());
        command.args(["-c", &join]).arg(program);
        command
    }

    /// Moves a process and its future children into the group.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        Ok(std::fs::write(self.0.join("cgroup.procs"), pid.to_string())?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that are still ending keep the group for a moment.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
    }
}
