//! The words that every other room shares: what a participant goes through, what a track is seen to do in a
//! second, and the rows that a run is made of. Formats only: no paths, no sockets, no clocks.

mod time;
pub use time::RunTime;

mod distribution;
pub use distribution::{Distribution, DistributionError, Quantiles};

mod life;
pub use life::{Failure, FailureReason, IceState, Life, Outcome, Phase};

mod capture;
pub use capture::{CaptureBasis, OneWayDelay, SENDER_CLOCK_EVENT, SENDER_CLOCK_PLACE};

mod track;
pub use track::{Codec, MediaKind, TrackCounters, TrackId, TrackInterval, TrackTotals};

mod folded;
pub use folded::{FoldedKind, FoldedTracks, Sieve};

mod sent;
pub use sent::{SentCounters, SentInterval};

mod experience;
pub use experience::{BadIf, Clause, ExperienceRow};

mod hold;
pub use hold::{Goal, HoldRow, Passed, Purpose};

mod layer;
pub use layer::{Layer, LayerSwitch};

mod seen;
pub use seen::{CodedFrame, MediaPath, Observation, Refused, of_tap_kind, tap_kind};

pub mod canary;
pub mod foreign;
pub mod host;
pub mod limits;
pub mod pack;
pub mod run;
pub mod units;
