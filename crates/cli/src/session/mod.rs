//! What `throng run` and `throng find` share. A command makes every check that can refuse the run
//! ([`Prepared`]), starts all parts of the run ([`Session`]), loops until its end, and finishes:
//! stop, store, report.

mod prepare;
mod warnings;

mod engine;
mod generator;
mod participants;
mod start;

mod finish;

pub(crate) use engine::{EnginePart, Joins, start_engine};
pub(crate) use generator::Generator;
pub(crate) use participants::read_secrets;
pub(crate) use prepare::Prepared;
pub(crate) use start::Session;
pub(crate) use warnings::{foreign_source, print_warnings, source_ips, warnings};
