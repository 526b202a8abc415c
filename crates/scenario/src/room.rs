//! The rooms of a conference: what they are called, and how they are made where the run makes them.

use crate::target::{Endpoint, JanusId, TokenSource};

/// More rooms than one run fills: each has series of its own.
pub const ROOMS_MAX: u32 = 1_000;

impl Endpoint {
    /// The same server with the room of place `place`, of which 0 is the URL's own. Of numbers it is the next ones, of
    /// names `NAME-2`, `NAME-3` and so on. What has no rooms stays what it is.
    #[must_use]
    pub fn in_room(&self, place: u32) -> Self {
        let named = |name: &str| match place {
            0 => name.to_owned(),
            _ => format!("{name}-{}", u64::from(place) + 1),
        };
        let mut endpoint = self.clone();
        match &mut endpoint {
            Self::JanusVideoRoom { room: JanusId::Number(id), .. } => {
                *id = id.saturating_add(u64::from(place));
            }
            Self::JanusVideoRoom { room: JanusId::Text(name), .. } | Self::LiveKit { room: name, .. } => {
                *name = named(name);
            }
            _ => {}
        }
        endpoint
    }
}

/// A room that is made by who joins first, and destroyed by who leaves last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomConfig {
    /// The server's key for making rooms, where it asks for one (Janus: `admin_key`).
    pub admin_key: Option<TokenSource>,
    /// How many may publish; as many as the crowd has when the scenario does not say.
    pub publishers: Option<u32>,
    /// The rate that the server allows each publisher, bits per second; `None` for any.
    pub bits_per_s: Option<f64>,
    /// The picture codecs it takes, such as `vp8`; what the crowd sends when the scenario does not say.
    pub video_codecs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use crate::Target;

    #[test]
    fn rooms_are_numbered_on_from_the_urls_own() {
        for (url, first, third) in [
            ("janus+ws://h:8188/videoroom/1234", "1234", "1236"),
            ("janus+ws://h:8188/videoroom/lesson", "lesson", "lesson-3"),
            ("livekit+ws://h:7880/meeting", "meeting", "meeting-3"),
        ] {
            let target = Target::parse(url).unwrap();
            let shown =
                |place| Target { endpoint: target.endpoint.in_room(place), ..target.clone() }.display();
            assert!(shown(0).ends_with(first) && shown(2).ends_with(third), "{} {}", shown(0), shown(2));
        }
    }
}
