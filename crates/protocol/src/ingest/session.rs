//! The dialogue of a publisher ("Adobe's Real Time Messaging Protocol", 1.0, sections 5.2 and 7).

use std::collections::VecDeque;
use std::fmt;

use throng_observation::masked::HIDDEN;
use throng_observation::{Failure, FailureReason};

use super::amf::Amf;
use super::chunk::{ChunkReader, ChunkWriter, Message, kind};
use crate::excerpt;

const VERSION: u8 = 3;
/// Length of C1, S1, C2 and S2.
const HANDSHAKE_BYTES: usize = 1536;

/// Size of the pieces of our messages: those of ffmpeg and OBS are as large or larger, and a key
/// frame then costs few headers.
const CHUNK_BYTES: u32 = 4096;

/// Chunk streams of ours, as ffmpeg and librtmp number them.
const CONTROL: u8 = 2;
const COMMANDS: u8 = 3;
const AUDIO: u8 = 4;
const STREAM_COMMANDS: u8 = 5;
const VIDEO: u8 = 6;

/// Transaction ids of the commands whose results are awaited.
const CONNECT: f64 = 1.0;
const CREATE_STREAM: f64 = 4.0;

/// Events of a user control message (section 7.1.7).
const PING_REQUEST: [u8; 2] = [0, 6];
const PING_RESPONSE: [u8; 2] = [0, 7];

/// Where to publish. `Debug` prints `…`: where the path has one part, the application is the key.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// `rtmp://host:port/app`.
    pub(crate) connection_url: String,
    /// The application: the path without its last part.
    pub(crate) app: String,
    /// Name of the stream: the last part of the path, with the query.
    pub(crate) key: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// What became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The server has answered the handshake.
    Greeted,
    /// The server has accepted the application.
    Connected,
    /// The server takes media.
    Publishes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for S0, S1 and S2.
    Handshake,
    Connecting,
    CreatingStream,
    Requesting,
    Publishing,
}

/// The session, from the handshake on.
#[derive(Debug)]
pub(super) struct Session {
    place: Place,
    stage: Stage,
    handshake: Vec<u8>,
    reader: ChunkReader,
    writer: ChunkWriter,
    /// The message stream that the server made.
    stream: u32,
    received_bytes: u64,
    acknowledged_bytes: u64,
    /// The server wants to know each time that so many bytes have come.
    window_bytes: Option<u64>,
    outgoing: VecDeque<Vec<u8>>,
}

impl Session {
    /// A session at `place`, whose handshake has random bytes of `rng`.
    pub(super) fn new(place: Place, mut rng: fastrand::Rng) -> Self {
        let mut hello = vec![VERSION];
        // Time and zero, then random bytes.
        hello.extend_from_slice(&[0; 8]);
        hello.extend(std::iter::repeat_with(|| rng.u8(..)).take(HANDSHAKE_BYTES - 8));
        Self {
            place,
            stage: Stage::Handshake,
            handshake: Vec::new(),
            reader: ChunkReader::new(),
            writer: ChunkWriter::new(),
            stream: 0,
            received_bytes: 0,
            acknowledged_bytes: 0,
            window_bytes: None,
            outgoing: [hello].into(),
        }
    }

    /// The next bytes to send.
    pub(super) fn poll_send(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// What the server was asked, for the message that it did not answer in time.
    pub(super) fn awaited(&self) -> Option<&'static str> {
        match self.stage {
            Stage::Handshake => Some("the handshake"),
            Stage::Connecting => Some("connect"),
            Stage::CreatingStream => Some("createStream"),
            Stage::Requesting => Some("publish"),
            Stage::Publishing => None,
        }
    }

