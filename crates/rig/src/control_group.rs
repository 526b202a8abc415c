//! A control group for one server: the limits that an experiment needs, and a list of all its
//! processes.
//!
//! Version 2 where it has the controllers, else version 1 (both may be mounted: "hybrid").
//! cgroups(7), Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::processes::kill;

/// The period of CPU quotas, the kernel's default.
const PERIOD_US: f64 = 100_000.0;
/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What a control group limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPU time, in CPUs.
    pub cpu_quota: Option<f64>,
    /// Memory with the page cache of what it reads, bytes.
    pub memory_bytes: Option<u64>,
    /// A path on a disk, and how many bytes per second may be read from that disk.
    pub disk_read: Option<(PathBuf, u64)>,
}

/// Why there is no control group.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// No hierarchy has the controller.
    #[error("this machine has no control group controller `{0}`")]
    NoController(&'static str),
    /// A file of the hierarchy could not be written.
    #[error("control group: {path}: {error}")]
    Denied {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// One that is there has this name: of a throng whose number this process has again.
    #[error(
        "control group: {0} is there already, of an earlier experiment that was killed: `rmdir` it"
    )]
    IsThere(PathBuf),
    /// The path to limit is on no disk.
    #[error("{0} is on no disk whose reads could be limited")]
    NoDisk(PathBuf),
}

/// The mounted hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hierarchies {
    /// Version 2.
    unified: Option<PathBuf>,
    /// Version 1: controllers, and where they are mounted.
    legacy: Vec<(Vec<String>, PathBuf)>,
}

/// A control group, removed by [`ControlGroup::remove`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    name: String,
    /// Its folder in each hierarchy.
    folders: Vec<PathBuf>,
}

impl Hierarchies {
    /// From the lines of `/proc/mounts`.
    fn parse(mounts: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.lines() {
            let mut words = line.split_whitespace().skip(1);
            let (Some(at), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            match kind {
                "cgroup2" => found.unified = found.unified.or_else(|| Some(PathBuf::from(at))),
                "cgroup" => {
                    let controllers = options.split(',').map(str::to_owned).collect();
                    found.legacy.push((controllers, PathBuf::from(at)));
                }
                _ => {}
            }
        }
        found
    }

    fn legacy(&self, controller: &str) -> Option<&Path> {
        let has = |controllers: &[String]| controllers.iter().any(|known| known == controller);
        self.legacy.iter().find(|(controllers, _)| has(controllers)).map(|(_, at)| at.as_path())
    }

    /// Whether version 2 has the controller; it is then enabled for groups below the root.
    fn unified(&self, controller: &str) -> Option<&Path> {
        let root = self.unified.as_deref()?;
        let is_in = |file: &str| {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.split_whitespace().any(|known| known == controller)
        };
        if !is_in("cgroup.controllers") {
            return None;
        }
        if !is_in("cgroup.subtree_control") {
            fs::write(root.join("cgroup.subtree_control"), format!("+{controller}")).ok()?;
        }
        Some(root)
    }
}

impl ControlGroup {
    /// The folders that [`Self::create`] will make, for the journal.
    #[must_use]
    pub fn planned(name: &str) -> Vec<PathBuf> {
        let hierarchies = here();
        let roots =
            hierarchies.unified.into_iter().chain(hierarchies.legacy.into_iter().map(|(_, at)| at));
        roots.map(|root| root.join(name)).collect()
    }

    /// Makes the group `name` with `limits`. Without limits it only lists processes.
    ///
    /// # Errors
    /// If a controller is missing, or this process may not make groups. Nothing is left then.
    pub fn create(name: &str, limits: &Limits) -> Result<Self, GroupError> {
        let mut group = Self { name: name.to_owned(), folders: Vec::new() };
        match group.fill(&here(), limits) {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    fn fill(&mut self, hierarchies: &Hierarchies, limits: &Limits) -> Result<(), GroupError> {
        if let Some(cpus) = limits.cpu_quota {
            let quota = (cpus * PERIOD_US).round().max(1_000.0);
            let (folder, is_unified) = self.folder(hierarchies, "cpu")?;
            if is_unified {
                put(&folder.join("cpu.max"), &format!("{quota:.0} {PERIOD_US:.0}"))?;
            } else {
                put(&folder.join("cpu.cfs_period_us"), &format!("{PERIOD_US:.0}"))?;
                put(&folder.join("cpu.cfs_quota_us"), &format!("{quota:.0}"))?;
            }
        }
        if let Some(bytes) = limits.memory_bytes {
            let (folder, is_unified) = self.folder(hierarchies, "memory")?;
            let file = if is_unified { "memory.max" } else { "memory.limit_in_bytes" };
            put(&folder.join(file), &bytes.to_string())?;
        }
        if let Some((path, rate)) = &limits.disk_read {
            let device = device_of(path).ok_or_else(|| GroupError::NoDisk(path.clone()))?;
            match self.folder(hierarchies, "io") {
                Ok((folder, _)) => put(&folder.join("io.max"), &format!("{device} rbps={rate}"))?,
                Err(GroupError::NoController(_)) => {
                    let (folder, _) = self.folder(hierarchies, "blkio")?;
                    let file = folder.join("blkio.throttle.read_bps_device");
                    put(&file, &format!("{device} {rate}"))?;
                }
                Err(error) => return Err(error),
            }
        }
        // A group without controllers lists the processes, and has pressure of its own.
        let list =
            hierarchies.unified.clone().or_else(|| hierarchies.legacy("pids").map(Path::to_owned));
        match list {
            Some(root) => self.make(&root.join(&self.name)),
            None if self.folders.is_empty() => Err(GroupError::NoController("cgroup2")),
            None => Ok(()),
        }
    }

    /// The group's folder in the hierarchy that has `controller`, and whether that is version 2.
    fn folder(
        &mut self,
        hierarchies: &Hierarchies,
        controller: &'static str,
    ) -> Result<(PathBuf, bool), GroupError> {
        let unified = hierarchies.unified(controller).map(|root| (root, true));
        let found = unified.or_else(|| hierarchies.legacy(controller).map(|root| (root, false)));
        let (root, is_unified) = found.ok_or(GroupError::NoController(controller))?;
        let folder = root.join(&self.name);
        self.make(&folder)?;
        Ok((folder, is_unified))
    }

    fn make(&mut self, folder: &Path) -> Result<(), GroupError> {
        if self.folders.iter().any(|known| known == folder) {
            return Ok(());
        }
        // One that is there is somebody else's, and not to be removed with the others.
        fs::create_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => GroupError::IsThere(folder.to_owned()),
            _ => GroupError::Denied { path: folder.to_owned(), error },
        })?;
        self.folders.push(folder.to_owned());
        Ok(())
    }

