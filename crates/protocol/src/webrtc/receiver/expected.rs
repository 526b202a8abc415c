//! Expected media: every section in which the peer announced that it sends. Missing media cannot be
//! detected from packets: a video that never arrives has none.

use std::collections::BTreeSet;
use std::time::Instant;

use throng_media::quality::TrackMeter;
use throng_observation::{MediaKind, Missing, Observation, TrackInterval};

use super::{Receiver, SenderState};
use crate::signalling::room::RoomStream;
use crate::webrtc::payload::Assignment;

/// The sections in which media is expected.
#[derive(Default)]
pub(super) struct ExpectedMedia {
    sections: Vec<Section>,
    /// The sections, by `a=mid`, in which a participant sends, where signalling reports that.
    signalled: Option<BTreeSet<String>>,
    pictures_off: bool,
}

struct Section {
    /// The most likely format.
    format: Assignment,
    since: Instant,
    /// The end of the last reported interval.
    told_until: Instant,
}

impl ExpectedMedia {
    /// The state before negotiation; `is_told` means that signalling reports in which sections a
    /// participant sends.
    pub(super) fn new(is_told: bool) -> Self {
        Self { signalled: is_told.then(BTreeSet::new), ..Self::default() }
    }

    fn since(&self, section: u16) -> Option<Instant> {
        self.sections.iter().find(|due| due.format.section == section).map(|due| due.since)
    }

    /// Whether media is expected in a section with that `mid`.
    fn holds(&self, kind: MediaKind, mid: Option<&str>) -> bool {
        let is_sent = self
            .signalled
            .as_ref()
            .is_none_or(|signalled| mid.is_some_and(|mid| signalled.contains(mid)));
        is_sent && !(self.pictures_off && kind == MediaKind::Video)
    }
}

impl Receiver {
    /// Sets the senders of all sections; `before` are the previous ones. Media of a new sender is
    /// expected from now on.
    pub(in crate::webrtc) fn sent_in(
        &mut self,
        streams: &[RoomStream],
        before: &[RoomStream],
        now: Instant,
    ) {
        let sent = streams.iter().filter(|stream| stream.is_sent());
        self.due.signalled = Some(sent.map(|stream| stream.mid.clone()).collect());
        self.review(now);
        for due in &mut self.due.sections {
            let mid = self.assignments.mid(due.format.section);
            let sender = |streams: &[RoomStream]| {
                let of_section = streams.iter().find(|stream| Some(stream.mid.as_str()) == mid);
                of_section.and_then(|stream| stream.from.clone())
            };
            if sender(before) != sender(streams) {
                due.since = now;
            }
        }
    }

    /// Sets whether all video is switched off.
    pub(in crate::webrtc) fn pictures_are_off(&mut self, are_off: bool, now: Instant) {
        self.due.pictures_off = are_off;
        self.review(now);
    }

    /// Updates the expected sections after negotiation or signalling changed them. Sections that
    /// remain keep their start.
    pub(super) fn review(&mut self, now: Instant) {
        let is_due = |format: &&Assignment| {
            self.due.holds(format.kind, self.assignments.mid(format.section))
        };
        let formats: Vec<Assignment> = self.assignments.sent().filter(is_due).cloned().collect();
        let is_kept = |section: u16| formats.iter().any(|format| format.section == section);
        let (signalled, stopped): (Vec<_>, Vec<_>) = std::mem::take(&mut self.due.sections)
            .into_iter()
            .partition(|due| is_kept(due.format.section));
        for due in stopped {
            self.pause(due.format.section, now);
        }
        for format in formats {
            let before = signalled.iter().find(|due| due.format.section == format.section);
            if before.is_none() {
                self.resume(format.section, now);
            }
            let (since, told_until) = before.map_or((now, now), |due| (due.since, due.told_until));
            self.due.sections.push(Section { format, since, told_until });
        }
    }

    /// Media of a section is no longer expected: reports its interval up to now.
    fn pause(&mut self, section: u16, now: Instant) {
        let held =
            self.tracks.iter_mut().filter(|track| track.section == section && track.has_sender());
        for track in held {
            let interval = track.end_interval(now, TrackMeter::take_interval);
            self.observed.push(Observation::Interval(Box::new(interval)));
            track.meter.pause();
        }
    }

    fn resume(&mut self, section: u16, now: Instant) {
        let held =
            self.tracks.iter_mut().filter(|track| track.section == section && track.has_sender());
        held.for_each(|track| track.meter.resume(now));
    }

    /// Reports the interval of each track, and the expected sections in which nothing arrived.
    pub(super) fn end_intervals(
        &mut self,
        now: Instant,
        take: fn(&mut TrackMeter, Instant) -> TrackInterval,
    ) {
        let mut missing: Vec<(u16, Missing)> = self
            .due
            .sections
            .iter()
            .filter_map(|due| {
                let mut held = self
                    .tracks
                    .iter()
                    .filter(|track| track.has_sender() && track.section == due.format.section);
                let mut has_stopped = false;
                held.all(|track| {
                    has_stopped |= track.meter.has_begun();
                    track.meter.is_quiet(now)
                })
                .then_some((due.format.section, Missing { since: due.since, has_stopped }))
            })
            .collect();
        for track in self.tracks.iter_mut().filter(|track| track.has_sender()) {
            let mut interval = track.end_interval(now, take);
            if self.due.since(track.section).is_none() {
                if interval.counters.wire_bytes == 0 {
                    continue;
                }
                // Packets that were in flight. They count no playing time.
                (interval.counters.active_us, interval.counters.freeze_us) = (0, 0);
                interval.frames_due_us = 0;
            }
            let at = missing.iter().position(|(section, _)| *section == track.section);
            interval.missing = at.map(|at| missing.swap_remove(at).1);
            self.observed.push(Observation::Interval(Box::new(interval)));
        }
        for (section, missing) in missing {
            self.report_missing(section, missing, now);
        }
        self.due.sections.iter_mut().for_each(|due| due.told_until = now);
    }

    /// Reports missing media in an expected section without an active track.
    fn report_missing(&mut self, section: u16, missing: Missing, now: Instant) {
        let Some(due) = self.due.sections.iter().find(|due| due.format.section == section) else {
            return;
        };
        let (format, told_until) = (due.format.clone(), due.told_until);
        let at = match self.tracks.iter().position(|track| track.section == section) {
            Some(at) => at,
            None => {
                let at = self.tracks.len();
                let unseen_track = self.track(at, &format, 0, SenderState::Awaited, now);
                self.put(at, unseen_track);
                at
            }
        };
        let Some(track) = self.tracks.get_mut(at) else { return };
        track.meter.resume(told_until.max(missing.since));
        let interval = track.end_interval(now, TrackMeter::take_interval);
        let interval = TrackInterval { missing: Some(missing), ..interval };
        self.observed.push(Observation::Interval(Box::new(interval)));
    }

    /// The track of a section of which no packet ever arrived.
    pub(super) fn unseen_track(&self, section: u16) -> Option<usize> {
        self.tracks.iter().position(|track| track.section == section && !track.has_begun())
    }
}

#[cfg(test)]
#[path = "expected_tests.rs"]
mod tests;
