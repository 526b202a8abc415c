//! What complete frames say of delay.

use crate::quality::capture::CaptureMeter;
use crate::quality::decode_order::Ordered;
use crate::quality::delay::DelayMeter;
use crate::quality::packet::CaptureTime;
use crate::quality::samples::Samples;

/// Measurements of complete frames.
#[derive(Debug)]
pub(super) struct Playout {
    pub(super) delay: DelayMeter,
    pub(super) capture: CaptureMeter,
    pub(super) relative_us: Samples<u32>,
    pub(super) absolute_us: Samples<i32>,
}

impl Playout {
    /// What the order of frames says about delay.
    pub(super) fn ordered(&mut self, ordered: Ordered) {
        match ordered {
            Ordered::Pair(arrived_ns, timestamp) => {
                self.relative_us.push(self.delay.frame(arrived_ns, timestamp));
            }
            Ordered::Deeper => self.delay.forget_floor(),
            Ordered::Waiting => {}
        }
    }

    /// A frame with a timestamp of the RTP clock.
    pub(super) fn captured(
        &mut self,
        arrived_unix_ns: u64,
        timestamp: u32,
        captured: Option<CaptureTime>,
    ) {
        let before = self.capture.basis();
        if let Some(delay_us) = self.capture.frame(arrived_unix_ns, timestamp, captured) {
            if self.capture.basis() != before {
                self.absolute_us.clear(); // an interval's delays are all by one basis
            }
            self.absolute_us.push(delay_us);
        }
    }
}
