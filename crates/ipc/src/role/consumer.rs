//! The receiving side: every frame is checked against what was sent, and all are accounted for.

use super::{LatencyNs, ParentChannel, RoleMessage, SideReport, Task, Window, latencies, now_ns};
use crate::ReadMode;
use crate::frame::{FrameHeader, Kind, check_body};
use crate::transport::{self, Received, Receiver, TransportError, failed};

pub(super) fn run(task: &Task, parent: &mut ParentChannel) -> Result<(), TransportError> {
    let window = Window::new(task.inspect);
    let mut receivers = transport::receivers(&task.side)?;
    parent.say(&RoleMessage::Ready { address: None })?;
    // One receiver for all producers, or one for each: then each has a thread that waits for it.
    let ends = if receivers.len() == 1 { task.side.producers } else { 1 };
    let tallies = if let [receiver] = &mut receivers[..] {
        vec![drain(&mut **receiver, ends, task, &window)?]
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = receivers
                .iter_mut()
                .map(|receiver| scope.spawn(|| drain(&mut **receiver, ends, task, &window)))
                .collect();
            let died = |_| Err(failed("receiving", "a thread died"));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(died))
                .collect::<Result<_, _>>()
        })?
    };
    let mut report = SideReport::default();
    window.end(&mut report);
    merge(&tallies, &mut report)?;
    parent.say(&RoleMessage::Done(report))?;
    parent.end();
    Ok(())
}

/// Frames received by one receiver.
struct Tally {
    frames: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    latency: hdrhistogram::Histogram<u64>,
    /// For each producer: the sequence that its next frame must have.
    next: Vec<u64>,
    ended: u8,
}

fn merge(tallies: &[Tally], report: &mut SideReport) -> Result<(), TransportError> {
    let mut latency = latencies()?;
    for tally in tallies {
        report.frames += tally.frames;
        report.bytes += tally.bytes;
        report.last_ns = report.last_ns.max(tally.last_ns);
        // Values beyond the bounds were counted as the bound already.
        let _ = latency.add(&tally.latency);
    }
    report.first_ns =
        tallies.iter().map(|tally| tally.first_ns).filter(|ns| *ns != 0).min().unwrap_or(0);
    report.latency = LatencyNs::of(&latency);
    Ok(())
}

/// Receives until `ends` producers have sent their end frame.
fn drain(
    receiver: &mut dyn Receiver,
    ends: u8,
    task: &Task,
    window: &Window,
) -> Result<Tally, TransportError> {
    let mut tally = Tally {
        frames: 0,
        bytes: 0,
        first_ns: 0,
        last_ns: 0,
        latency: latencies()?,
        next: vec![0; usize::from(task.side.producers)],
        ended: 0,
    };
    let mut wrong = None;
    while tally.ended < ends {
        let received = receiver.receive(&mut |frame| {
            if let Err(error) = tally.take(frame, task.reading, window) {
                wrong.get_or_insert(error);
            }
        })?;
        if let Some(error) = wrong.take() {
            return Err(error);
        }
        if received == Received::Closed {
            let next: Vec<String> = tally.next.iter().map(u64::to_string).collect();
            let next = next.join(", ");
            let why = format!("the producers' side closed, where frame {next} was next");
            return Err(failed("receiving", why));
        }
    }
    Ok(tally)
}

impl Tally {
    fn take(
        &mut self,
        frame: &[u8],
        reading: ReadMode,
        window: &Window,
    ) -> Result<(), TransportError> {
        let damaged = |reason: String, header: Option<&FrameHeader>| TransportError::Frame {
            producer: header.map_or(0, |header| header.producer),
            sequence: header.map_or(0, |header| header.sequence),
            reason,
        };
        let header = FrameHeader::read(frame).map_err(|error| damaged(error.to_string(), None))?;
        if header.kind == Kind::Measured {
            if self.frames == 0 {
                window.begin();
                self.first_ns = now_ns();
            }
            self.frames += 1;
            self.bytes += header.bytes;
            if header.due_ns != 0 {
                self.latency.saturating_record(now_ns().saturating_sub(header.due_ns).max(1));
            }
        }
        let Some(next) = self.next.get_mut(usize::from(header.producer)) else {
            return Err(damaged("there is no such producer".into(), Some(&header)));
        };
        if header.sequence != *next {
            return Err(damaged(format!("frame {next} was expected"), Some(&header)));
        }
        *next += 1;
        if header.kind == Kind::End {
            self.last_ns = now_ns();
            self.ended += 1;
        } else if reading == ReadMode::All {
            check_body(frame, &header)
                .map_err(|error| damaged(error.to_string(), Some(&header)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{body_mut, fill, seed};

    fn frame(kind: Kind, producer: u8, sequence: u64) -> Vec<u8> {
        let header = FrameHeader {
            kind,
            producer,
            sequence,
            bytes: 100,
            seed: seed(producer, 0),
            due_ns: 1,
        };
        let mut frame = vec![0; 100];
        fill(body_mut(&mut frame), header.seed);
        header.write(&mut frame);
        frame
    }

    /// Checks the frames one after the other; returns the error of the first that is refused.
    fn take(frames: &[Vec<u8>]) -> Result<Tally, String> {
        let mut tally = Tally {
            frames: 0,
            bytes: 0,
            first_ns: 0,
            last_ns: 0,
            latency: latencies().unwrap(),
            next: vec![0; 2],
            ended: 0,
        };
        let window = Window::new(false);
        for frame in frames {
            tally.take(frame, ReadMode::All, &window).map_err(|error| error.to_string())?;
        }
        Ok(tally)
    }

    #[test]
    fn warm_up_and_end_are_not_measured() {
        let frames = [
            frame(Kind::WarmUp, 0, 0),
            frame(Kind::Measured, 0, 1),
            frame(Kind::Measured, 1, 0),
            frame(Kind::End, 0, 2),
        ];
        let tally = take(&frames).unwrap();
        assert_eq!((tally.frames, tally.bytes, tally.ended, tally.next), (2, 200, 1, vec![3, 1]));
    }

    #[test]
    fn what_is_lost_repeated_or_changed_is_named() {
        let mut changed = frame(Kind::Measured, 1, 1);
        changed[60] ^= 1;
        for (frames, says) in [
            (
                vec![frame(Kind::WarmUp, 0, 0), frame(Kind::Measured, 0, 2)],
                "producer 0, frame 2: frame 1 was expected",
            ),
            (
                vec![frame(Kind::WarmUp, 0, 0), frame(Kind::WarmUp, 0, 0)],
                "producer 0, frame 0: frame 1 was expected",
            ),
            (vec![frame(Kind::WarmUp, 1, 0), changed], "producer 1, frame 1: byte 60 is not"),
            (vec![frame(Kind::WarmUp, 2, 0)], "no such producer"),
            (vec![vec![0; 100]], "its header is not a frame's"),
        ] {
            let error = take(&frames).err().unwrap();
            assert!(error.contains(says), "{error}");
        }
    }
}
