//! Media read from a slow disk, a file for each viewer: a loop device with ext4 and a throttle, and
//! the same files in memory without a limit.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::Planted;
use crate::cgroup::Group;
use crate::search::{Lab, Outcome};
use crate::stage::Stage;

const BYTES_PER_S: u64 = 2_500_000;
const FILES: usize = 60;
const FILE_BYTES: usize = 2 << 20;

pub(super) const PLANTED: Planted = Planted {
    name: "disk read",
    what: "stage, a file for each viewer on a disk that gives 20 Mbit/s",
    expects: &["disk_read"],
    verdict: "found",
    is_short: false,
    plant,
};

/// The same files in memory: no limit within the range of the search.
pub(super) const IN_MEMORY: Planted = Planted {
    name: "files in memory",
    what: "stage, a file for each viewer in memory (tmpfs), up to 30 viewers",
    expects: &[],
    verdict: "at_least",
    is_short: false,
    plant: plant_in_memory,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let disk = Disk::loop_device()?;
    write_files(disk.folder.path())?;
    let group = Group::disk_read(&disk.number()?, BYTES_PER_S)?;
    let path = disk.folder.path().display().to_string();
    let stage = Stage::start(lab, None, &["--media-folder", &path])?;
    let truth = stage.limit(lab, BYTES_PER_S as f64, Stage::bytes_read)?;
    group.take(stage.pid())?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "disk-read", &stage.url, &watch, &["--ceiling", "200"])?;
    drop(stage);
    Ok(Outcome { answer, truth: Some(truth) })
}

fn plant_in_memory(lab: &Lab) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("throng-lab").tempdir_in("/dev/shm")?;
    write_files(folder.path())?;
    let path = folder.path().display().to_string();
    let stage = Stage::start(lab, None, &["--media-folder", &path])?;
    let watch = format!("pid={}", stage.pid());
    let answer = lab.find(None, "files-in-memory", &stage.url, &watch, &["--ceiling", "30"])?;
    Ok(Outcome { answer, truth: Some(30.0) })
}

fn write_files(folder: &Path) -> anyhow::Result<()> {
    for number in 0..FILES {
        std::fs::write(folder.join(format!("{number:03}")), vec![number as u8; FILE_BYTES])?;
    }
    run("sync", &[]).map(drop)
}

/// A file system on a loop device, removed when dropped.
struct Disk {
    device: String,
    folder: tempfile::TempDir,
    _image: tempfile::NamedTempFile,
}

impl Disk {
    fn loop_device() -> anyhow::Result<Self> {
        let image = tempfile::NamedTempFile::new()?;
        image.as_file().set_len((FILES * FILE_BYTES * 2) as u64)?;
        let path = image.path().display().to_string();
        run("mkfs.ext4", &["-q", "-F", &path])?;
        let device = run("losetup", &["--find", "--show", &path])?.trim().to_owned();
        let disk = Self { device, folder: tempfile::tempdir()?, _image: image };
        run("mount", &[&disk.device, &disk.folder.path().display().to_string()])?;
        Ok(disk)
    }

    /// `MAJOR:MINOR`.
    fn number(&self) -> anyhow::Result<String> {
        let name = self.device.strip_prefix("/dev/").context("no device")?;
        Ok(std::fs::read_to_string(format!("/sys/block/{name}/dev"))?.trim().to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.folder.path().display().to_string()]);
        let _ = run("losetup", &["--detach", &self.device]);
    }
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
