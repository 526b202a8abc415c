//! The life cycle of a participant: its phases, and how it ends.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::keyed::keyed;
use crate::{Detail, RefusalKind};

keyed! {
    /// The phases of a session in their order; one that a protocol does not have is absent.
    ///
    /// Their differences divide the time to first frame: DNS = `Resolved` − `Started`, TCP =
    /// `Connected` − `Resolved` …
    Phase, column "" key "_us" {
        /// The join began (the participant's row has the intended moment as well).
        Started = "started",
        /// The server's name was resolved to the address that is kept for the whole session.
        Resolved = "resolved",
        /// TCP to the signalling server is open.
        Connected = "connected",
        /// TLS is established (absent on plain connections).
        Secured = "secured",
        /// The page around the player was loaded as far as it was in its recording when the player
        /// began (HTTP players with a recorded page).
        PageLoaded = "page_loaded",
        /// The description of the presentation arrived, or was accepted (RTSP DESCRIBE, ANNOUNCE;
        /// HTTP: playlist, manifest, or the file's index).
        Described = "described",
        /// Offer and answer are exchanged; every track is set up (RTSP SETUP).
        Negotiated = "negotiated",
        /// The first ICE candidate pair is usable.
        IceConnected = "ice_connected",
        /// DTLS is done: media keys are known.
        DtlsConnected = "dtls_connected",
        /// The server has agreed to play or to record (RTSP PLAY, RECORD; HTTP: the head of the
        /// first media response).
        Playing = "playing",
        /// The first media packet arrived (HTTP: the first byte of media).
        FirstPacket = "first_packet",
        /// The first complete and decodable video frame (audio packet, for audio-only sessions)
        /// arrived.
        FirstFrame = "first_frame",
        /// Playback began: enough was buffered (HTTP players; others play what arrives).
        PlaybackStarted = "playback_started",
        /// It is in the room: the presences of all others came, and its own (chat; XEP-0045 section
        /// 7.2.2).
        Joined = "joined",
    }
}

impl Phase {
    /// The phases that say "the transport is up", best first: DTLS, or for a protocol without it
    /// the first media.
    pub const CONNECTED: [Phase; 6] = [
        Phase::DtlsConnected,
        Phase::Playing,
        Phase::FirstPacket,
        Phase::FirstFrame,
        Phase::PlaybackStarted,
        Phase::Joined,
    ];

    /// The phases that say "media arrives", or, in a chat, messages.
    pub const PLAYING: [Phase; 3] = [Phase::FirstFrame, Phase::FirstPacket, Phase::Joined];

    /// Whether reaching it says that the transport is up.
    #[must_use]
    pub fn is_connected(self) -> bool {
        Self::CONNECTED.contains(&self)
    }
}

keyed! {
    /// RTCIceTransportState of the W3C WebRTC specification.
    #[derive(Default)]
    IceState, column "ice_" key "" {
        /// No checks sent yet.
        #[default]
        New = "new",
        /// Checking candidate pairs.
        Checking = "checking",
        /// At least one usable pair.
        Connected = "connected",
        /// Consent (RFC 7675) is no longer fresh.
        Disconnected = "disconnected",
        /// All pairs failed.
        Failed = "failed",
        /// Shut down.
        Closed = "closed",
    }
}

