//! The conversation with one peer over its data channel: what it has, what it sends, and what it is
//! sent.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use super::super::swarm::{Holdings, PeerId};
use super::super::tracker::Id;
use super::super::wire::{MESSAGE_LEN_MAX, PeerCommand, PeerMessage, Wire};
use crate::webrtc::data_link::{DataLink, LinkOutput};
use crate::webrtc::session::SessionError;

/// Largest segment that a peer may announce: more than a minute of the best rendition.
const SEGMENT_LEN_MAX: u64 = 256 << 20;

/// Names of requests are below this, as the engine's.
const REQUESTS: u64 = 1_000;

/// Most messages that wait for room; a peer that asks for more and reads nothing gets no answer.
const UNSAID_MAX: usize = 256;

/// The conversation.
pub(super) struct Connection {
    pub(super) id: PeerId,
    /// Its name at the tracker.
    pub(super) peer: Id,
    pub(super) began_at: Instant,
    pub(super) link: DataLink,
    pub(super) is_open: bool,
    /// It was told nothing yet.
    pub(super) is_new: bool,
    /// When the link has something to do.
    pub(super) next_at: Instant,
    wire: Wire,
    /// What it has said that it has.
    holdings: Holdings,
    download: Option<Download>,
    upload: Option<Upload>,
    /// What the channel had no room for, in its order.
    unsaid: VecDeque<Vec<u8>>,
    /// Segments that it did not send in time, since the last one that came.
    pub(super) late_count: u32,
}

/// A segment that it sends.
struct Download {
    number: u64,
    request: u64,
    /// It has begun.
    total: Option<u64>,
    bytes: Vec<u8>,
    is_complete: bool,
}

/// A segment that it is sent.
struct Upload {
    number: u64,
    request: u64,
    bytes: Arc<[u8]>,
    /// The first byte that was asked for, and the first that was not sent yet.
    from: usize,
    sent: usize,
}

/// What a peer's message leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It has other segments.
    Announced,
    /// More of what it was asked for came.
    Progress,
    /// It wants a segment from this byte on.
    Requested { number: u64, request: u64, from_byte: u64 },
    /// It wants no segment any more.
    NotAsked,
    /// It does not behave as the engine: the reason why it is left.
    Broken(String),
}

impl Connection {
    pub(super) fn new(now: Instant, id: PeerId, peer: Id, link: DataLink, wire: Wire) -> Self {
        Self {
            id,
            peer,
            began_at: now,
            link,
            is_open: false,
            is_new: false,
            next_at: now,
            wire,
            holdings: Holdings::default(),
            download: None,
            upload: None,
            unsaid: VecDeque::new(),
            late_count: 0,
        }
    }

    pub(super) fn has_loaded(&self, number: u64) -> bool {
        self.is_open && self.holdings.loaded.contains(number)
    }

    /// Adds what it has of the segments `within` these.
    pub(super) fn add_to(&self, overview: &mut Holdings, within: &RangeInclusive<u64>) {
        overview.loaded.add(&self.holdings.loaded, within);
        let loading = self.holdings.loading.iter().filter(|number| within.contains(*number));
        overview.loading.extend(loading);
    }

    pub(super) fn is_sending(&self) -> bool {
        self.download.is_some()
    }

    /// Says something, when there is room for it; what is for a closed channel is lost.
    pub(super) fn say(&mut self, said: &PeerCommand) -> Result<(), SessionError> {
        if self.is_open {
            let room = UNSAID_MAX.saturating_sub(self.unsaid.len());
            self.unsaid.extend(self.wire.write(said).into_iter().take(room));
        }
        self.say_more()
    }

    /// Says what waits for room.
    fn say_more(&mut self) -> Result<(), SessionError> {
        while let Some(message) = self.unsaid.front() {
            if !self.link.send(message)? {
                break;
            }
            self.unsaid.pop_front();
        }
        Ok(())
    }

    /// Whether something waits for room.
    pub(super) fn has_unsaid(&self) -> bool {
        !self.unsaid.is_empty()
    }

    /// The name of the request that is open.
    #[cfg(test)]
    pub(super) fn request_name(&self) -> Option<u64> {
        self.download.as_ref().map(|download| download.request)
    }

    /// Asks for a segment.
    pub(super) fn request(
        &mut self,
        number: u64,
        rng: &mut fastrand::Rng,
    ) -> Result<(), SessionError> {
        let request = rng.u64(..REQUESTS);
        self.download =
            Some(Download { number, request, total: None, bytes: Vec::new(), is_complete: false });
        self.say(&PeerCommand::Request { segment: number, request, from_byte: 0 })
    }

    /// Bytes of segment `number` that have come; `None` if it is not sent any more.
    pub(super) fn received(&self, number: u64) -> Option<u64> {
        let download = self.download.as_ref().filter(|download| download.number == number)?;
        Some(download.bytes.len() as u64)
    }

    /// The segment that has come whole, once.
    pub(super) fn take_complete(&mut self) -> Option<(u64, Vec<u8>)> {
        let download = self.download.take_if(|download| download.is_complete)?;
        self.late_count = 0;
        Some((download.number, download.bytes))
    }

