//! A worker's sessions, by id, by peer address, and by subscribed source.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use crate::inbox::Live;
use crate::room::source_for;
use crate::session::{Media, Session};
use crate::source::{Audience, Channel, Source};
use crate::stun::local_ufrag;
use crate::viewer::{Stream, ViewerTransport};

pub(crate) struct Sessions {
    slots: Vec<Option<Session>>,
    free: Vec<usize>,
    by_address: HashMap<SocketAddr, usize>,
    by_ufrag: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
    /// Slot and stream of each that plays a source.
    subscribers: [Vec<(usize, usize)>; Source::COUNT],
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_address: HashMap::new(),
            by_ufrag: HashMap::new(),
            by_id: HashMap::new(),
            subscribers: std::array::from_fn(|_| Vec::new()),
        }
    }
}

impl Sessions {
    pub(crate) fn add(&mut self, session: Session) {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        self.by_ufrag.insert(session.local_ufrag.clone(), slot);
        self.by_id.insert(session.id.clone(), slot);
        if slot == self.slots.len() {
            self.slots.push(Some(session));
        } else if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(session);
        }
    }

    pub(crate) fn remove(&mut self, slot: usize, audience: &Audience) -> Option<Session> {
        let session = self.slots.get_mut(slot)?.take()?;
        self.unsubscribe(slot, audience);
        self.by_ufrag.remove(&session.local_ufrag);
        self.by_id.remove(&session.id);
        for address in &session.addresses {
            self.by_address.remove(address);
        }
        self.free.push(slot);
        Some(session)
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Session> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn slot_of_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn by_id(&mut self, id: &str) -> Option<&mut Session> {
        self.get_mut(self.slot_of_id(id)?)
    }

    /// The session of a datagram: by its source address or, for the first from there, by the ufrag
    /// of its STUN request.
    pub(crate) fn slot_of_datagram(
        &mut self,
        source: SocketAddr,
        datagram: &[u8],
    ) -> Option<usize> {
        let named = local_ufrag(datagram).map(|ufrag| self.by_ufrag.get(ufrag).copied());
        match named {
            None => self.by_address.get(&source).copied(),
            Some(slot) => {
                let slot = slot?;
                if self.by_address.get(&source) != Some(&slot) {
                    let session = self.slots.get_mut(slot)?.as_mut()?;
                    if !session.learn_address(source) {
                        return None;
                    }
                    self.by_address.insert(source, slot);
                }
                Some(slot)
            }
        }
    }

    /// Adds a viewer's streams to the subscribers of their sources.
    pub(crate) fn subscribe(&mut self, slot: usize, audience: &Audience) {
        let Some(Some(Session { media: Media::Viewing { streams, .. }, .. })) =
            self.slots.get(slot)
        else {
            return;
        };
        for (number, stream) in streams.iter().enumerate() {
            self.subscribers[stream.source.place()].push((slot, number));
            audience[stream.source.place()].fetch_add(1, Relaxed);
        }
    }

    fn unsubscribe(&mut self, slot: usize, audience: &Audience) {
        for (list, watching) in self.subscribers.iter_mut().zip(audience) {
            let before = list.len();
            list.retain(|(subscriber, _)| *subscriber != slot);
            watching.fetch_sub((before - list.len()) as u32, Relaxed);
        }
    }

    /// Switches all viewers of a stream to what plays from now on.
    pub(crate) fn switch(
        &mut self,
        channel: Channel,
        live: Option<Live>,
        has_card: bool,
        audience: &Audience,
    ) {
        for slot in 0..self.slots.len() {
            let Some(Some(session)) = self.slots.get_mut(slot) else { continue };
            if session.channel != channel {
                continue;
            }
            let card = has_card.then_some(session.card);
            if let Media::Viewing { streams, .. } = &mut session.media {
                for stream in streams {
                    stream.switch(source_for(stream.agreed.codec, channel, card, live));
                    if live.is_none() {
                        // The next publisher's packets are numbered elsewhere.
                        stream.pause();
                    }
                }
                self.unsubscribe(slot, audience);
                self.subscribe(slot, audience);
            }
        }
    }

    /// Calls `each` for every stream that carries `source`.
    #[inline]
    pub(crate) fn each_subscriber(
        &mut self,
        source: Source,
        mut each: impl FnMut(&mut Stream, &mut ViewerTransport),
    ) {
        for (slot, number) in &self.subscribers[source.place()] {
            if let Some(Some(session)) = self.slots.get_mut(*slot)
                && let Media::Viewing { transport, streams, .. } = &mut session.media
                && let Some(stream) = streams.get_mut(*number)
            {
                each(stream, transport);
            }
        }
    }
}
