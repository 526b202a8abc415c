//! What distinguishes runs: the mark in participants' names, their random numbers, the run folder's
//! default name.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use throng_observation::seed::step;
use throng_protocol::signalling::RunMark;

use crate::args::RUNS;

/// The number from which the others are made; 0 until it is known.
static SEED: AtomicU64 = AtomicU64::new(0);

/// The number of the secret of rooms; no participant has it.
const ROOM: u32 = u32::MAX;

/// The part of participants' names that differs by run.
pub(crate) fn mark() -> RunMark {
    RunMark::new(&format!("{:05x}", seed() & 0xf_ffff))
}

/// The secret of the rooms that a run creates. Not confidential: it keeps a run from destroying
/// rooms that it did not create.
pub(crate) fn room_secret() -> String {
    format!("throng-{:016x}", random(ROOM))
}

/// `{random}` of a participant: unique within a run, because each step of SplitMix64 is a
/// bijection.
pub(crate) fn random(participant: u32) -> u64 {
    step(seed(), u64::from(participant))
}

/// A random number, the same throughout this process, or that of the fleet that it plays in.
pub(crate) fn seed() -> u64 {
    // The standard library seeds each of these from the operating system.
    let new = RandomState::new().build_hasher().finish().max(1);
    SEED.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).err().unwrap_or(new)
}

/// Takes the seed of a fleet, or one that was asked for: participants of one run have their mark in
/// common, wherever they are played.
pub(crate) fn adopt_seed(seed: u64) {
    SEED.store(seed.max(1), Ordering::Relaxed);
}

/// A new run folder under `runs/`, named by the time and the process.
pub(crate) fn default_folder() -> PathBuf {
    let seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Path::new(RUNS).join(format!("{seconds}-{}", std::process::id()))
}
