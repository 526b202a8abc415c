//! The messages of LiveKit's signalling that a participant needs, by the field numbers of its
//! public protocol definition (`livekit_rtc.proto`, `livekit_models.proto`, protocol version 16).
//! Fields that are not declared here are skipped when a message is decoded, as in any protobuf
//! decoder.

use prost::{Enumeration, Message, Oneof};

/// A message of the participant.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SignalRequest {
    #[prost(oneof = "Request", tags = "1, 2, 3, 4, 5, 6, 7, 8, 14, 16")]
    pub(super) message: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Request {
    #[prost(message, tag = "1")]
    Offer(SessionDescription),
    #[prost(message, tag = "2")]
    Answer(SessionDescription),
    #[prost(message, tag = "3")]
    Trickle(Trickle),
    #[prost(message, tag = "4")]
    AddTrack(AddTrack),
    #[prost(message, tag = "5")]
    Mute(MuteTrack),
    #[prost(message, tag = "6")]
    Subscription(UpdateSubscription),
    #[prost(message, tag = "7")]
    TrackSetting(UpdateTrackSettings),
    #[prost(message, tag = "8")]
    Leave(Leave),
    #[prost(message, tag = "16")]
    Ping(Ping),
}

/// A message of the server.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SignalResponse {
    #[prost(oneof = "Response", tags = "1, 2, 3, 4, 5, 6, 8, 9, 13, 15, 17, 20, 21, 22")]
    pub(super) message: Option<Response>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Response {
    #[prost(message, tag = "1")]
    Join(Box<Join>),
    #[prost(message, tag = "2")]
    Answer(SessionDescription),
    #[prost(message, tag = "3")]
    Offer(SessionDescription),
    #[prost(message, tag = "4")]
    Trickle(Trickle),
    #[prost(message, tag = "5")]
    Update(ParticipantUpdate),
    #[prost(message, tag = "6")]
    TrackPublished(TrackPublished),
    #[prost(message, tag = "8")]
    Leave(Leave),
    #[prost(message, tag = "9")]
    Mute(MuteTrack),
    #[prost(message, tag = "13")]
    StreamState(StreamStateUpdate),
    #[prost(message, tag = "15")]
    SubscriptionPermission(SubscriptionPermissionUpdate),
    #[prost(message, tag = "17")]
    TrackUnpublished(TrackUnpublished),
    #[prost(message, tag = "20")]
    Pong(Pong),
    #[prost(message, tag = "21")]
    Subscription(SubscriptionResponse),
    #[prost(message, tag = "22")]
    Request(RequestResponse),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionDescription {
    /// `offer` or `answer`.
    #[prost(string, tag = "1")]
    pub(super) kind: String,
    #[prost(string, tag = "2")]
    pub(super) sdp: String,
    /// An answer repeats the id of its offer.
    #[prost(uint32, tag = "3")]
    pub(super) id: u32,
}

/// Which of the two peer connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum SignalTarget {
    Publisher = 0,
    Subscriber = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Trickle {
    /// A JSON object: W3C `RTCIceCandidateInit`.
    #[prost(string, tag = "1")]
    pub(super) candidate_init: String,
    #[prost(enumeration = "SignalTarget", tag = "2")]
    pub(super) target: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum TrackType {
    Audio = 0,
    Video = 1,
    Data = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum TrackSource {
    Unknown = 0,
    Camera = 1,
    Microphone = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum VideoQuality {
    Low = 0,
    Medium = 1,
    High = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VideoLayer {
    #[prost(enumeration = "VideoQuality", tag = "1")]
    pub(super) quality: i32,
    #[prost(uint32, tag = "2")]
    pub(super) width: u32,
    #[prost(uint32, tag = "3")]
    pub(super) height: u32,
    /// Bits per second.
    #[prost(uint32, tag = "4")]
    pub(super) bitrate: u32,
    #[prost(uint32, tag = "5")]
    pub(super) ssrc: u32,
    #[prost(string, tag = "7")]
    pub(super) rid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AddTrack {
    /// The track's id in the local SDP (`a=msid`).
    #[prost(string, tag = "1")]
    pub(super) cid: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(enumeration = "TrackType", tag = "3")]
    pub(super) kind: i32,
    #[prost(uint32, tag = "4")]
    pub(super) width: u32,
    #[prost(uint32, tag = "5")]
    pub(super) height: u32,
    #[prost(enumeration = "TrackSource", tag = "8")]
    pub(super) source: i32,
    #[prost(message, repeated, tag = "9")]
    pub(super) layers: Vec<VideoLayer>,
    /// No redundant audio (RFC 2198).
    #[prost(bool, tag = "13")]
    pub(super) disable_red: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MuteTrack {
    #[prost(string, tag = "1")]
    pub(super) sid: String,
    #[prost(bool, tag = "2")]
    pub(super) muted: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateSubscription {
    #[prost(string, repeated, tag = "1")]
    pub(super) track_sids: Vec<String>,
    #[prost(bool, tag = "2")]
    pub(super) subscribe: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateTrackSettings {
    #[prost(string, repeated, tag = "1")]
    pub(super) track_sids: Vec<String>,
    #[prost(bool, tag = "3")]
    pub(super) disabled: bool,
    #[prost(enumeration = "VideoQuality", tag = "4")]
    pub(super) quality: i32,
}

/// `DisconnectReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum DisconnectReason {
    Unknown = 0,
    ClientInitiated = 1,
    DuplicateIdentity = 2,
    ServerShutdown = 3,
    ParticipantRemoved = 4,
    RoomDeleted = 5,
    StateMismatch = 6,
    JoinFailure = 7,
    Migration = 8,
    SignalClose = 9,
    RoomClosed = 10,
    UserUnavailable = 11,
    UserRejected = 12,
    SipTrunkFailure = 13,
    ConnectionTimeout = 14,
    MediaFailure = 15,
    AgentError = 16,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Leave {
    #[prost(enumeration = "DisconnectReason", tag = "2")]
    pub(super) reason: i32,
    /// 0: leave for good; 1 and 2: reconnect.
    #[prost(int32, tag = "3")]
    pub(super) action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Ping {
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "1")]
    pub(super) timestamp: i64,
    /// Milliseconds, of the previous ping.
    #[prost(int64, tag = "2")]
    pub(super) rtt: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pong {
    #[prost(int64, tag = "1")]
    pub(super) last_ping_timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Join {
    #[prost(message, optional, tag = "2")]
    pub(super) participant: Option<ParticipantInfo>,
    #[prost(message, repeated, tag = "3")]
    pub(super) other_participants: Vec<ParticipantInfo>,
    #[prost(string, tag = "4")]
    pub(super) server_version: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) ice_servers: Vec<IceServer>,
    /// Seconds without a pong after which the server counts as lost.
    #[prost(int32, tag = "10")]
    pub(super) ping_timeout: i32,
    /// Seconds from ping to ping.
    #[prost(int32, tag = "11")]
    pub(super) ping_interval: i32,
}

/// STUN and TURN servers for participants.
#[derive(Clone, PartialEq, Message)]
pub(super) struct IceServer {
    #[prost(string, repeated, tag = "1")]
    pub(super) urls: Vec<String>,
    #[prost(string, tag = "2")]
    pub(super) username: String,
    #[prost(string, tag = "3")]
    pub(super) credential: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParticipantUpdate {
    #[prost(message, repeated, tag = "1")]
    pub(super) participants: Vec<ParticipantInfo>,
}

/// `ParticipantInfo.State.DISCONNECTED`.
pub(super) const DISCONNECTED: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParticipantInfo {
    #[prost(string, tag = "1")]
    pub(super) sid: String,
    #[prost(string, tag = "2")]
    pub(super) identity: String,
    #[prost(int32, tag = "3")]
    pub(super) state: i32,
    #[prost(message, repeated, tag = "4")]
    pub(super) tracks: Vec<TrackInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackInfo {
    #[prost(string, tag = "1")]
    pub(super) sid: String,
    #[prost(enumeration = "TrackType", tag = "2")]
    pub(super) kind: i32,
    #[prost(bool, tag = "4")]
    pub(super) muted: bool,
    #[prost(message, repeated, tag = "10")]
    pub(super) layers: Vec<VideoLayer>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackPublished {
    #[prost(string, tag = "1")]
    pub(super) cid: String,
    #[prost(message, optional, tag = "2")]
    pub(super) track: Option<TrackInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackUnpublished {
    #[prost(string, tag = "1")]
    pub(super) track_sid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamStateUpdate {
    #[prost(message, repeated, tag = "1")]
    pub(super) stream_states: Vec<StreamStateInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StreamStateInfo {
    #[prost(string, tag = "2")]
    pub(super) track_sid: String,
    /// 0: active, 1: paused for lack of bandwidth.
    #[prost(int32, tag = "3")]
    pub(super) state: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SubscriptionPermissionUpdate {
    #[prost(string, tag = "2")]
    pub(super) track_sid: String,
    #[prost(bool, tag = "3")]
    pub(super) allowed: bool,
}

/// The subscription to a track failed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SubscriptionResponse {
    #[prost(string, tag = "1")]
    pub(super) track_sid: String,
    /// 1: no codec in common, 2: no such track.
    #[prost(int32, tag = "2")]
    pub(super) error: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestResponse {
    /// 0: done, 2: not allowed, 3: limit exceeded, 4: queued.
    #[prost(int32, tag = "2")]
    pub(super) reason: i32,
    #[prost(string, tag = "3")]
    pub(super) message: String,
}
