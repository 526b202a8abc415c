//! Participants of all kinds have the same life, whatever their servers do: it begins with its
//! start, tells of each phase once, ends once and in time, and nothing follows its end.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use throng_observation::{Observation, Phase};
use throng_scenario::{ChatConfig, JanusId, Place, Protocol, Role};

use super::tests::{endpoint, factory};
use crate::participant::{
    Channel, ChannelError, DownloadEvent, FetchId, Input, Message, Open, Opening, Output,
    Participant, Response,
};

/// Outputs of one input beyond which it would flood its driver.
const OUTPUTS_MAX: usize = 10_000;

/// What servers say, some of it in the right place.
const WORDS: [&str; 7] = [
    "",
    "{\"janus\":\"success\",\"data\":{\"id\":1}}",
    "{\"command\":\"offer\"}",
    "<stream:features/>",
    "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n",
    "#EXTM3U\n#EXTINF:4,\na.ts\n",
    "welcome",
];

/// Where there is a participant of each kind.
fn places() -> Vec<(&'static str, Place)> {
    Protocol::ALL.iter().flat_map(|protocol| places_of(*protocol)).collect()
}

/// Where there are participants of `protocol`: the compiler asks for those of a new one.
fn places_of(protocol: Protocol) -> Vec<(&'static str, Place)> {
    let (id, pin) = (JanusId::Number(1), None);
    match protocol {
        Protocol::Whep => vec![("http://10.0.0.1/whep", Place::Whep)],
        Protocol::OvenMediaEngine => {
            vec![("ws://10.0.0.1:3333/app/stream", Place::OvenMediaEngine)]
        }
        Protocol::Janus => vec![("ws://10.0.0.1:8188/", Place::Janus { id, pin })],
        Protocol::JanusVideoRoom => {
            vec![("ws://10.0.0.1:8188/", Place::JanusVideoRoom { id, pin })]
        }
        Protocol::LiveKit => {
            vec![("ws://10.0.0.1:7880/rtc", Place::LiveKit { room: "r".into() })]
        }
        Protocol::Whip => vec![("http://10.0.0.1/whip", Place::Whip)],
        Protocol::HttpVideo => vec![
            ("http://10.0.0.1/film.mp4", Place::HttpVideo),
            ("http://10.0.0.1/live.m3u8", Place::HttpVideo),
        ],
        Protocol::PeerTube => vec![("http://10.0.0.1/w/abc", Place::PeerTube)],
        Protocol::Rtsp => vec![("rtsp://10.0.0.1/cam", Place::Rtsp { account: None })],
        Protocol::RtspPublish => {
            vec![("rtsp://10.0.0.1/cam", Place::RtspPublish { account: None })]
        }
        Protocol::Rtmp => vec![("http://10.0.0.1:1935/live/key", Place::Rtmp)],
        Protocol::Srt => vec![("http://10.0.0.1:9000/", Place::Srt)],
        Protocol::Xmpp => {
            let place = Place::Xmpp { domain: "d".into(), room: "r@d".into(), account: None };
            vec![("ws://10.0.0.1/ws", place)]
        }
        Protocol::Chat => {
            vec![("ws://10.0.0.1/chat", Place::Chat), ("http://10.0.0.1/chat", Place::Chat)]
        }
    }
}

/// A channel that it has asked for.
struct Asked {
    channel: Channel,
    is_open: bool,
    is_websocket: bool,
    is_stream: bool,
}

/// A participant, and what its driver knows of it.
struct World {
    participant: Box<dyn Participant>,
    now: Instant,
    channels: Vec<Asked>,
    fetches: Vec<FetchId>,
    downloads: Vec<FetchId>,
    phases: Vec<Phase>,
    has_ended: bool,
}

impl World {
    fn new(participant: Box<dyn Participant>) -> Self {
        Self {
            participant,
            now: Instant::now(),
            channels: Vec::new(),
            fetches: Vec::new(),
            downloads: Vec::new(),
            phases: Vec::new(),
            has_ended: false,
        }
    }

    fn take(&mut self, input: Input<'_>) {
        self.participant.handle(self.now, input);
        for _ in 0..OUTPUTS_MAX {
            let output = self.participant.poll_output(self.now);
            if matches!(output, Output::Timeout(..)) {
                return;
            }
            assert!(!self.has_ended, "after its end: {output:?}");
            match output {
                Output::Open(channel, open) => self.channels.push(Asked {
                    channel,
                    is_open: false,
                    is_websocket: matches!(open, Open::WebSocket { .. }),
                    is_stream: matches!(open, Open::Stream { .. } | Open::Process { .. }),
                }),
                Output::Close(channel) => self.channels.retain(|asked| asked.channel != channel),
                Output::Fetch(fetch, _) => self.fetches.push(fetch),
                Output::Download(fetch, ..) => self.downloads.push(fetch),
                Output::Cancel(fetch) => self.downloads.retain(|open| *open != fetch),
                Output::Observed(Observation::Reached(phase, _)) => {
                    assert!(!self.phases.contains(&phase), "{phase:?} again");
                    self.phases.push(phase);
                    assert_eq!(self.phases[0], Phase::Started);
                }
                Output::Ended(_) => self.has_ended = true,
                Output::Send(..)
                | Output::Signal(..)
                | Output::Demand(..)
                | Output::Observed(_)
                | Output::Timeout(..) => {}
            }
        }
        panic!("no end of outputs");
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.take(Input::Timeout);
    }

