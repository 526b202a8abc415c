//! The page cache evicts pages that are needed again at once: the working set does not fit into
//! memory.

use throng_observation::host::catalogue as metric;

use super::disk::READ_BYTES_MIN;
use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::Context;
use crate::demand::Resource;

pub(super) const KEY: &str = "page_cache";
/// Refaults a second, pages that are read again soon after eviction: 4 MB/s of reads that more
/// memory would avoid.
const REFAULTS_MIN: f64 = 1_000.0;
/// Refaults a second at which the working set does not fit at all: 40 MB/s.
const REFAULTS_FULL: f64 = 10_000.0;

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !context.is_seen(&metric::HOST_MEMORY_REFAULTS_FILE) {
        return Err(NoFinding::NotMonitored("refaults of the page cache"));
    }
    let refaults = context.sum(&metric::HOST_MEMORY_REFAULTS_FILE);
    if refaults.fail() < REFAULTS_MIN {
        return ruled_out(format!(
            "Page cache: {:.0} pages a second had to be read again",
            refaults.fail()
        ));
    }
    let own = context.sum(&metric::PROCESS_READ_BYTES);
    if own.fail.is_some_and(|own| own < READ_BYTES_MIN) {
        return ruled_out(format!(
            "Page cache: {:.0} pages a second had to be read again, but the server reads nothing \
             from disks",
            refaults.fail()
        ));
    }
    let crossed = context.crossed_metric(&metric::HOST_MEMORY_REFAULTS_FILE, REFAULTS_MIN);
    let available = context.sum(&metric::HOST_MEMORY_AVAILABLE);
    let read = context.top(&metric::DISK_READ_BYTES).map(|(_, read)| read).unwrap_or_default();
    let share = (refaults.fail() / REFAULTS_MIN).ln() / (REFAULTS_FULL / REFAULTS_MIN).ln();
    Ok(Candidate {
        used: 0.5 + 0.5 * share.clamp(0.0, 1.0),
        queue: refaults.growth(10.0),
        crossed_at_s: crossed,
        series: context.ids(&metric::HOST_MEMORY_REFAULTS_FILE),
        evidence: vec![
            Evidence::per_second("host.memory.refaults_file", refaults).crossed(crossed),
            Evidence::bytes_per_second("disk.read_bytes of the busiest disk", read),
            Evidence::bytes_per_second("process.read_bytes", own),
            Evidence::bytes("host.memory.available", available),
        ],
        change: "More memory for the page cache (or a larger limit of the control group), fewer \
                 or smaller files at once, or a faster disk"
            .into(),
        eases: |demand, _| demand.resource == Resource::DiskRead,
        ..Candidate::new(KEY, "The page cache is too small for what is being served", "page cache")
    })
}
