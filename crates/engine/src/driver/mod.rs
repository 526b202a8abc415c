//! Drives participants: one thread a core, each with its own participants, sockets and timers; nothing shared.

mod reports;
pub(crate) use reports::{BATCHES_MAX, Reports, Seen};

mod timers;

mod alarm;

mod hub;
pub(crate) use hub::{Hub, HubConfig};

mod guard;
pub(crate) use guard::hush;

mod joins;
pub(crate) use joins::Joins;

mod seat;

mod seats;

mod worker;
pub(crate) use worker::{Duty, Worker};

mod pulse;