    /// The server does something.
    fn step(&mut self, what: u8, which: usize) {
        let word = WORDS[which % WORDS.len()];
        match what {
            0 => self.pass(Duration::from_millis(1_500)),
            1..=3 if !self.channels.is_empty() => self.speak(which % self.channels.len(), word),
            4 if !self.channels.is_empty() => {
                let Asked { channel, .. } = self.channels.remove(which % self.channels.len());
                let why = ChannelError::ClosedByPeer(None);
                self.take(Input::Closed { channel, why });
            }
            5 if !self.fetches.is_empty() => {
                let fetch = self.fetches.remove(which % self.fetches.len());
                let (head, ()) = http::Response::new(()).into_parts();
                let (body, opening) = (word.as_bytes().to_vec(), Opening::default());
                let answer = Response { head, body, opening };
                let result = if which.is_multiple_of(3) {
                    Err(ChannelError::Unanswered)
                } else {
                    Ok(answer)
                };
                self.take(Input::Fetched { fetch, result });
            }
            6 if !self.downloads.is_empty() => {
                let fetch = self.downloads[which % self.downloads.len()];
                let (head, ()) = http::Response::new(()).into_parts();
                let (head, opening) = (Box::new(head), Box::new(Opening::default()));
                self.download(fetch, DownloadEvent::Head { head, opening });
                self.download(fetch, DownloadEvent::Body(word.as_bytes()));
                self.download(fetch, DownloadEvent::Finished(Ok(())));
            }
            7 if !self.downloads.is_empty() => {
                let fetch = self.downloads[which % self.downloads.len()];
                let why = ChannelError::Unanswered;
                self.download(fetch, DownloadEvent::Finished(Err(why)));
            }
            8 if which.is_multiple_of(5) => self.take(Input::Leave { others_follow: true }),
            _ => self.take(Input::Timeout),
        }
    }

    /// Nothing comes of a download that was given up.
    fn download(&mut self, fetch: FetchId, event: DownloadEvent<'_>) {
        if self.downloads.contains(&fetch) {
            if matches!(event, DownloadEvent::Finished(_)) {
                self.downloads.retain(|open| *open != fetch);
            }
            self.take(Input::Download { fetch, event });
        }
    }

    /// The channel at `at` opens, or brings `word`.
    fn speak(&mut self, at: usize, word: &str) {
        let Some(asked) = self.channels.get_mut(at) else { return };
        let channel = asked.channel;
        if !std::mem::replace(&mut asked.is_open, true) {
            let opening = Opening {
                local: "10.0.0.2:4000".parse().ok(),
                remote: "10.0.0.1:5000".parse().ok(),
                connected_at: Some(self.now),
                ..Opening::default()
            };
            return self.take(Input::Opened { channel, opening });
        }
        if asked.is_websocket {
            self.take(Input::Message { channel, message: Message::Text(word.to_owned()) });
        } else if asked.is_stream {
            self.take(Input::Bytes { channel, bytes: word.as_bytes() });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_kind_of_participant_has_one_life(
        steps in proptest::collection::vec((0_u8..9, 0_usize..1_000), 0..40),
    ) {
        let beside = endpoint("ws://10.0.0.1/ws", Place::Chat);
        let alone = Role::default();
        let chat = ChatConfig { beside: Some(Box::new(beside)), ..ChatConfig::default() };
        let in_chat = Role { chat, ..Role::default() };
        for (url, place) in places() {
            for role in [&alone, &in_chat] {
                let factory = factory(endpoint(url, place.clone()), 1);
                let mut world = World::new(factory.participant(0, Duration::ZERO, role));
                let intended_at = world.now;
                world.take(Input::Start { intended_at });
                for (what, which) in &steps {
                    world.step(*what, *which);
                    if world.has_ended {
                        break;
                    }
                }
                world.take(Input::Leave { others_follow: false });
                for _ in 0..6 {
                    world.pass(Duration::from_secs(10));
                }
                prop_assert!(world.has_ended, "{} does not leave", url);
            }
        }
    }
}
