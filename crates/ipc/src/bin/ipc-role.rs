//! A process that runs one role of a measurement, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    if throng_ipc::run_role() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
