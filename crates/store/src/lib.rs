//! The run folder: `run.db` and what lies beside it. The only crate that knows SQL.
//!
//! The database is written as the run goes, one transaction a second, so that a run that is cut off (Ctrl-C,
//! SIGTERM, `kill -9`, a full disk) leaves a folder that reads back to its last committed second and says that it
//! is partial. The schema is described in `docs/run-folder.md`.

mod cells;
mod table;

mod canary;
mod host;
mod info;
mod rows;
mod schema;
mod search;

mod error;
pub use error::StoreError;

mod waiting;
mod writer;
pub use writer::RunWriter;

mod decoded;
mod reader;
mod selected;
pub use selected::Table;

mod folder;
pub use folder::{FORMAT, HostFile, RunFolder};
