//! Gives participants sockets and the time, and collects what they see.

mod config;
pub use config::{Casting, ConsentCheck, Guards, Join, Reach, RunConfig, TlsOptions};

mod run;
pub use run::{EngineError, RunEnd, RunHandle, run};

pub mod live;
pub use live::Live;
