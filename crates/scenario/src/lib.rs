//! What to do: the scenario file, the crowd, arrivals, objectives, consent, the plan.
//!
//! ```text
//! text + overrides -> Scenario -> Plan -> Share
//! ```
//! Pure: no sockets, no clock, no paths. Secrets and consent proofs are named here and fetched by the caller.

mod problem;
pub use problem::{Origin, Place, Problem, ScenarioError};

mod target;
pub use target::{
    ApiKey, Endpoint, JanusId, Protocol, StunServer, Target, TargetError, TokenSource, Transport,
};

mod names;
pub use names::{Name, UrlNames, Whose};

mod secret;
pub use secret::Secret;

mod network;
pub use network::{AddressRange, Network, NetworkError};

mod scenario;
pub use scenario::{Caps, Cohort, OutputTo, Override, QuickForm, RunTimes, Scenario, Stream};

pub mod arrival;
pub use arrival::Arrival;

mod watch;
pub use watch::{Agent, Moment, ProfileWish, Watch, Watched};

mod canary;
pub use canary::Canary;
mod tap;
pub use tap::{Tap, Tapped};

mod role;
pub use role::{CARD_BITS_PER_S, CARD_SIZES, LayerWish, MediaCodec, MediaFile, Publish, Role, Subscribe};

mod script;
pub use script::{Act, Cue};

mod talk;
pub use talk::{Talk, Turn};

mod room;
pub use room::{NewRoom, ROOMS_MAX};

mod churn;
pub use churn::{Reconnect, Stay, StayTime};

pub mod objective;
pub use objective::{Metric, Objective, ObjectiveError, Statistic, Threshold, Verdict, bad_if};

mod streams;
pub use streams::{Spread, Streams};

mod way;
pub use way::Way;

mod plan;
pub use plan::{ExpectedLoad, Join, Needs, Plan};

mod describe;

mod share;
pub use share::{Share, ShareError};

pub mod consent;
pub use consent::{
    AgentProof, AgentProofError, ConsentProof, ConsentProofError, ConsentSecret, ConsentSecretError, Permit,
    Reach, Refusal,
};

mod read;
pub mod units;

mod file;
pub use file::json_schema;
