//! What `throng run` and `throng find` share. A command checks everything that can refuse the run ([`Prepared`]), starts
//! all that takes part in it ([`Session`]), loops until its own end, and finishes: stop, store, report.

mod prepare;
pub(crate) use prepare::Prepared;

mod warnings;
pub(crate) use warnings::{foreign_source, print_warnings, source_ips, warnings};

mod engine;
pub(crate) use engine::{Joins, start_engine};

mod participants;

mod start;
pub(crate) use start::Session;

mod finish;
