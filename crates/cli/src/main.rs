//! The `throng` command: flags in, exit code out.

mod args;
mod background;
mod canary;
mod commands;
mod console;
#[cfg(test)]
mod docs_tests;
mod doctor;
mod exporter;
mod find;
mod fleet;
mod generator;
mod http_server;
mod init;
mod kept;
mod live;
mod live_hosts;
mod matrix;
mod media;
mod named_file;
mod oven_rtc_tester;
mod page;
mod permission;
mod report;
mod rolling_objectives;
mod run;
mod run_id;
mod scenario;
mod secrets;
mod served;
mod session;
mod store_writer;
mod tables;
mod watch;
mod watchers;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Arguments;
use crate::console::{Exit, say, say_lines};

fn main() -> ExitCode {
    // What a panic or an error leaves, too.
    let _ends = throng_process::EndsAll;
    if let Err(error) = throng_process::end_with_parent() {
        say(&format!("throng: the one that started this has ended: {error}"));
        console::wait();
        return Exit::Interrupted.into();
    }
    let arguments = match Arguments::try_parse_from(oven_rtc_tester::translate(std::env::args())) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers, not errors.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Met };
            answer(&error);
            return exit.into();
        }
    };
    trace();
    let done = commands::perform(&arguments.command);
    let exit = done.unwrap_or_else(|stop| {
        // What passed in the run leaves room for why it ended.
        console::wait();
        say_lines(&format!("throng: {:#}", stop.error));
        stop.exit
    });
    console::wait();
    exit.into()
}

/// Prints what clap says: help, the version, or what is wrong with the command line.
fn answer(error: &clap::Error) {
    use std::io::{IsTerminal, Write};
    let is_plain = std::env::var_os("NO_COLOR").is_some() || console::is_dumb();
    let text = |is_terminal: bool| {
        let text = args::words_of(error, is_terminal && !is_plain);
        if error.use_stderr() { secrets::hidden_in(&text, std::env::args().skip(1)) } else { text }
    };
    // A closed pipe is not an error.
    let _ = if error.use_stderr() {
        let mut to = std::io::stderr().lock();
        to.write_all(text(to.is_terminal()).as_bytes())
    } else {
        let mut to = std::io::stdout().lock();
        to.write_all(text(to.is_terminal()).as_bytes())
    };
}

/// Logs are for finding faults in throng itself: `RUST_LOG=throng=debug`.
fn trace() {
    use tracing_subscriber::EnvFilter;
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        // Its own colours would not pass the gate.
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(false)
            .with_writer(|| console::LogWriter)
            .init();
    }
}
