//! The types that all other crates share: the phases of a session, what a track measures in a
//! second, and the rows of a run. Formats only: no paths, no sockets, no clocks.

mod time;
// `self`, because a dependency has the same name.
pub use self::time::RunTime;

mod distribution;
pub use distribution::{Distribution, DistributionError, Quantiles};

mod detail;
pub use detail::Detail;

mod keyed;

mod lifecycle;
pub use lifecycle::{Failure, FailureReason, IceState, Outcome, Phase};

mod refusal;
pub use refusal::RefusalKind;

mod capture;
pub use capture::{
    CaptureBasis, ClockDisagreement, OneWayDelay, SENDER_CLOCK_EVENT, SENDER_CLOCK_PLACE,
    TIME_JUMP_EVENT, TIME_JUMP_PLACE,
};

mod measure;
pub use measure::{
    ChatCounters, Counter, Counters, HttpRequestCounters, PlaybackCounters, SentCounters, SumUnit,
    TrackCounters,
};

mod track;
pub use track::{
    Codec, INNER_MARKERS_EVENT, INNER_MARKERS_PLACE, MediaKind, Missing, TrackId, TrackInterval,
};

mod aggregated;
pub use aggregated::{AggregatedKind, AggregatedTracks, RowSelector};

mod playback;
pub use playback::{LiveInterval, PlaybackInterval, PlaybackRow, PlayerRow, PlayerStalls, Players};

mod latency;
pub use latency::{DATES_AHEAD_US_MAX, LatencyBasis, LatencyVote};

mod chat;
pub use chat::{ChatInterval, ChatRow};

mod http_requests;
pub use http_requests::{
    HttpRequestKey, HttpRequestRow, HttpRequestTotals, NoResponse, RequestOutcome,
};

pub mod fleet;

mod sent;
pub use sent::SentInterval;

mod experience;
pub use experience::{BadIf, Clause, ExperienceRow, SecondClosed};

mod unloaded;
pub use unloaded::Unloaded;

mod received;
pub use received::Received;

mod second_row;
pub use second_row::SecondRow;

mod hold;
pub use hold::{Goal, HoldOutcome, HoldRow, Purpose};

mod layer;
pub use layer::{Layer, LayerSwitch};

mod relief;
pub use relief::Relief;

mod policy;
pub use policy::{SubscribePolicy, VcardPolicy};

mod plan;
pub use plan::{PlannedCohort, PlannedJoin, RunPlan};

mod table;
pub use table::{CellType, TableCell, TableColumn};

mod observation;
pub use observation::{
    CodedFrame, MediaPath, Observation, RefusedDestination, from_tap_kind, tap_kind,
};

mod shown_url;
pub use shown_url::Url;

pub mod calendar;
pub mod canary;
pub mod host;
pub mod limits;
pub mod masked;
pub mod pack;
pub mod percent;
pub mod run;
pub mod seed;
pub mod shell;
pub mod units;
pub mod untrusted;
