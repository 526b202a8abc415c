//! Quality meters: one meter, one file. [`TrackMeter`] is what a receiver owns for each track; it hands every packet
//! to the small meters beside it and adds up what they say.

mod track;
pub use track::{Reception, TrackConfig, TrackMeter};

mod packet;
pub use packet::{CaptureBasis, Captured, Packet};

mod wall_clock;
pub use wall_clock::WallClock;
