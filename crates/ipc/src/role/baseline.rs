//! The lower bound of any transport, measured in one process: each frame copied once, or written
//! once.

use hdrhistogram::Histogram;

use super::clock::sleep_until;
use super::pool::Pool;
use super::producer::stamped_every;
use super::{LatencyNs, ParentChannel, RoleMessage, SideReport, Task, Window, latencies, now_ns};
use crate::ReadMode;
use crate::frame::{FrameHeader, Kind, body_mut, check_body, fill};
use crate::transport::{self, Transport, TransportError};

pub(super) fn run(task: &Task, parent: &mut ParentChannel) -> Result<(), TransportError> {
    let window = Window::new(task.inspect);
    let side = &task.side;
    let mut baseline = Baseline {
        task,
        pool: Pool::new(0, side.slots, side.frame_bytes_max),
        destination: vec![0; transport::ring_bytes(side.frame_bytes_max)],
        next_place: 0,
        latency: latencies()?,
        report: SideReport::default(),
    };
    parent.say(&RoleMessage::Ready { address: None })?;
    let start_ns = parent.go()?;
    baseline.measure(start_ns, &window, parent)?;
    let Baseline { latency, mut report, .. } = baseline;
    window.end(&mut report);
    report.latency = LatencyNs::of(&latency);
    parent.say(&RoleMessage::Done(report))?;
    parent.end();
    Ok(())
}

struct Baseline<'a> {
    task: &'a Task,
    pool: Pool,
    /// As much memory as the ring, since its size decides which cache holds the copies.
    destination: Vec<u8>,
    /// Where in `destination` the next frame goes, counted in frames of the largest size.
    next_place: usize,
    latency: Histogram<u64>,
    report: SideReport,
}

impl Baseline<'_> {
    fn measure(
        &mut self,
        start_ns: u64,
        window: &Window,
        parent: &mut ParentChannel,
    ) -> Result<(), TransportError> {
        sleep_until(start_ns);
        let measured_ns = start_ns + self.task.warm_up_ns;
        let end_ns = measured_ns + self.task.measured_ns;
        // Copies at the offered rate, so that caches are as cold as between the frames of a stream.
        let interval_ns = self.task.fps.map(|fps| 1e9 / fps);
        let stamped_every =
            if interval_ns.is_some() { 1 } else { stamped_every(self.task.sizes.mean_bytes()) };
        let mut kind = Kind::WarmUp;
        for sequence in 0.. {
            let mut started_ns = 0;
            if sequence % stamped_every == 0 {
                if let Some(interval_ns) = interval_ns {
                    sleep_until(start_ns + (interval_ns * sequence as f64) as u64);
                }
                started_ns = now_ns();
                if started_ns >= end_ns {
                    break;
                }
                if started_ns >= measured_ns && kind == Kind::WarmUp {
                    kind = Kind::Measured;
                    parent.say(&RoleMessage::Measuring)?;
                    self.report.first_ns = now_ns();
                    window.begin();
                }
            }
            self.pass(kind, sequence, started_ns)?;
        }
        self.report.last_ns = now_ns();
        Ok(())
    }

    /// Copies or writes one frame, and counts it.
    fn pass(&mut self, kind: Kind, sequence: u64, started_ns: u64) -> Result<(), TransportError> {
        let side = &self.task.side;
        let bytes = self.task.sizes.of(0, 1, sequence);
        let (slot, seed) = self.pool.place(sequence);
        let header = FrameHeader {
            kind,
            producer: 0,
            sequence,
            bytes: bytes as u64,
            seed,
            due_ns: started_ns,
        };
        if (self.next_place + 1) * side.frame_bytes_max > self.destination.len() {
            self.next_place = 0;
        }
        let at = self.next_place * side.frame_bytes_max;
        self.next_place += 1;
        let to = self.destination.get_mut(at..at + bytes).unwrap_or_default();
        match side.transport {
            Transport::Fill => {
                fill(body_mut(to), seed);
                header.write(to);
            }
            _ => to.copy_from_slice(self.pool.frame(slot, &header)),
        }
        // The copy must happen although it is not read.
        let copied = std::hint::black_box(&*to);
        if self.task.reading == ReadMode::All {
            check_body(copied, &header).map_err(|error| TransportError::Frame {
                producer: 0,
                sequence,
                reason: error.to_string(),
            })?;
        }
        if kind == Kind::Measured {
            self.report.frames += 1;
            self.report.bytes += bytes as u64;
            if started_ns != 0 {
                self.latency.saturating_record(now_ns().saturating_sub(started_ns).max(1));
            }
        }
        Ok(())
    }
}
