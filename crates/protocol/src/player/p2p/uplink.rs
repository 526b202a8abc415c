//! The uplink of a viewer, which all that it sends at the same time share in equal parts, as
//! connections of the same round-trip time do.

use std::time::{Duration, Instant};

/// A segment that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// What is sent to peers named by `P`, one segment at a time to each.
#[derive(Debug)]
pub(super) struct Uplink<P> {
    /// `None`: as fast as need be.
    bps: Option<u64>,
    uploads: Vec<Running<P>>,
    advanced_at: Option<Instant>,
    sent_bytes: f64,
}

#[derive(Debug)]
struct Running<P> {
    to: P,
    upload: Upload,
    sent_bytes: f64,
    /// It goes over a data channel, which counts what is really sent: this only says how fast.
    is_paced_only: bool,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) bytes: u64,
    pub(super) is_whole: bool,
    /// When it will be whole if nothing else is begun.
    pub(super) whole_at: Instant,
}

impl<P: Copy + PartialEq> Uplink<P> {
    pub(super) fn new(bps: Option<u64>) -> Self {
        Self { bps, uploads: Vec::new(), advanced_at: None, sent_bytes: 0.0 }
    }

    /// Sends `upload` to `to`, instead of what was sent to it.
    pub(super) fn begin(&mut self, now: Instant, to: P, upload: Upload) {
        self.start(now, Running { to, upload, sent_bytes: 0.0, is_paced_only: false });
    }

    /// Says how fast `upload` may be sent, by somebody else, who counts it.
    pub(super) fn pace(&mut self, now: Instant, to: P, upload: Upload) {
        self.start(now, Running { to, upload, sent_bytes: 0.0, is_paced_only: true });
    }

    fn start(&mut self, now: Instant, running: Running<P>) {
        self.advance(now);
        self.cancel(running.to);
        self.uploads.push(running);
    }

    /// Sends nothing any more.
    pub(super) fn stop(&mut self, now: Instant) {
        self.advance(now);
        self.bps = Some(0);
    }

    pub(super) fn cancel(&mut self, to: P) {
        self.uploads.retain(|running| running.to != to);
    }

    /// Moves all of it on to `now`.
    pub(super) fn advance(&mut self, now: Instant) {
        let since = self.advanced_at.replace(now).unwrap_or(now);
        let mut left_s = now.saturating_duration_since(since).as_secs_f64();
        // Piece by piece: when one is done, the others are faster.
        loop {
            let rest = |running: &Running<P>| running.upload.bytes as f64 - running.sent_bytes;
            let open = self.uploads.iter().map(rest).filter(|rest| *rest > 0.0);
            let (count, shortest) =
                open.fold((0_u32, f64::MAX), |(count, min), rest| (count + 1, min.min(rest)));
            if count == 0 {
                return;
            }
            let bytes = match self.bps {
                Some(bps) => (bps as f64 / 8.0 / f64::from(count) * left_s).min(shortest),
                None => shortest,
            };
            for running in self.uploads.iter_mut().filter(|running| rest(running) > 0.0) {
                running.sent_bytes += bytes;
                self.sent_bytes += if running.is_paced_only { 0.0 } else { bytes };
            }
            if bytes < shortest {
                return;
            }
            left_s -= self.bps.map_or(0.0, |bps| bytes * f64::from(count) * 8.0 / bps as f64);
        }
    }

    /// How far the upload of `number` to `to` is; `None` if there is none.
    pub(super) fn progress(&mut self, now: Instant, to: P, number: u64) -> Option<Progress> {
        self.advance(now);
        let open = self
            .uploads
            .iter()
            .filter(|running| running.sent_bytes + 0.5 < running.upload.bytes as f64);
        let count = open.count();
        let running = self
            .uploads
            .iter()
            .find(|running| running.to == to && running.upload.number == number)?;
        let rest = running.upload.bytes as f64 - running.sent_bytes;
        let rest_s =
            self.bps.map_or(0.0, |bps| rest.max(0.0) * 8.0 * count as f64 / bps.max(1) as f64);
        Some(Progress {
            bytes: running.sent_bytes as u64,
            // Less than a byte is an error of rounding.
            is_whole: rest < 0.5,
            whole_at: now
                + Duration::try_from_secs_f64(rest_s).unwrap_or(Duration::from_secs(86_400)),
        })
    }

    /// Bytes that were sent since the last call, but for what is only paced.
    pub(super) fn take_sent(&mut self) -> u64 {
        let whole = self.sent_bytes.floor();
        self.sent_bytes -= whole;
        whole as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_share_the_uplink_and_the_rest_is_faster_when_one_is_done() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut uplink = Uplink::new(Some(8_000));
        uplink.begin(now, 'a', Upload { number: 1, bytes: 1_000 });
        uplink.begin(now, 'b', Upload { number: 1, bytes: 3_000 });
        let a = uplink.progress(at(1), 'a', 1).unwrap();
        assert_eq!((a.bytes, a.is_whole, a.whole_at), (500, false, at(2)));
        assert!(uplink.progress(at(2), 'a', 1).unwrap().is_whole);
        let b = uplink.progress(at(3), 'b', 1).unwrap();
        assert_eq!((b.bytes, b.whole_at), (2_000, at(4)));
        assert_eq!(uplink.take_sent(), 3_000);
        // In one step over both ends.
        let mut uplink = Uplink::new(Some(8_000));
        uplink.begin(now, 'a', Upload { number: 1, bytes: 1_000 });
        uplink.begin(now, 'b', Upload { number: 1, bytes: 3_000 });
        assert_eq!(uplink.progress(at(3), 'b', 1).unwrap().bytes, 2_000);
    }

    #[test]
    fn a_new_request_ends_the_one_before_it_and_without_a_limit_all_is_there_at_once() {
        let now = Instant::now();
        let mut uplink = Uplink::new(None);
        uplink.begin(now, 'a', Upload { number: 1, bytes: 1_000 });
        assert!(uplink.progress(now, 'a', 1).unwrap().is_whole);
        uplink.begin(now, 'a', Upload { number: 2, bytes: 7 });
        assert_eq!(uplink.progress(now, 'a', 1), None);
        uplink.cancel('a');
        assert_eq!(uplink.progress(now, 'a', 2), None);
    }

    #[test]
    fn what_is_only_paced_takes_its_part_of_the_uplink_and_is_not_counted() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut uplink = Uplink::new(Some(8_000));
        uplink.begin(now, 'a', Upload { number: 1, bytes: 1_000 });
        uplink.pace(now, 'b', Upload { number: 1, bytes: 1_000 });
        assert_eq!(uplink.progress(at(1), 'a', 1).unwrap().bytes, 500);
        assert_eq!(uplink.progress(at(1), 'b', 1).unwrap().bytes, 500);
        assert_eq!(uplink.take_sent(), 500);
    }
}