    /// Takes the next bytes of the connection.
    ///
    /// # Errors
    /// The server refused, or its bytes are no RTMP: the session is over.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        if self.stage == Stage::Handshake {
            self.handshake.extend_from_slice(bytes);
            if self.shake_hands()? {
                events.push(Event::Greeted);
                let rest = std::mem::take(&mut self.handshake);
                self.messages(
                    rest.get(1 + 2 * HANDSHAKE_BYTES..).unwrap_or_default(),
                    &mut events,
                )?;
            }
        } else {
            self.messages(bytes, &mut events)?;
        }
        Ok(events)
    }

    /// Whether the handshake is complete.
    fn shake_hands(&mut self) -> Result<bool, Failure> {
        if let Some(version) = self.handshake.first().filter(|version| **version != VERSION) {
            let detail =
                format!("the handshake begins with {version}, not with version {VERSION} of RTMP");
            return Err(Failure::new(FailureReason::Protocol, detail));
        }
        if self.handshake.len() < 1 + 2 * HANDSHAKE_BYTES {
            return Ok(false);
        }
        let echo = self.handshake.get(1..=HANDSHAKE_BYTES).unwrap_or_default().to_vec();
        self.outgoing.push_back(echo);
        self.stage = Stage::Connecting;
        self.control(kind::SET_CHUNK_SIZE, &CHUNK_BYTES.to_be_bytes());
        self.writer.set_chunk_bytes(CHUNK_BYTES);
        let properties = [
            ("app", Amf::text(&self.place.app)),
            ("type", Amf::text("nonprivate")),
            ("flashVer", Amf::text("FMLE/3.0 (compatible; throng)")),
            ("tcUrl", Amf::text(&self.place.connection_url)),
        ];
        let object = Amf::Object(properties.map(|(name, value)| (name.to_owned(), value)).into());
        self.command(COMMANDS, 0, &[Amf::text("connect"), Amf::Number(CONNECT), object]);
        Ok(true)
    }

    fn messages(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Failure> {
        self.received_bytes += bytes.len() as u64;
        self.reader.feed(bytes);
        loop {
            let message = self.reader.next();
            let message =
                message.map_err(|e| Failure::new(FailureReason::Protocol, format!("RTMP: {e}")))?;
            let Some(message) = message else { break };
            events.extend(self.message(&message)?);
        }
        if self
            .window_bytes
            .is_some_and(|window| self.received_bytes - self.acknowledged_bytes >= window)
        {
            self.acknowledged_bytes = self.received_bytes;
            let total = (self.received_bytes as u32).to_be_bytes();
            self.control(kind::ACKNOWLEDGEMENT, &total);
        }
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<Option<Event>, Failure> {
        let number = message.body.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
        match message.kind {
            kind::WINDOW_SIZE => {
                self.window_bytes = number.filter(|bytes| *bytes > 0).map(u64::from);
            }
            // The answer is the size of our window (section 5.4.5).
            kind::SET_PEER_BANDWIDTH => {
                let window = number.unwrap_or(2_500_000).to_be_bytes();
                self.control(kind::WINDOW_SIZE, &window);
            }
            kind::USER_CONTROL => {
                if let Some(time) = message.body.strip_prefix(&PING_REQUEST) {
                    let answer = [&PING_RESPONSE, time].concat();
                    self.control(kind::USER_CONTROL, &answer);
                }
            }
            kind::COMMAND => return self.answer(&message.body),
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, body: &[u8]) -> Result<Option<Event>, Failure> {
        let values = Amf::read_all(body);
        let values =
            values.map_err(|e| Failure::new(FailureReason::Protocol, format!("AMF: {e}")))?;
        let name = values.first().and_then(Amf::as_text).unwrap_or_default();
        let transaction = values.get(1).and_then(Amf::as_number).unwrap_or(0.0);
        match (name, self.stage) {
            ("_error", _) if transaction != CONNECT && transaction != CREATE_STREAM => {
                // releaseStream and FCPublish: many servers do not know them.
                Ok(None)
            }
            ("_error", _) => Err(refusal(&self.place, values.get(3))),
            ("_result", Stage::Connecting) if transaction == CONNECT => {
                self.create_stream();
                Ok(Some(Event::Connected))
            }
            ("_result", Stage::CreatingStream) if transaction == CREATE_STREAM => {
                let stream = values.get(3).and_then(Amf::as_number).unwrap_or(1.0);
                self.request(stream as u32);
                Ok(None)
            }
            ("onStatus", _) => self.status(values.get(3)),
            ("close", _) => {
                Err(Failure::new(FailureReason::SignallingClosed, "the server sent `close`"))
            }
            _ => Ok(None),
        }
    }

    fn status(&mut self, information: Option<&Amf>) -> Result<Option<Event>, Failure> {
        let of = |name| {
            information.and_then(|of| of.get(name)).and_then(Amf::as_text).unwrap_or_default()
        };
        if of("level") == "error" {
            return Err(refusal(&self.place, information));
        }
        if of("code") == "NetStream.Publish.Start" && self.stage == Stage::Requesting {
            self.stage = Stage::Publishing;
            return Ok(Some(Event::Publishes));
        }
        if of("code") == "NetStream.Unpublish.Success" && self.stage == Stage::Publishing {
            return Err(Failure::new(FailureReason::Kicked, "the server ended the publication"));
        }
        Ok(None)
    }

    fn create_stream(&mut self) {
        self.stage = Stage::CreatingStream;
        let key = Amf::text(&self.place.key);
        self.command(
            COMMANDS,
            0,
            &[Amf::text("releaseStream"), Amf::Number(2.0), Amf::Null, key.clone()],
        );
        self.command(COMMANDS, 0, &[Amf::text("FCPublish"), Amf::Number(3.0), Amf::Null, key]);
        self.command(
            COMMANDS,
            0,
            &[Amf::text("createStream"), Amf::Number(CREATE_STREAM), Amf::Null],
        );
    }

    fn request(&mut self, stream: u32) {
        (self.stage, self.stream) = (Stage::Requesting, stream);
        let key = Amf::text(&self.place.key);
        let values = [Amf::text("publish"), Amf::Number(5.0), Amf::Null, key, Amf::text("live")];
        self.command(STREAM_COMMANDS, stream, &values);
    }

    /// The bytes of a message with media, which may be sent once the server takes them.
    pub(super) fn media(&mut self, kind: u8, timestamp_ms: u32, body: Vec<u8>) -> Vec<u8> {
        let id = match kind {
            kind::AUDIO => AUDIO,
            kind::VIDEO => VIDEO,
            _ => STREAM_COMMANDS,
        };
        let mut out = Vec::with_capacity(body.len() + body.len() / CHUNK_BYTES as usize + 16);
        self.writer.write(id, &Message { kind, stream: self.stream, timestamp_ms, body }, &mut out);
        out
    }

    /// Signs off.
    pub(super) fn leave(&mut self) {
        if !matches!(self.stage, Stage::Requesting | Stage::Publishing) {
            return;
        }
        let key = Amf::text(&self.place.key);
        self.command(COMMANDS, 0, &[Amf::text("FCUnpublish"), Amf::Number(6.0), Amf::Null, key]);
        let stream = Amf::Number(f64::from(self.stream));
        self.command(
            COMMANDS,
            0,
            &[Amf::text("deleteStream"), Amf::Number(7.0), Amf::Null, stream],
        );
    }

    fn command(&mut self, id: u8, stream: u32, values: &[Amf]) {
        let mut body = Vec::new();
        values.iter().for_each(|value| value.write(&mut body));
        self.send(id, &Message { kind: kind::COMMAND, stream, timestamp_ms: 0, body });
    }

    fn control(&mut self, kind: u8, body: &[u8]) {
        self.send(CONTROL, &Message { kind, stream: 0, timestamp_ms: 0, body: body.to_vec() });
    }

    fn send(&mut self, id: u8, message: &Message) {
        let mut out = Vec::new();
        self.writer.write(id, message, &mut out);
        self.outgoing.push_back(out);
    }
}

/// The failure of a request that the server refused, with its code and its words: without the key,
/// which many servers repeat.
fn refusal(place: &Place, information: Option<&Amf>) -> Failure {
    let of =
        |name| information.and_then(|of| of.get(name)).and_then(Amf::as_text).unwrap_or_default();
    let (code, description) = (of("code"), of("description"));
    let lower = format!("{code} {description}").to_ascii_lowercase();
    let is_key = ["auth", "denied", "forbidden", "badname", "bad name", "invalid key"];
    let reason = if is_key.iter().any(|word| lower.contains(word)) {
        FailureReason::Unauthorized
    } else {
        FailureReason::Refused
    };
    let code = if code.is_empty() { "no code" } else { code };
    let description = without_key(place, description);
    Failure::new(
        reason,
        format!("{}{}", excerpt::excerpt(code), excerpt::after_colon(&description)),
    )
}

/// `text` without the key of a publisher, its name and the values of its query. Where the path has
/// one part, that is the key.
fn without_key(place: &Place, text: &str) -> String {
    let whole = if place.key.is_empty() { &place.app } else { &place.key };
    let parts = whole.split(['?', '&']).map(|part| part.split_once('=').map_or(part, |it| it.1));
    excerpt::without(text, std::iter::once(whole.as_str()).chain(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_of_a_key_does_not_repeat_it() {
        let at = |app: &str, key: &str| Place {
            connection_url: String::new(),
            app: app.to_owned(),
            key: key.to_owned(),
        };
        for (place, said, shown) in [
            (at("live", "hunter2"), "hunter2 is already published", "… is already published"),
            (at("live", "hunter2?sig=secret"), "hunter2, secret", "…, …"),
            (at("live", "hunter2?sig=secret"), "no hunter2?sig=secret", "no …"),
            (at("hunter2", ""), "no hunter2", "no …"),
            (at("live", "a"), "not at all live", "not at all live"),
        ] {
            let of = [("code", Amf::text("X")), ("description", Amf::text(said))];
            let of = Amf::Object(of.map(|(name, value)| (name.to_owned(), value)).into());
            assert_eq!(refusal(&place, Some(&of)).detail, format!("X: {shown}").as_str());
            assert_eq!(format!("{place:?}"), HIDDEN);
        }
    }
}
