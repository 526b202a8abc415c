//! The run folder: `run.db` and the files next to it. The only crate that uses SQL.
//!
//! The database is written during the run, one transaction a second, so that an interrupted run
//! (Ctrl-C, SIGTERM, SIGHUP, `kill -9`, a full disk) leaves a folder that reads back to its last
//! committed second and is marked as partial. The schema is described in `docs/run-folder.md`.

mod cells;
mod opened;
mod table;

mod canary;
mod chat;
mod host;
mod http_requests;
mod info;
mod plan;
mod playback;
mod rows;
mod schema;
mod search;

mod error;
pub use error::StoreError;

mod waiting;
mod writer;
pub use writer::RunWriter;

mod decoded;
mod exported;
pub use exported::StoredTable;
mod reader;
mod selected;
pub use selected::Table;

mod rebuilt;
pub use rebuilt::RebuiltRun;

mod folder;
pub use folder::{FORMAT, HostFile, RunFolder, create_new_private, create_private};
