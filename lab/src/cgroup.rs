//! A control group with a quota, of either version; gone when dropped.

use std::path::{Path, PathBuf};

/// The kernel's usual period.
const PERIOD_US: u64 = 100_000;

pub(crate) struct Quota(PathBuf);

impl Quota {
    /// So many cores.
    pub(crate) fn cpu(cores: f64) -> anyhow::Result<Self> {
        let quota = (cores * PERIOD_US as f64) as u64;
        let root = Path::new("/sys/fs/cgroup");
        let is_second = root.join("cgroup.controllers").exists();
        let parent = if is_second { root.to_owned() } else { root.join("cpu") };
        let folder = parent.join(format!("throng-lab-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let made = Self(folder);
        if is_second {
            std::fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
            std::fs::write(made.0.join("cpu.max"), format!("{quota} {PERIOD_US}"))?;
        } else {
            std::fs::write(made.0.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            std::fs::write(made.0.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
        Ok(made)
    }

    /// The file that a process writes itself into.
    pub(crate) fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Puts a process and what it will start into the group.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        Ok(std::fs::write(self.members(), pid.to_string())?)
    }
}

impl Drop for Quota {
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
