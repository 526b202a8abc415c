//! The description of a load test: scenario file, crowd, arrivals, objectives, consent, plan.
//!
//! ```text
//! text + overrides -> Scenario -> Plan -> Share
//! ```
//! Pure: no sockets, no clock, no file access. The caller fetches secrets and consent proofs.

mod diagnostic;
pub use diagnostic::{Diagnostic, Location, Origin, ScenarioError};

mod suggestion;

mod target;
pub use target::{
    Account, ApiKey, Carriage, Endpoint, IceTransportPolicy, JanusId, Part, Place, Protocol,
    RelayTransport, RtspTransport, StunServer, Target, TargetError, TurnHost, TurnServer, TurnUri,
    TurnUriError, secrets_of, target_examples,
};

mod url_template;
pub use url_template::{UrlTemplate, UrlTemplateError, UrlValues, UrlVariable};

mod secret;
pub use secret::{Secret, TokenSource};

mod masked;
pub use masked::{masked_override, masked_text, masked_toml, names_a_secret};

mod network;
pub use network::{AddressRange, Network, NetworkError};

mod scenario;
pub use scenario::{Cohort, Scenario};

mod run;
pub use run::{Caps, OutputConfig, RunTimes, Stream};

mod flags;
pub use flags::{Override, ScenarioFlags};

pub mod arrival;
pub use arrival::Arrival;

mod watch;
pub use watch::{Agent, Moment, ProfileRequest, Watch, WatchTarget};

mod canary;
pub use canary::Canary;
mod tap;
pub use tap::{Tap, TapSelection};

mod role;
pub use role::{
    CARD_BITS_PER_S, CARD_SIZES, LayerRequest, MediaCodec, MediaFile, PublishConfig, Role,
    SubscribePolicy, Subscription,
};

mod http;
pub use http::{CredentialsPolicy, HttpMix, HttpVersionPolicy};
mod chat;
pub use chat::{
    ChatConfig, ChatHttp, ChatMoment, ChatRenames, ChatTemplate, ChatText, ChatTextError,
    ChatVariable, JoinStep, KeepAlive, Pong, VcardPolicy, chat_pattern_is_in,
};
mod peers;
pub use peers::{PeerConfig, PeerEngine, PeerPreset};
mod player;
pub use player::{LivePolicy, MediaFormat, PlayerConfig, RenditionPolicy};
mod recorded_page;
pub use recorded_page::{OriginRule, RecordedPage};
pub mod har;
mod playback;
pub use playback::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, UserHabits,
};

mod script;
pub use script::{Action, ScriptStep};

mod conversation;
pub use conversation::{Conversation, Talkspurt};

mod room;
pub use room::{ROOMS_MAX, RoomConfig};

mod churn;
pub use churn::{Reconnect, Stay, StayTime};

pub mod objective;
pub use objective::{
    Metric, Objective, ObjectiveError, ObjectiveOutcome, Statistic, Threshold, bad_if,
};

mod streams;
pub use streams::{StreamDistribution, Streams};

mod destination;
pub use destination::Destination;

mod plan;
pub use plan::{ExpectedLoad, Join, Needs, OWN_DESCRIPTORS, Plan};

mod describe;
mod run_plan;

mod difference;
pub use difference::{KeyDifference, differences};

mod share;
pub use share::{Share, ShareError};
mod sockets;

mod source;
pub use source::Source;

pub mod consent;
pub use consent::{
    AddressPolicy, AgentProof, AgentProofError, ConsentProof, ConsentProofError, ConsentSecret,
    ConsentSecretError, IpProtocol, MayReach, NamedPlace, PermitReason, PortRange, PortRangeError,
    Refusal,
};

pub mod matrix;

pub mod prices;

mod keys;
mod read;
pub mod units;

mod file;
pub use file::json_schema;
