//! What no transport can do without, by one process alone: copying each frame once, or writing it once.

use super::clock::sleep_until;
use super::pool::Pool;
use super::producer::stamped_every;
use super::{LatencyNs, ParentChannel, RoleMessage, SideReport, Task, Window, latencies, now_ns};
use crate::ReadMode;
use crate::frame::{FrameHeader, Kind, body_mut, check_body, fill};
use crate::transport::{self, Transport, TransportError};

pub(super) fn run(task: &Task, stage: &mut ParentChannel) -> Result<(), TransportError> {
    let window = Window::new(task.inspect);
    let side = &task.side;
    let mut pool = Pool::new(0, side.slots, side.frame_bytes_max);
    // Through as much memory as the ring goes round in, for that decides which cache it comes from.
    let mut destination = vec![0; transport::ring_bytes(side.frame_bytes_max)];
    let places_max = destination.len() / side.frame_bytes_max.max(1);
    stage.say(&RoleMessage::Ready { address: None })?;
    let start_ns = stage.go()?;
    sleep_until(start_ns);
    let measured_ns = start_ns + task.warm_up_ns;
    let end_ns = measured_ns + task.measured_ns;
    // An offered rate is kept, so that caches are as cold as between the frames of a stream.
    let interval_ns = task.fps.map(|fps| 1e9 / fps);
    let stamped_every = if interval_ns.is_some() { 1 } else { stamped_every(task.sizes.mean_bytes()) };
    let mut latency = latencies()?;
    let mut report = SideReport::default();
    let mut kind = Kind::WarmUp;
    let mut places = 0..places_max;
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
                stage.say(&RoleMessage::Measuring)?;
                report.first_ns = now_ns();
                window.begin();
            }
        }
        let bytes = task.sizes.of(0, 1, sequence);
        let (slot, seed) = pool.place(sequence);
        let mark = FrameHeader { kind, producer: 0, sequence, bytes: bytes as u64, seed, due_ns: started_ns };
        let at = places.next().unwrap_or_else(|| {
            places = 1..places_max;
            0
        });
        let to = destination.get_mut(at * side.frame_bytes_max..).and_then(|rest| rest.get_mut(..bytes));
        let to = to.unwrap_or_default();
        match side.transport {
            Transport::Fill => {
                fill(body_mut(to), seed);
                mark.write(to);
            }
            _ => to.copy_from_slice(pool.frame(slot, &mark)),
        }
        // The copy must happen although nobody else ever reads it.
        let copied = std::hint::black_box(&*to);
        if task.reading == ReadMode::All {
            check_body(copied, &mark).map_err(|damage| TransportError::Frame {
                producer: 0,
                sequence,
                reason: damage.to_string(),
            })?;
        }
        if kind == Kind::Measured {
            report.frames += 1;
            report.bytes += bytes as u64;
            if started_ns != 0 {
                latency.saturating_record(now_ns().saturating_sub(started_ns).max(1));
            }
        }
    }
    report.last_ns = now_ns();
    window.end(&mut report);
    report.latency = LatencyNs::of(&latency);
    stage.say(&RoleMessage::Done(report))?;
    stage.end();
    Ok(())
}
