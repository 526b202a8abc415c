//! The page cache throws out what is asked for again at once: more is being served than fits into memory.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;

use super::{Candidate, CheckResult, Evidence};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "page_cache";
/// Pages a second that come back soon after they were thrown out: 4 MB/s of reading that memory would have spared.
const REFAULTS_MIN: f64 = 1_000.0;
/// A server that reads less than this a second by itself has no use for the cache: others on the host do the reading.
const OWN_READ_BYTES_MIN: f64 = 64e3;
/// The working set does not fit at all: 40 MB/s.
const REFAULTS_FULL: f64 = 10_000.0;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::HOST_MEMORY_REFAULTS_FILE) {
        return CheckResult::NotMonitored("how often the page cache has to read again");
    }
    let refaults = context.sum(&metric::HOST_MEMORY_REFAULTS_FILE);
    if refaults.fail() < REFAULTS_MIN {
        return CheckResult::RuledOut(format!(
            "Page cache: {:.0} pages a second had to be read again",
            refaults.fail()
        ));
    }
    let own = context.sum(&metric::PROCESS_READ_BYTES);
    if own.fail.is_some_and(|own| own < OWN_READ_BYTES_MIN) {
        return CheckResult::RuledOut(format!(
            "Page cache: {:.0} pages a second had to be read again, but the server reads nothing from disks",
            refaults.fail()
        ));
    }
    let crossed = context.crossed_metric(&metric::HOST_MEMORY_REFAULTS_FILE, REFAULTS_MIN);
    let available = context.sum(&metric::HOST_MEMORY_AVAILABLE);
    let read = context.top(&metric::DISK_READ_BYTES).map(|(_, read)| read).unwrap_or_default();
    let share = (refaults.fail() / REFAULTS_MIN).ln() / (REFAULTS_FULL / REFAULTS_MIN).ln();
    Candidate {
        used: 0.5 + 0.5 * share.clamp(0.0, 1.0),
        queue: refaults.growth(10.0),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_MEMORY_REFAULTS_FILE),
        evidence: vec![
            Evidence::new("host.memory.refaults_file", Unit::PerSecond, refaults).crossed(crossed),
            Evidence::new("disk.read_bytes of the busiest disk", Unit::BytesPerSecond, read),
            Evidence::new("process.read_bytes", Unit::BytesPerSecond, own),
            Evidence::new("host.memory.available", Unit::Bytes, available),
        ],
        change: "More memory for the page cache (or a larger limit of the control group), fewer or smaller files at once, or a faster disk".into(),
        eases: |demand, _| demand.resource == Resource::DiskRead,
        ..Candidate::new(KEY, "The page cache is too small for what is being served", "page cache")
    }
    .suspect()
}
