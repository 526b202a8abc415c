//! RTCP: what the server reports, and the reports to it.

use std::time::{Duration, Instant};

use throng_media::rtcp::{Compound, Report, ReportBlock, Rtcp, RtcpWriter};
use throng_observation::SENDER_CLOCK_PLACE;

use super::Receiver;
use super::anomalies::Anomaly;

/// Mean time between receiver reports of a track (RFC 3550 section 6.2 and its minimum, which RTSP
/// players use); each is drawn between half and one and a half of it.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(5);

impl Receiver {
    /// Takes an RTCP packet of track `at`.
    pub(in crate::rtsp) fn rtcp(&mut self, at: usize, arrived_at: Instant, bytes: &[u8]) {
        let Some(track) = self.tracks.get_mut(at) else { return };
        self.has_control = true;
        let (mut is_bad, mut is_other_clock) = (false, false);
        for packet in Compound::new(bytes) {
            match packet {
                Ok(Rtcp::SenderReport(report)) => {
                    let sender = report.sender;
                    track.last_sender_report.arrived(sender.ntp, arrived_at);
                    if !sender.ntp.is_unknown() {
                        let ntp_unix_ns = sender.ntp.to_unix_ns();
                        is_other_clock |= !track.meter.sender_report(
                            ntp_unix_ns,
                            sender.rtp_timestamp,
                            arrived_at,
                        );
                    }
                }
                Ok(Rtcp::Bye(_)) => track.has_ended = true,
                Ok(_) => {}
                Err(_) => is_bad = true,
            }
        }
        if is_other_clock {
            let detail = "sender reports have no wall clock: their NTP time is more than a day \
                          from this host's, or runs at another rate; one-way delay is not \
                          computed from them";
            self.anomaly(Anomaly::SenderClock, SENDER_CLOCK_PLACE, detail);
        }
        if is_bad {
            self.anomaly(Anomaly::BadRtcp, "rtcp", "a control packet is malformed");
        }
    }

    /// Whether the server has ended every track.
    pub(in crate::rtsp) fn has_ended(&self) -> bool {
        !self.tracks.is_empty() && self.tracks.iter().all(|track| track.has_ended)
    }

    /// The next receiver report that is due, with its track.
    pub(in crate::rtsp) fn poll_report(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        let (at, track) =
            self.tracks.iter_mut().enumerate().find(|(_, track)| now >= track.next_report_at)?;
        track.next_report_at = now + REPORT_INTERVAL.mul_f64(0.5 + self.random.f64());
        let ssrc = track.ssrc;
        let block = ssrc.zip(track.meter.reception()).map(|(ssrc, reception)| {
            let (last_sr, delay_since_last_sr) = track.last_sender_report.lsr_and_dlsr(now);
            ReportBlock {
                ssrc,
                fraction_lost: reception.fraction_lost,
                cumulative_lost: reception.cumulative_lost,
                highest_sequence: reception.extended_highest_sequence,
                jitter: reception.jitter,
                last_sr,
                delay_since_last_sr,
            }
        });
        Some((at, self.report(block.as_slice())))
    }

    /// A report without sources, which opens the path through a NAT.
    pub(in crate::rtsp) fn empty_report(&self) -> Vec<u8> {
        self.report(&[])
    }

    fn report(&self, blocks: &[ReportBlock]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(96);
        let _ = RtcpWriter::compound(&mut packet, Report::Receiver(self.ssrc), blocks, &self.cname);
        packet
    }

    /// The RTCP BYE of a track.
    pub(in crate::rtsp) fn goodbye(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(96);
        let report = Report::Receiver(self.ssrc);
        let _ = RtcpWriter::compound(&mut packet, report, &[], &self.cname).bye(&[self.ssrc]);
        packet
    }
}
