//! The disk is saturated: what users receive has to be read first, and reads wait.
//!
//! I/O wait (`host.cpu.iowait`) is no evidence: it is idle CPU time, and threads parked in io_uring
//! count into it (liburing
//! #943). Bytes read and the time that reads take are evidence.

use throng_observation::host::catalogue::{self as metric, Metric};
use throng_observation::host::measured::MeasuredSeries;
use throng_observation::units::{bit_rate, duration_ms};

use super::{Candidate, CheckResult, Evidence, NoFinding, ruled_out};
use crate::context::{Context, Reading};
use crate::demand::Resource;
use crate::windows::LoadWindow;

pub(super) const KEY: &str = "disk_read";
/// Reads as a share of what is sent; below it the page cache serves the users, not the disk.
const READ_OF_SENT_MIN: f64 = 0.30;
/// Bytes a second; a server that reads less does not depend on the disk.
pub(super) const READ_BYTES_MIN: f64 = 64e3;
/// Growth of the time of a read, and its least time: longer than the worst of a fast disk.
const AWAIT_GROWTH: f64 = 3.0;
const AWAIT_MS_MIN: f64 = 5.0;
/// The server's disk delivers at least this share of what the server reads: the seconds of the
/// counters differ a little.
const OWN_MIN: f64 = 0.8;
/// Share of the time in which some task was stalled on block I/O.
const STALL_MIN: f64 = 0.30;

/// The disk that the server reads from, in the three windows.
struct Disk<'a> {
    series: MeasuredSeries<'a>,
    device: &'a str,
    read: Reading,
    /// Milliseconds a read takes.
    read_await: Reading,
    queue: Reading,
    busy: Reading,
    /// Threads of the server that are blocked on I/O.
    blocked: Reading,
    /// Share of the time in which some task was stalled on I/O.
    stall: Reading,
}

impl<'a> Disk<'a> {
    /// The disk that delivers at least what the server reads, the nearest to it of several, because
    /// others read from disks as well. The busiest disk if no single one delivers so much.
    fn of_server(context: &Context<'a>, own: Reading) -> Option<Self> {
        let fits =
            |read: &Reading| own.fail.is_some_and(|own| own > 0.0 && read.fail() >= OWN_MIN * own);
        let all = context.host.metric(metric::DISK_READ_BYTES.name).iter();
        let (series, read) = all
            .map(|disk| (*disk, context.median(disk)))
            .filter(|(_, read)| fits(read))
            .min_by(|a, b| a.1.fail().total_cmp(&b.1.fail()))
            .or_else(|| context.top(&metric::DISK_READ_BYTES))?;
        let device = series.label("device");
        let of = |metric| {
            of_device(context, metric, device)
                .map_or_else(Reading::default, |series| context.median(&series))
        };
        Some(Self {
            series,
            device,
            read,
            read_await: of(&metric::DISK_READ_AWAIT),
            queue: of(&metric::DISK_QUEUE),
            busy: of(&metric::DISK_BUSY),
            blocked: context.sum(&metric::PROCESS_THREADS_BLOCKED),
            stall: context.sum(&metric::HOST_PRESSURE_IO_SOME),
        })
    }

    /// Milliseconds above which a read is slow.
    fn slow_ms(&self) -> f64 {
        (AWAIT_GROWTH * self.read_await.before().unwrap_or(0.0)).max(AWAIT_MS_MIN)
    }

    fn is_slow(&self) -> bool {
        self.read_await.fail() > AWAIT_MS_MIN && self.read_await.fail() >= self.slow_ms()
    }

    fn is_waited_for(&self, context: &Context<'_>) -> bool {
        self.blocked.fail() >= 1.0
            || self.stall.fail() >= STALL_MIN
            || context.sum(&metric::PROCESS_BLKIO_WAIT).fail() >= STALL_MIN
    }

