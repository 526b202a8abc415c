//! The disk gives no more: what users get has to be read first, and reads wait.
//!
//! Idle time "waiting for I/O" is no evidence: it is CPU time that nothing wanted, and threads parked in io_uring count
//! into it (liburing #943). Sectors that were read, and the time they took, are.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::units::{bit_rate, duration_ms};

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::demand::Resource;

pub(super) const KEY: &str = "disk_read";
/// Below a third of what is sent, the page cache serves, not the disk.
const READ_OF_SENT_MIN: f64 = 0.30;
/// Reads of less than this a second are housekeeping.
const READ_BYTES_MIN: f64 = 64e3;
/// A read that takes thrice what it took, and longer than a fast disk's worst.
const AWAIT_GROWTH: f64 = 3.0;
const AWAIT_MS_MIN: f64 = 5.0;
/// A disk that gives less than this of what the server reads is not the one: the counters' seconds differ a little.
const OWN_MIN: f64 = 0.8;
/// Some task stood still for block I/O for this share of the time.
const STALL_MIN: f64 = 0.30;

/// The disk that the server reads from: one that gives at least what the server reads, and of those the one nearest to it,
/// because others on the host read from disks as well. Where no single disk gives so much, the busiest.
fn disk_of<'a>(context: &Context<'a>, own: Reading) -> Option<(MeasuredSeries<'a>, Reading)> {
    let fits = |read: &Reading| own.fail.is_some_and(|own| own > 0.0 && read.fail() >= OWN_MIN * own);
    let all = context.host.metric(metric::DISK_READ_BYTES.name).iter();
    all.map(|disk| (*disk, context.median(disk)))
        .filter(|(_, read)| fits(read))
        .min_by(|a, b| a.1.fail().total_cmp(&b.1.fail()))
        .or_else(|| context.top(&metric::DISK_READ_BYTES))
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let own = context.sum(&metric::PROCESS_READ_BYTES);
    let Some((disk, read)) = disk_of(context, own) else {
        return CheckResult::NotMonitored("the disks");
    };
    let from_disk = own.fail.unwrap_or(0.0).max(if own.fail.is_none() { read.fail() } else { 0.0 });
    let sent = context
        .top(&metric::NIC_TX_BYTES)
        .map_or(0.0, |(_, sent)| sent.fail())
        .max(context.users.received.fail());
    if read.fail() < READ_BYTES_MIN || from_disk < READ_OF_SENT_MIN * sent {
        return CheckResult::RuledOut(format!(
            "Disk: {} read for {} sent",
            bit_rate(from_disk * 8.0),
            bit_rate(sent * 8.0)
        ));
    }
    let device = disk.label("device");
    let of_device = |wanted: &throng_observation::host::catalogue::Metric| {
        context.host.metric(wanted.name).iter().find(|series| series.label("device") == device)
    };
    let of = |wanted| of_device(wanted).map_or_else(Reading::default, |series| context.median(series));
    let (wait, queue, busy) = (of(&metric::DISK_READ_AWAIT), of(&metric::DISK_QUEUE), of(&metric::DISK_BUSY));
    let blocked = context.sum(&metric::PROCESS_THREADS_BLOCKED);
    let stall = context.sum(&metric::HOST_PRESSURE_IO_SOME);
    let floor = wait.base.or(wait.pass).unwrap_or(0.0);
    let is_slow = wait.fail() > AWAIT_MS_MIN && wait.fail() >= AWAIT_GROWTH * floor;
    let is_waited_for = blocked.fail() >= 1.0
        || stall.fail() >= STALL_MIN
        || context.sum(&metric::PROCESS_BLKIO_WAIT).fail() >= STALL_MIN;
    // What more users ask for and do not get: the disk gives each of them less than before.
    let per_user = |value: Option<f64>, stretch: Option<crate::windows::LoadWindow>| {
        Some(value? / stretch.filter(|stretch| stretch.users > 0.0)?.users)
    };
    let shrinks = per_user(read.fail, Some(context.fail))
        .zip(
            per_user(read.base.filter(|base| *base > READ_BYTES_MIN), context.windows.base)
                .or(per_user(read.pass, context.windows.pass)),
        )
        .is_some_and(|(fail, before)| fail < 0.9 * before);
    if !is_slow && !is_waited_for {
        return CheckResult::RuledOut(format!(
            "Disk {device}: a read takes {}, nobody waits for it",
            duration_ms(wait.fail())
        ));
    }
    let used = if is_waited_for && (is_slow || shrinks) {
        1.0
    } else {
        busy.fail().max(stall.fail()).clamp(0.5, 0.9)
    };
    let waiting = [
        wait.with(queue, |wait, queue| wait * queue.max(1.0)).growth(1.0),
        stall.growth(0.02),
        blocked.growth(0.1),
    ];
    let stalled = context.crossed_metric(&metric::HOST_PRESSURE_IO_SOME, STALL_MIN);
    let crossed = stalled.or_else(|| context.crossed_metric(&metric::PROCESS_THREADS_BLOCKED, 1.0));
    let crossed = crossed.or_else(|| {
        of_device(&metric::DISK_READ_AWAIT)
            .and_then(|s| context.crossed(&[*s], (AWAIT_GROWTH * floor).max(AWAIT_MS_MIN)))
    });
    Candidate {
        used,
        queue: waiting.into_iter().flatten().reduce(f64::max),
        demand: context.demand_of(Resource::DiskRead, device).cloned(),
        crossed_at_s: crossed,
        series: vec![disk.series.id],
        evidence: vec![
            Evidence::new(format!("disk.read_bytes of {device}"), Unit::BytesPerSecond, read).limit(disk.limit()),
            Evidence::new(format!("disk.read_await of {device}"), Unit::Milliseconds, wait).decides(),
            Evidence::new("host.pressure.io.some", Unit::Ratio, stall).limit(Some(1.0)).crossed(crossed).decides(),
            Evidence::new("process.threads_blocked", Unit::Count, blocked).decides(),
            Evidence::new("process.read_bytes", Unit::BytesPerSecond, own),
        ],
        change: "Files in memory (tmpfs, more page cache), a faster disk, fewer different files at once, or a cache in front".into(),
        eases: |demand, _| demand.resource == Resource::DiskRead,
        ..Candidate::new(
            KEY,
            format!("Disk {device} gives {} and no more: reads wait", bit_rate(read.fail() * 8.0)),
            format!("disk {device}"),
        )
    }
    .suspect()
}
