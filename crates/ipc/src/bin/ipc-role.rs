//! A process that plays one role of a measurement and nothing else, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    if throng_ipc::run_role() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
