//! One run on many machines: workers play shares of one plan, and their rows become the rows of one
//! run.
//!
//! [`coordinator`] and [`worker`] are the two ends of the bus, a NATS server, and own its
//! connections. What they decide is in modules that get times and bytes as arguments, and know no
//! sockets and clocks: who is lost ([`Ledger`]), what the rows of all mean ([`merge`]), how far two
//! clocks are apart ([`clock`], [`disciplined`]), who plays whom ([`shares`], [`reassign`]), what
//! is sent again ([`spool`], [`inbox`]). [`spool_folder`] keeps on disk what was not sent.

mod error;
pub use error::FleetError;

pub mod message;
pub mod reassign;
pub mod shares;
pub mod wire;

pub mod clock;
pub mod disciplined;
mod host_clock;
pub use host_clock::HostClock;
mod steady_clock;
pub use steady_clock::SteadyClock;

pub mod inbox;
pub mod merge;
pub mod spool;
pub mod spool_file;
pub mod spool_folder;

mod bus;
pub use bus::{BusConfig, MayBePlain, is_run_name};

pub mod coordinator;
pub use coordinator::{
    Coordinator, FleetEnd, FleetEvent, FleetRun, GatherConfig, Ledger, Member, Notice, NoticeKind,
    Wishes,
};

pub mod worker;
pub use worker::{
    Assignment, FleetClock, LateDelivery, Part, Say, SpoolConfig, Undelivered, Wanted, Worker,
};

#[cfg(test)]
mod rows_tests;
