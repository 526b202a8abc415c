//! The benchmarks of docs/measurements: the cost of a generator on a real server, measured from
//! outside.

pub mod machine;
pub mod process;
pub mod stream;

pub mod generator;
pub mod measure;

pub mod download;

pub mod conference;
pub mod floor;
pub mod joins;
pub mod profile;
pub mod server;
pub mod stage;

pub mod page;
pub mod results;
