//! Who sends in each media section of a connection, as the room signals it.

use std::collections::BTreeMap;

use crate::signalling::room::RoomStream;

/// The senders by media section.
#[derive(Debug, Default)]
pub(super) struct Senders {
    streams: Vec<RoomStream>,
    /// The sender of each listed section, by `a=mid`, or the last one if it has none.
    last: BTreeMap<String, String>,
}

impl Senders {
    /// All sections.
    pub(super) fn streams(&self) -> &[RoomStream] {
        &self.streams
    }

    /// The stream in section `mid`.
    pub(super) fn stream(&self, mid: &str) -> Option<&RoomStream> {
        self.streams.iter().find(|stream| stream.mid == mid)
    }

    /// The sender in section `mid`; `None` if nobody sends there.
    pub(super) fn of(&self, mid: &str) -> Option<&str> {
        self.stream(mid)?.from.as_deref()
    }

    /// The sender of what arrives in section `mid`: where nobody sends any more, media of the one
    /// before may still be on its way, and may be the first that arrives.
    pub(super) fn of_media(&self, mid: &str) -> Option<&str> {
        self.last.get(mid).map(String::as_str)
    }

    /// Sets the streams that the peer sends from now on; returns what was known before.
    pub(super) fn replace(&mut self, streams: Vec<RoomStream>) -> Self {
        let last = streams.iter().filter_map(|stream| {
            let from = stream.from.as_ref().or_else(|| self.last.get(&stream.mid))?;
            Some((stream.mid.clone(), from.clone()))
        });
        let last = last.collect();
        std::mem::replace(self, Self { streams, last })
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::MediaKind;

    use super::*;

    fn stream(mid: &str, from: Option<&str>) -> RoomStream {
        RoomStream {
            mid: mid.into(),
            from: from.map(str::to_owned),
            is_muted: false,
            kind: MediaKind::Video,
            layers: Vec::new(),
            tells_layers: false,
        }
    }

    /// A participant that leaves as soon as it was there: the room says so before its first packets
    /// are read.
    #[test]
    fn media_that_arrives_after_its_sender_has_left_is_still_its_own() {
        let mut senders = Senders::default();
        assert_eq!((senders.of("0"), senders.of_media("0")), (None, None));
        senders.replace(vec![stream("0", Some("throng-4")), stream("1", Some("throng-4"))]);
        assert_eq!((senders.of("0"), senders.of_media("0")), (Some("throng-4"), Some("throng-4")));
        let before = senders.replace(vec![stream("0", None), stream("1", None)]);
        assert_eq!((before.of("0"), senders.of("0")), (Some("throng-4"), None));
        assert_eq!(senders.of_media("0"), Some("throng-4"));
        // Still, when it is told again.
        senders.replace(vec![stream("0", None), stream("1", None)]);
        assert_eq!(senders.of_media("1"), Some("throng-4"));
        // The next one in the section has it for itself.
        senders.replace(vec![stream("0", Some("throng-5")), stream("1", None)]);
        assert_eq!(
            (senders.of_media("0"), senders.of_media("1")),
            (Some("throng-5"), Some("throng-4"))
        );
        // Nothing is kept of a section that is no more.
        senders.replace(vec![stream("0", Some("throng-5"))]);
        assert_eq!(senders.of_media("1"), None);
    }
}
