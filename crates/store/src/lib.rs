//! The run folder: `run.db` and what lies beside it. The only crate that knows SQL.
//!
//! The database is written as the run goes, one transaction a second, so that a run that is cut off (Ctrl-C,
//! SIGTERM, `kill -9`, a full disk) leaves a folder that reads back to its last committed second and says that it
//! is partial. The schema is described in `docs/run-folder.md`.

mod schema;

mod folder;
pub use folder::{FORMAT, HostFile, RunFolder};

mod canary;
mod decoded;
mod error;
pub use error::StoreError;

mod writer;
pub use writer::RunWriter;

mod waiting;

mod rows;

mod host;

mod search;

mod reader;

mod selected;
pub use selected::Table;
