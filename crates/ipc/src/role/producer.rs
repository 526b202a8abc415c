//! The sending side: frames at an offered rate (open loop), or as fast as the transport takes them
//! (closed loop).

use hdrhistogram::Histogram;

use super::clock::sleep_until;
use super::pool::Pool;
use super::{LatencyNs, ParentChannel, RoleMessage, SideReport, Task, Window, latencies, now_ns};
use crate::FRAME_BYTES_MIN;
use crate::frame::{FrameHeader, Kind};
use crate::transport::{self, Outgoing, Sender, TransportError};

/// Below this mean size, reading the clock for each frame would be a large part of the measured
/// time.
const SMALL_FRAME_BYTES: f64 = 16_384.0;
/// Of small frames, one in this many carries its send time.
const STAMPED_OF_SMALL: u64 = 16;
/// Largest pool of a producer, bytes.
const POOL_BYTES_MAX: usize = 1536 << 20;

/// At full speed, one frame in this many carries its send time.
pub(super) fn stamped_every(mean_bytes: f64) -> u64 {
    if mean_bytes < SMALL_FRAME_BYTES { STAMPED_OF_SMALL } else { 1 }
}

pub(super) fn run(task: &Task, parent: &mut ParentChannel) -> Result<(), TransportError> {
    let window = Window::new(task.inspect);
    let side = &task.side;
    if side.slots.saturating_mul(side.frame_bytes_max) > POOL_BYTES_MAX {
        let why = format!("{} of up to {} bytes are too much", side.slots, side.frame_bytes_max);
        return Err(transport::failed("keeping its frames in memory", why));
    }
    let mut pool = Pool::new(side.producer, side.slots, side.frame_bytes_max);
    // Dropped before the pool, whose memory a sender may still hold.
    let mut sender = transport::sender(side)?;
    // The kernel's default timer slack of 50 us would be part of every latency.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    parent.say(&RoleMessage::Ready { address: None })?;
    let start_ns = parent.go()?;
    let mut run = Run {
        task,
        pool: &mut pool,
        sender: &mut *sender,
        window: &window,
        sequence: 0,
        kind: Kind::WarmUp,
    };
    let mut report = match task.fps {
        Some(fps) => run.offer(fps, start_ns, parent)?,
        None => run.flood(start_ns, parent)?,
    };
    window.end(&mut report);
    run.send(Kind::End, FRAME_BYTES_MIN as usize, now_ns())?;
    parent.say(&RoleMessage::Done(report))?;
    parent.end();
    Ok(())
}

struct Run<'a> {
    task: &'a Task,
    pool: &'a mut Pool,
    sender: &'a mut dyn Sender,
    window: &'a Window,
    sequence: u64,
    kind: Kind,
}

impl Run<'_> {
    /// Sends at an offered rate (open loop). Producers are offset evenly, as independent streams
    /// are on average.
    fn offer(
        &mut self,
        fps: f64,
        start_ns: u64,
        parent: &mut ParentChannel,
    ) -> Result<SideReport, TransportError> {
        let side = &self.task.side;
        let interval_ns = 1e9 / fps;
        let turn_ns = interval_ns * f64::from(side.producer) / f64::from(side.producers.max(1));
        let measured_ns = start_ns + self.task.warm_up_ns;
        let end_ns = measured_ns + self.task.measured_ns;
        let due_of = |frame: u64| start_ns + (turn_ns + interval_ns * frame as f64) as u64;
        let mut late = latencies()?;
        let mut report = SideReport::default();
        loop {
            let due_ns = due_of(self.sequence);
            if due_ns >= end_ns {
                break;
            }
            sleep_until(due_ns);
            let now_ns = now_ns();
            if now_ns >= end_ns {
                // The transport is slower than the offered rate: late frames are counted as not
                // sent, and not sent.
                let all = ((end_ns - start_ns) as f64 - turn_ns) / interval_ns;
                report.frames_not_sent = (all.ceil() as u64).saturating_sub(self.sequence);
                break;
            }
            let kind = if due_ns < measured_ns { Kind::WarmUp } else { Kind::Measured };
            self.enter(kind, &mut report, parent)?;
            self.count(&mut report, &mut late, now_ns.saturating_sub(due_ns));
            self.send(self.kind, self.next_bytes(), due_ns)?;
            report.last_ns = now_ns;
        }
        report.latency = LatencyNs::of(&late);
        Ok(report)
    }

    /// Sends as fast as the transport takes frames (closed loop).
    fn flood(
        &mut self,
        start_ns: u64,
        parent: &mut ParentChannel,
    ) -> Result<SideReport, TransportError> {
        let stamped_every = stamped_every(self.task.sizes.mean_bytes());
        let measured_ns = start_ns + self.task.warm_up_ns;
        let end_ns = measured_ns + self.task.measured_ns;
        let mut report = SideReport::default();
        sleep_until(start_ns);
        loop {
            let mut due_ns = 0;
            if self.sequence.is_multiple_of(stamped_every) {
                due_ns = now_ns();
                if due_ns >= end_ns {
                    break;
                }
                report.last_ns = due_ns;
                let kind = if due_ns < measured_ns { Kind::WarmUp } else { Kind::Measured };
                self.enter(kind, &mut report, parent)?;
            }
            let bytes = self.next_bytes();
            if self.kind == Kind::Measured {
                report.frames += 1;
                report.bytes += bytes as u64;
            }
            self.send(self.kind, bytes, due_ns)?;
        }
        Ok(report)
    }

    fn count(&self, report: &mut SideReport, late: &mut Histogram<u64>, late_ns: u64) {
        if self.kind == Kind::Measured {
            late.saturating_record(late_ns.max(1));
            report.frames += 1;
            report.bytes += self.next_bytes() as u64;
        }
    }

    /// Starts the measurement with its first frame.
    fn enter(
        &mut self,
        kind: Kind,
        report: &mut SideReport,
        parent: &mut ParentChannel,
    ) -> Result<(), TransportError> {
        if kind == Kind::Measured && self.kind == Kind::WarmUp {
            parent.say(&RoleMessage::Measuring)?;
            self.kind = kind;
            report.first_ns = now_ns();
            self.window.begin();
        }
        Ok(())
    }

    fn next_bytes(&self) -> usize {
        self.task.sizes.of(self.task.side.producer, self.task.side.producers, self.sequence)
    }

    fn send(&mut self, kind: Kind, bytes: usize, due_ns: u64) -> Result<(), TransportError> {
        let (slot, seed) = self.pool.place(self.sequence);
        let producer = self.task.side.producer;
        let header = FrameHeader {
            kind,
            producer,
            sequence: self.sequence,
            bytes: bytes as u64,
            seed,
            due_ns,
        };
        let bytes = self.pool.frame(slot, &header);
        self.sender.send(&Outgoing { header, bytes, slot })?;
        self.sequence += 1;
        Ok(())
    }
}
