//! Frames from packets: which are complete, and which of those could be decoded. Nothing is
//! decoded.
//!
//! A frame is the packets of one RTP timestamp (RFC 6184 section 5.1, and alike for all video). It
//! is complete when every number from its first packet to its last has arrived. The first is the
//! one after the end of the previous frame, or one whose payload starts a frame; the last has the
//! marker, or is followed without a gap by another timestamp (some senders set no marker).
//!
//! The marker tells the end of a frame as early as it is known, and it is only a hint: encoders set
//! it on each slice, or on parameter sets. Once a packet of the same timestamp follows one with the
//! marker, only timestamps end the frames of the track; the picture that showed it is counted once.
//! A packet that begins a picture behind one that is complete begins another of the same timestamp:
//! servers give pictures before the position of a seek its time.
//!
//! Frames are judged in the order of their numbers, which is the order of decoding. A frame with a
//! hole waits until the hole is filled or [`SequenceMeter`](super::SequenceMeter) counts it lost,
//! as for a viewer with a jitter buffer of that length. After a lost frame nothing is decodable
//! until the next key frame, unless all received packets of the lost frame show that no other
//! refers to it. A frame of which nothing arrived counts as referred to; consecutive picture ids
//! prove that no frame was in the hole (padding, mostly). A key frame does not wait for earlier
//! frames that cannot be decoded anyway; no frame waits for a discardable one before it. A frame in
//! whose middle the viewer joined is not counted.

use super::packet::CaptureTime;
use crate::codec::PayloadFacts;
use crate::prefetch::Prefetcher;
use std::collections::VecDeque;

/// Properties of a packet that matter for frames; `number` is its extended sequence number.
#[derive(Clone, Copy, Debug)]
pub struct FramePacket {
    /// Extended sequence number.
    pub number: i64,
    /// RTP timestamp.
    pub timestamp: u32,
    /// RTP marker.
    pub marker: bool,
    /// No payload: it is not part of a frame.
    pub padding: bool,
    /// Facts from the payload.
    pub facts: PayloadFacts,
    /// Arrival on the meter's clock, ns.
    pub arrived_ns: i64,
    /// Capture time of the frame, if the packet has it.
    pub captured: Option<CaptureTime>,
}

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// Every packet arrived.
    Complete(CompleteFrame),
    /// One dropped frame, of this timestamp.
    Dropped(u32),
    /// This many frames of which nothing arrived.
    Missed(u32),
}

/// A frame of which every packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteFrame {
    /// RTP timestamp.
    pub timestamp: u32,
    /// Extended sequence number of its first packet.
    pub first: i64,
    /// When its last packet arrived, on the meter's clock, ns.
    pub arrived_ns: i64,
    /// It and all frames it refers to arrived.
    pub decodable: bool,
    /// It refers to no other.
    pub key_frame: bool,
    /// When it was captured.
    pub captured: Option<CaptureTime>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    timestamp: u32,
    first: i64,
    last: i64,
    arrived: u16,
    padding: bool,
    /// The payload of packet `first` starts a frame.
    starts: bool,
    /// The packet `last` ends the frame: by its marker, as far as markers end frames.
    ends: bool,
    /// The packet `last` has the marker.
    is_marked: bool,
    /// Packets with the marker.
    markers: u8,
    /// More came than what precedes a picture.
    has_picture: bool,
    key_frame: bool,
    discardable: bool,
    picture_id: Option<(u16, u8)>,
    arrived_ns: i64,
    captured: Option<CaptureTime>,
}

/// What of a frame that was judged matters for the next packet.
#[derive(Clone, Copy, Debug)]
struct JudgedFrame {
    timestamp: u32,
    /// Its last packet ended it.
    ended: bool,
    has_picture: bool,
}

/// Frames of one video track.
#[derive(Debug)]
pub struct FrameMeter {
    frames: VecDeque<Frame>,
    frames_max: usize,
    headers_read: bool,
    /// The number after the last frame judged; `None` before the first.
    next: Option<i64>,
    /// The decoder has all frames that the next one may refer to.
    intact: bool,
    picture_id: Option<(u16, u8)>,
    /// The last frame judged.
    judged: Option<JudgedFrame>,
    /// The marker was seen inside a picture: it ends none.
    has_inner_markers: bool,
    /// Markers of the last picture whose end is sure, since then.
    usual_markers: u8,
}

