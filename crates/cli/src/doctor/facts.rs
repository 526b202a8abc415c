//! What is read of this machine before it is judged.

use std::ffi::OsString;
use std::time::Duration;

use throng_engine::preflight::{self, Limits, Needs};
use throng_observation::host::ProfileMethod;
use throng_rig::CpuTimes;
use throng_watch::profiler::{self, Options};

use crate::fleet::clock_source::{self, Chrony};

/// How long CPU steal is watched.
const WATCHED_FOR: Duration = Duration::from_secs(1);

/// What a machine has, and what the crowd needs for which it is judged.
pub(crate) struct Facts {
    /// Below it are the kernel's files: nothing for this machine, the folder of a test.
    pub(super) root: String,
    /// The folders of programs, as in `PATH`.
    pub(super) path: OsString,
    /// What each viewer needs.
    pub(super) needs: Needs,
    pub(super) limits: Limits,
    /// The descriptors that this process might have before throng raised their limit.
    pub(super) descriptors_soft: u64,
    /// Engine threads of a large crowd.
    pub(super) threads: usize,
    /// CPU time that a hypervisor took in the last second, share of all.
    pub(super) steal_ratio: f64,
    /// What chrony says of the clock.
    pub(super) chrony: Chrony,
    /// Whether the clock is synchronised, by systemd's word, if it has one.
    pub(super) is_synchronised: Option<bool>,
    /// Whether a receive ring can be opened, and why not.
    pub(super) receive_ring: Result<(), String>,
    /// Whether the profiler may sample by the clock of CPUs, and why not.
    pub(super) profiler: Result<(), String>,
    /// Whether the kernel takes several datagrams as one message.
    pub(super) joins_datagrams: bool,
    /// Whether GStreamer can be loaded, and why not.
    pub(super) gstreamer: Result<(), String>,
}

impl Facts {
    /// Of this machine; takes a second.
    pub(crate) fn read(needs: Needs) -> Self {
        let before = CpuTimes::so_far();
        std::thread::sleep(WATCHED_FOR);
        let steal_ratio = CpuTimes::so_far().steal_ratio_since(before);
        // Before the limit is raised.
        let descriptors_soft = throng_rig::open_files();
        Self {
            root: String::new(),
            path: std::env::var_os("PATH").unwrap_or_default(),
            needs,
            limits: preflight::limits(),
            descriptors_soft,
            threads: throng_rig::cpus_allowed(),
            steal_ratio,
            chrony: Chrony::asked(),
            is_synchronised: clock_source::is_synchronised(),
            receive_ring: preflight::try_receive_ring().map_err(|why| why.to_string()),
            profiler: may_profile(),
            joins_datagrams: preflight::joins_datagrams().unwrap_or(false),
            gstreamer: throng_ipc::load_gstreamer().map_err(|why| why.to_string()),
        }
    }

    /// A file of the kernel, by its path on this machine, without blanks around its text.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(format!("{}{path}", self.root)).ok()?;
        Some(text.trim().to_owned())
    }

    /// A file that holds a number.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

/// Begins to sample this process, and ends at once.
fn may_profile() -> Result<(), String> {
    let options =
        Options { method: Some(ProfileMethod::CpuClock), children: false, ..Options::default() };
    profiler::start(&[std::process::id()], options).map(drop).map_err(|why| why.to_string())
}