    /// Asks no more for what it was asked for.
    pub(super) fn cancel(&mut self) -> Result<(), SessionError> {
        let Some(download) = self.download.take() else { return Ok(()) };
        if download.is_complete {
            return Ok(());
        }
        self.say(&PeerCommand::Cancel { segment: download.number, request: download.request })
    }

    /// Handles a message.
    pub(super) fn message(&mut self, message: &[u8]) -> Option<Event> {
        match self.wire.read(message) {
            Ok(PeerMessage::Command(said)) => self.said(said),
            Ok(PeerMessage::Piece(bytes)) => self.piece(bytes),
            Ok(PeerMessage::Nothing) => None,
            // The engine leaves out what it cannot read.
            Err(error) => Some(Event::Broken(error.to_string())),
        }
    }

    fn said(&mut self, said: PeerCommand) -> Option<Event> {
        match said {
            PeerCommand::Announcement { loaded, loading } => {
                self.holdings = Holdings {
                    loaded: loaded.into_iter().collect(),
                    loading: loading.into_iter().collect(),
                };
                Some(Event::Announced)
            }
            PeerCommand::Request { segment, request, from_byte } => {
                Some(Event::Requested { number: segment, request, from_byte })
            }
            PeerCommand::Cancel { request, .. } => {
                self.upload.take_if(|upload| upload.request == request).map(|_| Event::NotAsked)
            }
            PeerCommand::Segment { segment, request, bytes } => {
                let download = self.asked(segment, request)?;
                if bytes > SEGMENT_LEN_MAX {
                    return Some(Event::Broken(format!("announces a segment of {bytes} bytes")));
                }
                download.total.get_or_insert(bytes);
                Some(Event::Progress)
            }
            PeerCommand::Sent { segment, request } => {
                let Some(download) = self.asked(segment, request) else {
                    let begun =
                        self.download.as_ref().is_some_and(|download| download.total.is_some());
                    return begun
                        .then(|| Event::Broken("sent another segment than was asked for".into()));
                };
                let (has, announced) = (download.bytes.len() as u64, download.total?);
                if has != announced {
                    return Some(Event::Broken(format!(
                        "sent {has} bytes of a segment of {announced}"
                    )));
                }
                download.is_complete = true;
                Some(Event::Progress)
            }
            PeerCommand::Absent { segment, request } => {
                self.asked(segment, request)?;
                self.download = None;
                self.holdings.loaded.remove(segment);
                Some(Event::Announced)
            }
        }
    }

    /// The download, if it is of this request.
    fn asked(&mut self, segment: u64, request: u64) -> Option<&mut Download> {
        let has_names = self.wire.has_ends();
        let is_of = |download: &&mut Download| {
            download.number == segment && (!has_names || download.request == request)
        };
        self.download.as_mut().filter(is_of)
    }

    fn piece(&mut self, bytes: &[u8]) -> Option<Event> {
        let says_ends = self.wire.has_ends();
        // What was not asked for, or not any more.
        let download = self.download.as_mut().filter(|download| !download.is_complete)?;
        let total = download.total?;
        let has = (download.bytes.len() + bytes.len()) as u64;
        if has > total {
            return Some(Event::Broken(format!("sent {has} bytes of a segment of {total}")));
        }
        download.bytes.extend_from_slice(bytes);
        download.is_complete = !says_ends && has == total;
        Some(Event::Progress)
    }

    /// Sends a segment from now on, instead of what was sent before.
    pub(super) fn upload(
        &mut self,
        number: u64,
        request: u64,
        bytes: Arc<[u8]>,
        from: usize,
    ) -> Result<(), SessionError> {
        let left = bytes.len().saturating_sub(from) as u64;
        self.upload = Some(Upload { number, request, bytes, from, sent: from });
        self.say(&PeerCommand::Segment { segment: number, request, bytes: left })
    }

    pub(super) fn stop_upload(&mut self) {
        self.upload = None;
    }

    /// The segment that it is sent.
    pub(super) fn uploading(&self) -> Option<u64> {
        self.upload.as_ref().map(|upload| upload.number)
    }

    /// Sends more of it, up to so many bytes; how many those were, and whether it is sent.
    pub(super) fn send_up_to(&mut self, allowed: u64) -> Result<(u64, bool), SessionError> {
        self.say_more()?;
        let has_room = self.unsaid.is_empty();
        let Some(upload) = &mut self.upload else { return Ok((0, true)) };
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let end = upload.from.saturating_add(allowed).min(upload.bytes.len());
        let before = upload.sent;
        // Its announcement comes before it.
        while upload.sent < end && has_room && self.link.takes_pieces() {
            let until = end.min(upload.sent + MESSAGE_LEN_MAX);
            let piece = upload.bytes.get(upload.sent..until).unwrap_or_default();
            if !self.link.send(piece)? {
                break;
            }
            upload.sent = until;
        }
        let sent = (upload.sent - before) as u64;
        if upload.sent < upload.bytes.len() {
            return Ok((sent, false));
        }
        let said = PeerCommand::Sent { segment: upload.number, request: upload.request };
        self.upload = None;
        self.say(&said).map(|()| (sent, true))
    }

    /// What the link does next.
    pub(super) fn poll(&mut self) -> Result<LinkOutput, SessionError> {
        self.link.poll()
    }
}