impl FrameMeter {
    /// Keeps at most `frames_max` frames that are not judged yet; above that the oldest is judged
    /// at once.
    ///
    /// Without `headers_read` key frames are unknown: then every complete frame counts as
    /// decodable.
    #[must_use]
    pub fn new(frames_max: usize, headers_read: bool) -> Self {
        Self {
            frames: VecDeque::new(),
            frames_max: frames_max.max(1),
            headers_read,
            next: None,
            intact: !headers_read,
            picture_id: None,
            judged: None,
            has_inner_markers: false,
            usual_markers: 0,
        }
    }

    /// Whether the source sets the marker inside pictures, and not only at their end.
    #[must_use]
    pub fn has_inner_markers(&self) -> bool {
        self.has_inner_markers
    }

    /// Whether the next frames can be decoded; `false` before a key frame arrived, and after a
    /// loss.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.intact
    }

    /// The frame that the next packet probably belongs to.
    pub(super) fn prefetch(&self, prefetcher: &mut Prefetcher<'_>) {
        if let Some(frame) = self.frames.back() {
            prefetcher.value(frame);
        }
    }

    /// A new packet arrived. Call [`Self::judge`] next.
    pub fn packet(&mut self, packet: &FramePacket) {
        if self.next.is_some_and(|next| packet.number < next) {
            return; // its frame was judged without it
        }
        let is_rest = |judged: &JudgedFrame| {
            judged.ended
                && judged.timestamp == packet.timestamp
                && !(judged.has_picture && starts(packet))
        };
        let of_waiting = |frame: &Frame| !frame.padding && frame.timestamp == packet.timestamp;
        if !packet.padding
            && self.judged.as_ref().is_some_and(is_rest)
            && !self.frames.iter().any(of_waiting)
        {
            self.found_inner_marker();
        }
        let ends = packet.padding || packet.marker && !self.has_inner_markers;
        for (i, frame) in self.frames.iter_mut().enumerate().rev() {
            if packet.padding == frame.padding
                && (packet.padding || packet.timestamp == frame.timestamp)
                && !frame.is_before(packet)
            {
                // Padding joins padding only next to it: a frame may be between.
                let touches = packet.number >= frame.first - 1 && packet.number <= frame.last + 1;
                if touches || !packet.padding {
                    if frame.add(packet, ends) {
                        self.found_inner_marker();
                    }
                    return;
                }
            }
            if packet.number > frame.last {
                return self.insert(i + 1, packet, ends);
            }
            if packet.number >= frame.first {
                return; // another timestamp in the middle of a frame: a broken sender
            }
        }
        self.insert(0, packet, ends);
    }

    /// Markers so far may have been inside pictures, those of waiting frames too.
    fn found_inner_marker(&mut self) {
        self.has_inner_markers = true;
        for frame in self.frames.iter_mut().filter(|frame| !frame.padding) {
            frame.ends = false;
        }
    }

    /// Judges all frames whose outcome is known. All numbers below `resolved_below` have arrived or
    /// never will.
    pub fn judge(&mut self, resolved_below: i64, mut tell: impl FnMut(FrameOutcome)) {
        while self.frames.len() > self.frames_max {
            self.give_up_first(&mut tell);
        }
        loop {
            let Some(mut frame) = self.frames.front().copied() else { return };
            let following = self.frames.get(1).copied();
            let is_before_hole = following
                .is_some_and(|f| f.starts && f.first > frame.last + 1 && f.first <= resolved_below);
            frame.ends |= is_before_hole && self.seems_ended(&frame);
            let ended = frame.ends || self.is_ended(0);
            let whole = ended && frame.is_whole();
            let follows = self.next == Some(frame.first);
            let hole_resolved = frame.first <= resolved_below;
            if whole && follows {
                self.complete(frame, &mut tell);
            } else if frame.padding && hole_resolved {
                // The hole before it is judged with the next frame, for which the hole becomes
                // longer.
                self.frames.pop_front();
            } else if whole
                && frame.starts
                && (self.next.is_none() || !self.intact && frame.key_frame || hole_resolved)
            {
                self.miss_before(&frame, &mut tell);
                self.complete(frame, &mut tell);
            } else if self.next.is_none() && !frame.starts && (whole && following.is_some()) {
                self.leave(frame); // joined in its middle
            } else if self.is_hopeless(&frame, ended, following.as_ref(), resolved_below) {
                self.miss_before(&frame, &mut tell);
                self.give_up_first(&mut tell);
            } else if !self.skip_to_key_frame(&mut tell) {
                return;
            }
        }
    }

    /// The source restarts: incomplete frames are dropped, and a key frame is needed.
    pub fn restart(&mut self, mut tell: impl FnMut(FrameOutcome)) {
        self.judge(i64::MIN, &mut tell);
        while !self.frames.is_empty() {
            self.give_up_first(&mut tell);
        }
        self.next = None;
        self.intact = !self.headers_read;
        self.picture_id = None;
        (self.judged, self.has_inner_markers, self.usual_markers) = (None, false, 0);
    }

    /// The sender stopped and goes on, perhaps with the picture at which it stopped, once more.
    pub(super) fn timeline_shifted(&mut self) {
        self.judged = None;
    }

    /// The last packet of the last frame so far has arrived.
    pub(super) fn end_last(&mut self) {
        if let Some(frame) = self.frames.back_mut() {
            frame.ends = true;
        }
    }

    /// Most memory outside of this struct, bytes.
    #[cfg(test)]
    pub(super) fn memory_max(&self) -> usize {
        (self.frames_max + 1) * size_of::<Frame>()
    }

    fn insert(&mut self, at: usize, packet: &FramePacket, ends: bool) {
        if self.frames.len() > self.frames_max {
            return; // judge() was not called
        }
        if self.frames.len() == self.frames.capacity() {
            // Few wait while no packet is missing, so that most tracks never need the room for all.
            let most = self.frames_max + 1;
            let room = (2 * self.frames.len()).clamp(most.min(4), most);
            self.frames.reserve_exact(room - self.frames.len());
        }
        self.frames.insert(at, Frame::of(packet, ends));
    }

    /// Whether the last packet of waiting frame `at` has arrived: it has the marker, or is followed
    /// without a gap.
    fn is_ended(&self, at: usize) -> bool {
        self.frames.get(at).is_some_and(|frame| {
            let following = self.frames.get(at + 1);
            frame.ends || following.is_some_and(|f| f.first == frame.last + 1)
        })
    }

    /// Whether the hole after a frame is probably another picture: its last packet has a marker,
    /// and it has as many as usual. Without this a lost picture would be two where markers end
    /// none.
    fn seems_ended(&self, frame: &Frame) -> bool {
        self.has_inner_markers && frame.is_marked && frame.markers >= self.usual_markers
    }

    /// Whether the frame is the rest of a picture that was judged at a marker inside it.
    fn is_rest(&self, frame: &Frame) -> bool {
        self.judged.is_some_and(|judged| {
            judged.timestamp == frame.timestamp && !(judged.has_picture && frame.starts)
        })
    }

    /// Whether the frame can never be complete, or need not be waited for.
    fn is_hopeless(
        &self,
        frame: &Frame,
        ended: bool,
        following: Option<&Frame>,
        resolved_below: i64,
    ) -> bool {
        let bound = match following {
            _ if ended => frame.last + 1,
            Some(following) => following.first,
            None => return false,
        };
        let settled = bound <= resolved_below;
        let overtaken = self.intact
            && frame.discardable
            && self.next == Some(frame.first)
            && ended
            && self.is_ended(1)
            && following.is_some_and(|f| f.is_whole() && !f.padding && f.first == frame.last + 1);
        settled || overtaken
    }

    /// When nothing before it can be decoded, a complete key frame ends the wait for earlier
    /// frames.
    fn skip_to_key_frame(&mut self, tell: &mut impl FnMut(FrameOutcome)) -> bool {
        if self.intact {
            return false;
        }
        let is_ready = |f: &Frame| f.key_frame && f.starts && f.is_whole();
        let mut waiting = self.frames.iter().enumerate().skip(1);
        let ready = waiting.find(|(at, frame)| is_ready(frame) && self.is_ended(*at));
        let Some((at, _)) = ready else { return false };
        for _ in 0..at {
            self.give_up_first(tell);
        }
        true
    }

    /// Reports frames that were entirely in the hole before `frame`.
    fn miss_before(&mut self, frame: &Frame, tell: &mut impl FnMut(FrameOutcome)) {
        let Some(next) = self.next.filter(|&next| next < frame.first) else { return };
        self.next = Some(frame.first);
        if !frame.starts {
            return; // all packets of the hole may belong to this frame
        }
        let hole = u32::try_from(frame.first - next).unwrap_or(u32::MAX);
        let missed = match (self.picture_id, frame.picture_id) {
            (Some((before, bits)), Some((id, same)))
                if bits == same && (1..=15).contains(&bits) =>
            {
                let ids = u32::from(id.wrapping_sub(before) & ((1 << bits) - 1));
                ids.saturating_sub(1).min(hole)
            }
            _ => 1,
        };
        if missed > 0 {
            self.intact = !self.headers_read;
            tell(FrameOutcome::Missed(missed));
        }
    }

    fn complete(&mut self, frame: Frame, tell: &mut impl FnMut(FrameOutcome)) {
        let is_rest = self.is_rest(&frame);
        self.leave(frame);
        if frame.padding {
            return;
        }
        self.intact |= frame.key_frame;
        if is_rest {
            return;
        }
        if self.has_inner_markers {
            self.usual_markers = frame.markers;
        }
        tell(FrameOutcome::Complete(CompleteFrame {
            timestamp: frame.timestamp,
            first: frame.first,
            arrived_ns: frame.arrived_ns,
            decodable: self.intact,
            key_frame: frame.key_frame,
            captured: frame.captured,
        }));
    }

    /// Ends the wait for the first frame, in any state.
    fn give_up_first(&mut self, tell: &mut impl FnMut(FrameOutcome)) {
        let Some(&frame) = self.frames.front() else { return };
        let follows = frame.starts || self.next == Some(frame.first);
        if self.is_ended(0) && frame.is_whole() && follows && (!self.intact || frame.key_frame) {
            return self.complete(frame, tell);
        }
        let joined_in_its_middle = self.next.is_none() && !frame.starts;
        let is_rest = self.is_rest(&frame);
        self.leave(frame);
        if frame.padding {
            return;
        }
        self.intact &= frame.discardable || !self.headers_read;
        if !joined_in_its_middle && !is_rest {
            tell(FrameOutcome::Dropped(frame.timestamp));
        }
    }

    fn leave(&mut self, frame: Frame) {
        self.frames.pop_front();
        self.next = Some(match self.frames.front() {
            // Its end was lost together with packets before the next frame.
            Some(following) if !frame.ends && !following.starts => frame.last + 1,
            Some(following) if !frame.ends => following.first,
            _ => frame.last + 1,
        });
        self.picture_id = frame.picture_id.or(self.picture_id);
        if !frame.padding {
            self.judged = Some(JudgedFrame {
                timestamp: frame.timestamp,
                ended: frame.ends,
                has_picture: frame.has_picture,
            });
        }
    }
}

