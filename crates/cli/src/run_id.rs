//! What distinguishes runs: the mark in participants' names, their random numbers, the run folder's default name.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

use throng_protocol::signalling::RunMark;

/// The part of participants' names that differs by process.
pub(crate) fn mark() -> RunMark {
    static MARK: OnceLock<RunMark> = OnceLock::new();
    MARK.get_or_init(|| RunMark::new(&format!("{:05x}", process_seed() & 0xf_ffff))).clone()
}

/// `{random}` of a participant: unique within a run, because each step of SplitMix64 is a bijection.
pub(crate) fn random(participant: u32) -> u64 {
    let mut bits = process_seed().wrapping_add(u64::from(participant).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A random number, the same throughout this process.
fn process_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    // The standard library seeds each of these from the operating system.
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// A new run folder under `runs/`, named by the time and the process.
pub(crate) fn default_folder() -> PathBuf {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    PathBuf::from(format!("runs/{seconds}-{}", std::process::id()))
}