    /// Whether the disk delivers less for each user than before: users ask for more and do not get
    /// it.
    fn is_shared_by_more(&self, context: &Context<'_>) -> bool {
        let per_user = |value: Option<f64>, load: Option<LoadWindow>| {
            Some(value? / load.filter(|load| load.users > 0.0)?.users)
        };
        let read_at_base = self.read.base.filter(|base| *base > READ_BYTES_MIN);
        let before = per_user(read_at_base, context.windows.base)
            .or(per_user(self.read.pass, context.windows.pass));
        per_user(self.read.fail, Some(context.fail))
            .zip(before)
            .is_some_and(|(fail, before)| fail < 0.9 * before)
    }

    fn crossed(&self, context: &Context<'_>) -> Option<f64> {
        let slow = || {
            let read_await = of_device(context, &metric::DISK_READ_AWAIT, self.device)?;
            context.crossed(&[read_await], self.slow_ms())
        };
        context
            .crossed_metric(&metric::HOST_PRESSURE_IO_SOME, STALL_MIN)
            .or_else(|| context.crossed_metric(&metric::PROCESS_THREADS_BLOCKED, 1.0))
            .or_else(slow)
    }
}

fn of_device<'a>(
    context: &Context<'a>,
    metric: &Metric,
    device: &str,
) -> Option<MeasuredSeries<'a>> {
    context.host.metric(metric.name).iter().find(|series| series.label("device") == device).copied()
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let own = context.sum(&metric::PROCESS_READ_BYTES);
    let disk = Disk::of_server(context, own).ok_or(NoFinding::NotMonitored("the disks"))?;
    let (device, read) = (disk.device, disk.read);
    let from_disk = own.fail.unwrap_or(read.fail());
    let sent = context.most_grown(&metric::NIC_TX_BYTES).map_or(0.0, |(_, sent)| sent.fail());
    let sent = sent.max(context.users.received.fail());
    if read.fail() < READ_BYTES_MIN || from_disk < READ_OF_SENT_MIN * sent {
        let (read, sent) = (bit_rate(from_disk * 8.0), bit_rate(sent * 8.0));
        return ruled_out(format!("Disk: {read} read for {sent} sent"));
    }
    let (is_slow, is_waited_for) = (disk.is_slow(), disk.is_waited_for(context));
    if !is_slow && !is_waited_for {
        let time = duration_ms(disk.read_await.fail());
        return ruled_out(format!("Disk {device}: a read takes {time}, no thread waits for it"));
    }
    let is_used_up = is_waited_for && (is_slow || disk.is_shared_by_more(context));
    let waiting = [
        disk.read_await.with(disk.queue, |wait, queue| wait * queue.max(1.0)).growth(1.0),
        disk.stall.growth(0.02),
        disk.blocked.growth(0.1),
    ];
    let crossed = disk.crossed(context);
    Ok(Candidate {
        used: if is_used_up {
            1.0
        } else {
            disk.busy.fail().max(disk.stall.fail()).clamp(0.5, 0.9)
        },
        queue: waiting.into_iter().flatten().reduce(f64::max),
        demand: context.demand_of(Resource::DiskRead, device).cloned(),
        crossed_at_s: crossed,
        series: vec![disk.series.series.id],
        evidence: vec![
            Evidence::bytes_per_second(format!("disk.read_bytes of {device}"), read)
                .limit(disk.series.limit()),
            Evidence::milliseconds(format!("disk.read_await of {device}"), disk.read_await)
                .decides(),
            Evidence::ratio("host.pressure.io.some", disk.stall)
                .limit(1.0)
                .crossed(crossed)
                .decides(),
            Evidence::count("process.threads_blocked", disk.blocked).decides(),
            Evidence::bytes_per_second("process.read_bytes", own),
        ],
        change: "Keep files in memory (tmpfs, more page cache), use a faster disk, serve fewer \
                 different files at once, or put a cache in front"
            .into(),
        eases: |demand, _| demand.resource == Resource::DiskRead,
        ..Candidate::new(
            KEY,
            format!("Disk {device} is saturated at {}: reads wait", bit_rate(read.fail() * 8.0)),
            format!("disk {device}"),
        )
    })
}