/// Why a session failed; the stable key groups failures in every table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The name did not resolve.
    Dns,
    /// TCP was refused, reset or timed out.
    Tcp,
    /// QUIC, the transport of HTTP/3, was refused, lost or timed out.
    Quic,
    /// SRT did not come up: nobody answered its handshake in time.
    Srt,
    /// TLS did not come up (certificate, protocol).
    Tls,
    /// The server answered with this HTTP status where another was needed.
    HttpStatus(u16),
    /// The server answered an RTSP request with this status.
    RtspStatus(u16),
    /// The server's message did not follow the protocol: malformed JSON, SDP, HTTP.
    Protocol,
    /// The server offers what throng does not do, and nothing else: a container, an encryption. It
    /// did nothing wrong.
    Unsupported,
    /// The server refused in its own protocol (error code, not authorised).
    Refused,
    /// The room does not exist, or the stream of a server that names it by its signalling.
    NoSuchRoom,
    /// The room has no place for another publisher.
    RoomFull,
    /// The room, or the server, requires a PIN, key or token, and the participant's is missing or
    /// wrong.
    Unauthorized,
    /// The server removed this participant from the room.
    Kicked,
    /// The room was destroyed while this participant was in it.
    RoomEnded,
    /// The server takes none of the codecs that this participant sends.
    CodecRefused,
    /// The server did not answer within the time that the phase may take.
    SignallingTimeout,
    /// The signalling connection closed in the middle of a session.
    SignallingClosed,
    /// No candidate pair worked.
    Ice,
    /// DTLS did not complete.
    Dtls,
    /// Connected, but no media within the time allowed.
    NoMedia,
    /// Media stopped, or ICE consent expired, in the middle of a session.
    MediaLost,
    /// A browser would not let the player's page have the response, or would not send the request
    /// (CORS).
    Cors,
    /// What is encrypted led to clear text: media over http of a page or playlist over https, which
    /// browsers block (mixed content), or an RTSP presentation that moves from rtsps to rtsp.
    MixedContent,
    /// Consent guard: the target, or an address that the server sent, is not allowed.
    NotAllowed,
    /// The generator lacked a file descriptor, port or memory. Counts against the generator, never
    /// against the server.
    Generator,
    /// A defect in throng, or in a library that it uses, ended this participant: it panicked.
    /// Counts against the generator, never against the server.
    InternalError,
    /// The run ended before this participant had joined.
    NotStarted,
    /// The machine of a fleet that played this participant was lost, and its outcome with it.
    /// Nobody failed: what was measured of it until then counts, and what would have followed is
    /// unknown.
    WorkerLost,
}