impl Frame {
    fn of(packet: &FramePacket, ends: bool) -> Self {
        Self {
            timestamp: packet.timestamp,
            first: packet.number,
            last: packet.number,
            arrived: 1,
            padding: packet.padding,
            starts: starts(packet),
            ends,
            is_marked: packet.marker,
            markers: u8::from(packet.marker),
            has_picture: !packet.facts.precedes_picture,
            key_frame: packet.facts.key_frame,
            discardable: packet.facts.discardable,
            picture_id: packet.facts.picture_id,
            arrived_ns: packet.arrived_ns,
            captured: packet.captured,
        }
    }

    /// Whether a packet begins another picture of the same timestamp behind this one.
    fn is_before(&self, packet: &FramePacket) -> bool {
        !packet.padding
            && self.ends
            && self.has_picture
            && packet.number > self.last
            && starts(packet)
    }

    /// Takes another packet of the frame; true when it shows that a marker was inside the frame.
    fn add(&mut self, packet: &FramePacket, ends: bool) -> bool {
        let has_inner_marker =
            !self.padding && if packet.number > self.last { self.ends } else { ends };
        if packet.number < self.first {
            self.first = packet.number;
            self.starts = starts(packet);
        }
        if packet.number > self.last {
            self.last = packet.number;
            (self.ends, self.is_marked) = (ends, packet.marker);
        }
        self.markers = self.markers.saturating_add(u8::from(packet.marker));
        self.has_picture |= !packet.facts.precedes_picture;
        self.arrived = self.arrived.saturating_add(1);
        self.key_frame |= packet.facts.key_frame;
        self.discardable &= packet.facts.discardable;
        self.picture_id = self.picture_id.or(packet.facts.picture_id);
        self.arrived_ns = self.arrived_ns.max(packet.arrived_ns);
        self.captured = self.captured.or(packet.captured);
        has_inner_marker
    }

    fn is_whole(&self) -> bool {
        self.last - self.first + 1 == i64::from(self.arrived)
    }
}

/// Each spatial layer of a VP9 superframe starts a layer frame; only the lowest starts the picture.
fn starts(packet: &FramePacket) -> bool {
    packet.padding || packet.facts.starts_frame && packet.facts.spatial_layer == 0
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