    /// Its path below the root of the hierarchy, as `/proc/PID/cgroup` has it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// The files that a process writes to join, opened.
    pub(crate) fn doors(&self) -> Result<Vec<File>, GroupError> {
        let open = |folder: &PathBuf| {
            let path = folder.join("cgroup.procs");
            File::options()
                .write(true)
                .open(&path)
                .map_err(|error| GroupError::Denied { path, error })
        };
        self.folders.iter().map(open).collect()
    }

    /// The processes in it.
    #[must_use]
    pub fn members(&self) -> Vec<u32> {
        members(&self.folders)
    }

    /// Kills what is in it and removes it. Whether it is gone.
    pub fn remove(&self) -> bool {
        remove(&self.folders)
    }
}

fn here() -> Hierarchies {
    Hierarchies::parse(&fs::read_to_string("/proc/mounts").unwrap_or_default())
}

fn put(path: &Path, text: &str) -> Result<(), GroupError> {
    fs::write(path, text).map_err(|error| GroupError::Denied { path: path.to_owned(), error })
}

fn members(folders: &[PathBuf]) -> Vec<u32> {
    let mut all: Vec<u32> = folders
        .iter()
        .flat_map(|folder| {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Kills all processes of the groups and removes their folders. Whether they are gone.
pub(crate) fn remove(folders: &[PathBuf]) -> bool {
    let give_up_at = Instant::now() + GONE_WITHIN;
    loop {
        members(folders).into_iter().for_each(kill);
        let is_gone = |folder: &PathBuf| !folder.exists() || fs::remove_dir(folder).is_ok();
        // Each one is tried, whatever became of the one before.
        let left = folders.iter().filter(|folder| !is_gone(folder)).count();
        if left == 0 || Instant::now() >= give_up_at {
            return left == 0;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `MAJOR:MINOR` of the whole disk that `path` is on: limits apply to disks, not partitions.
fn device_of(path: &Path) -> Option<String> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // Major 0: no block device is behind the file system (tmpfs, overlay, network).
    if major == 0 {
        return None;
    }
    let own = format!("{major}:{minor}");
    let of_sys = fs::canonicalize(format!("/sys/dev/block/{own}")).ok()?;
    if of_sys.join("partition").exists() {
        let disk = fs::read_to_string(of_sys.parent()?.join("dev")).ok()?;
        return Some(disk.trim().to_owned());
    }
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\nshort line\n";
        let found = Hierarchies::parse(hybrid);
        assert_eq!(found.unified.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(found.legacy("cpu"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(found.legacy("memory"), None);
        assert_eq!(Hierarchies::parse(""), Hierarchies::default());
    }

    #[test]
    fn a_group_that_is_there_is_named_and_stays() {
        let root = tempfile::tempdir().unwrap();
        let there = root.path().join("a");
        fs::create_dir(&there).unwrap();
        let hierarchies =
            Hierarchies { unified: Some(root.path().to_owned()), ..Hierarchies::default() };
        let mut group = ControlGroup { name: "a".into(), folders: Vec::new() };
        let error = group.fill(&hierarchies, &Limits::default()).unwrap_err();
        assert!(matches!(&error, GroupError::IsThere(path) if *path == there), "{error}");
        assert!(group.folders.is_empty(), "it is not removed with its own");
    }

    #[test]
    fn what_is_on_no_disk_has_no_device() {
        assert_eq!(device_of(Path::new("/proc/self")), None);
        assert_eq!(device_of(Path::new("/not/there")), None);
    }
}