impl FailureReason {
    /// The stable key of this reason in tables (`http_404`, `ice`, …).
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Dns => "dns".into(),
            Self::Tcp => "tcp".into(),
            Self::Quic => "quic".into(),
            Self::Srt => "srt".into(),
            Self::Tls => "tls".into(),
            Self::HttpStatus(status) => format!("http_{status}"),
            Self::RtspStatus(status) => format!("rtsp_{status}"),
            Self::Protocol => "protocol".into(),
            Self::Unsupported => "unsupported".into(),
            Self::Refused => "refused".into(),
            Self::NoSuchRoom => "no_such_room".into(),
            Self::RoomFull => "room_full".into(),
            Self::Unauthorized => "unauthorized".into(),
            Self::Kicked => "kicked".into(),
            Self::RoomEnded => "room_ended".into(),
            Self::CodecRefused => "codec_refused".into(),
            Self::SignallingTimeout => "signalling_timeout".into(),
            Self::SignallingClosed => "signalling_closed".into(),
            Self::Ice => "ice".into(),
            Self::Dtls => "dtls".into(),
            Self::NoMedia => "no_media".into(),
            Self::MediaLost => "media_lost".into(),
            Self::Cors => "cors".into(),
            Self::MixedContent => "mixed_content".into(),
            Self::NotAllowed => "not_allowed".into(),
            Self::Generator => "generator".into(),
            Self::InternalError => "internal_error".into(),
            Self::NotStarted => "not_started".into(),
            Self::WorkerLost => "worker_lost".into(),
        }
    }

    /// The reason of a stable key: the inverse of [`Self::key`]; `None` when the key is not known.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Some(match key {
            "dns" => Self::Dns,
            "tcp" => Self::Tcp,
            "quic" => Self::Quic,
            "srt" => Self::Srt,
            "tls" => Self::Tls,
            "protocol" => Self::Protocol,
            "unsupported" => Self::Unsupported,
            "refused" => Self::Refused,
            "no_such_room" => Self::NoSuchRoom,
            "room_full" => Self::RoomFull,
            "unauthorized" => Self::Unauthorized,
            "kicked" => Self::Kicked,
            "room_ended" => Self::RoomEnded,
            "codec_refused" => Self::CodecRefused,
            "signalling_timeout" => Self::SignallingTimeout,
            "signalling_closed" => Self::SignallingClosed,
            "ice" => Self::Ice,
            "dtls" => Self::Dtls,
            "no_media" => Self::NoMedia,
            "media_lost" => Self::MediaLost,
            "cors" => Self::Cors,
            "mixed_content" => Self::MixedContent,
            "not_allowed" => Self::NotAllowed,
            "generator" => Self::Generator,
            "internal_error" => Self::InternalError,
            "not_started" => Self::NotStarted,
            "worker_lost" => Self::WorkerLost,
            _ => match key.strip_prefix("rtsp_") {
                Some(status) => Self::RtspStatus(status.parse().ok()?),
                None => Self::HttpStatus(key.strip_prefix("http_")?.parse().ok()?),
            },
        })
    }

    /// Whether it is throng that did not ask, because it may not: another try is none either.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::NotAllowed | Self::MixedContent)
    }

    /// Whether the generator caused it, so that it says nothing about the server.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Generator | Self::InternalError | Self::WorkerLost)
    }

    /// How the server refused; `None` if it did not, as far as was seen.
    #[must_use]
    pub fn refusal(&self) -> Option<RefusalKind> {
        match self {
            Self::HttpStatus(status) => RefusalKind::of_http(*status),
            Self::RtspStatus(status) => RefusalKind::of_rtsp(*status),
            Self::RoomFull => Some(RefusalKind::Full),
            Self::Unauthorized => Some(RefusalKind::Credentials),
            Self::NoSuchRoom => Some(RefusalKind::Missing),
            Self::Refused | Self::SignallingClosed => Some(RefusalKind::Other),
            Self::Dns
            | Self::Tcp
            | Self::Quic
            | Self::Srt
            | Self::Tls
            | Self::Protocol
            | Self::Unsupported
            | Self::Kicked
            | Self::RoomEnded
            | Self::CodecRefused
            | Self::SignallingTimeout
            | Self::Ice
            | Self::Dtls
            | Self::NoMedia
            | Self::MediaLost
            | Self::Cors
            | Self::MixedContent
            | Self::NotAllowed
            | Self::Generator
            | Self::InternalError
            | Self::NotStarted
            | Self::WorkerLost => None,
        }
    }

    /// Whether the target itself is the reason: it is not there, is not what the URL names, or
    /// wants other credentials. One participant meets it as many do, so that no load explains it.
    /// Refusals that a full server gives are not among them, nor is silence.
    #[must_use]
    pub fn is_of_target(&self) -> bool {
        self.refusal()
            .map_or_else(|| self.is_of_target_without_refusal(), RefusalKind::is_of_target)
    }

    /// The same of what is no refusal.
    fn is_of_target_without_refusal(&self) -> bool {
        match self {
            Self::Dns
            | Self::Tcp
            | Self::Quic
            | Self::Srt
            | Self::Tls
            | Self::Unsupported
            | Self::CodecRefused
            | Self::Cors
            | Self::MixedContent
            | Self::NotAllowed => true,
            Self::HttpStatus(_)
            | Self::RtspStatus(_)
            | Self::Protocol
            | Self::Refused
            | Self::NoSuchRoom
            | Self::RoomFull
            | Self::Unauthorized
            | Self::Kicked
            | Self::RoomEnded
            | Self::SignallingTimeout
            | Self::SignallingClosed
            | Self::Ice
            | Self::Dtls
            | Self::NoMedia
            | Self::MediaLost
            | Self::Generator
            | Self::InternalError
            | Self::NotStarted
            | Self::WorkerLost => false,
        }
    }

    /// Whether the observation of the participant ended, and not its session by a failure.
    #[must_use]
    pub fn is_censored(&self) -> bool {
        matches!(self, Self::NotStarted | Self::WorkerLost)
    }
}

