//! What `throng run` and `throng find` share. A command makes every check that can refuse the run
//! ([`Prepared`]), starts all parts of the run ([`Session`]), loops until its end, and finishes:
//! stop, store, report.

mod describe;
mod prepare;
mod warnings;

mod engine;
mod marks;
mod participants;
mod start;
mod tap;

mod finish;

pub(crate) use describe::describe;
pub(crate) use engine::{EnginePart, Joins, start_engine, start_engine_of};
pub(crate) use marks::keep_marks;
pub(crate) use participants::read_secrets;
pub(crate) use prepare::Prepared;
pub(crate) use start::Session;
pub(crate) use warnings::{foreign_source, needs, print_warnings, source_ips, warnings};