/// A failure with its details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it was.
    pub reason: FailureReason,
    /// What exactly happened: which server, which message, which offset.
    pub detail: Detail,
}

impl Failure {
    /// A failure of `reason` with its `detail`.
    pub fn new(reason: FailureReason, detail: impl Into<Detail>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.key(), self.detail)
    }
}

/// How a participant's session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It stayed for as long as planned and left in an orderly way.
    Completed,
    /// It failed.
    Failed(Failure),
}

impl Outcome {
    /// It was asked to leave before it had joined; `detail` says before what.
    #[must_use]
    pub fn not_started(detail: &'static str) -> Self {
        Self::Failed(Failure::new(FailureReason::NotStarted, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_the_key_that_it_is_written_by_and_a_column_of_it() {
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, index, "{}", phase.key());
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.key());
            assert_eq!(phase.column(), format!("{}_us", phase.key()));
        }
    }

    #[test]
    fn every_reason_is_found_again_by_its_key() {
        use FailureReason as F;
        for reason in [
            F::Dns,
            F::Tcp,
            F::Quic,
            F::Srt,
            F::Tls,
            F::HttpStatus(404),
            F::RtspStatus(461),
            F::Protocol,
            F::Unsupported,
            F::Refused,
            F::NoSuchRoom,
            F::RoomFull,
            F::Unauthorized,
            F::Kicked,
            F::CodecRefused,
            F::SignallingTimeout,
            F::SignallingClosed,
            F::Ice,
            F::Dtls,
            F::NoMedia,
            F::MediaLost,
            F::Cors,
            F::MixedContent,
            F::NotAllowed,
            F::Generator,
            F::InternalError,
            F::NotStarted,
            F::WorkerLost,
        ] {
            assert_eq!(FailureReason::from_key(&reason.key()), Some(reason));
        }
        for rubbish in ["", "http_", "http_70000", "nothing"] {
            assert_eq!(FailureReason::from_key(rubbish), None);
        }
    }

    #[test]
    fn what_any_load_meets_is_of_the_target_and_what_a_full_server_says_is_not() {
        use FailureReason as F;
        for reason in [
            F::Tcp,
            F::Srt,
            F::Dns,
            F::CodecRefused,
            F::Unauthorized,
            F::HttpStatus(401),
            F::HttpStatus(407),
            F::HttpStatus(404),
            F::RtspStatus(404),
            F::NoSuchRoom,
        ] {
            assert!(reason.is_of_target(), "{reason:?}");
        }
        for reason in [
            F::HttpStatus(403),
            F::RtspStatus(403),
            F::HttpStatus(429),
            F::HttpStatus(500),
            F::HttpStatus(503),
            F::RoomFull,
            F::Refused,
            F::SignallingTimeout,
            F::Ice,
            F::Generator,
        ] {
            assert!(!reason.is_of_target(), "{reason:?}");
        }
    }

    #[test]
    fn a_refusal_has_one_meaning_in_all_protocols() {
        use FailureReason as F;
        for (reason, expect) in [
            (F::HttpStatus(429), Some(RefusalKind::RatePerAddress)),
            (F::HttpStatus(503), Some(RefusalKind::Full)),
            (F::RtspStatus(453), Some(RefusalKind::Full)),
            (F::RoomFull, Some(RefusalKind::Full)),
            (F::HttpStatus(403), Some(RefusalKind::Forbidden)),
            (F::RtspStatus(403), Some(RefusalKind::Forbidden)),
            (F::Unauthorized, Some(RefusalKind::Credentials)),
            (F::HttpStatus(404), Some(RefusalKind::Missing)),
            (F::RtspStatus(404), Some(RefusalKind::Missing)),
            (F::HttpStatus(409), Some(RefusalKind::Other)),
            (F::RtspStatus(461), Some(RefusalKind::Unsupported)),
            (F::Refused, Some(RefusalKind::Other)),
            (F::HttpStatus(302), None),
            (F::Ice, None),
            (F::Generator, None),
        ] {
            assert_eq!(reason.refusal(), expect, "{reason:?}");
        }
    }
}
