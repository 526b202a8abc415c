//! The `throng` command: flags in, exit code out; the wiring between the crates.

mod args;
mod calibrate;
mod canary;
mod commands;
mod compare;
mod consent;
mod console;
mod decode;
#[cfg(test)]
mod docs_tests;
mod find;
mod fleet;
mod generator;
mod history;
mod ipc;
mod kept;
mod live;
mod live_hosts;
mod matrix;
mod media;
mod oven_rtc_tester;
mod permission;
mod price;
mod profile;
mod report;
mod requests;
mod ring;
mod rolling_objectives;
mod run;
mod run_id;
mod scenario;
mod secrets;
mod session;
mod stage;
mod store_writer;
mod watch;
mod watchers;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command, Format};
use crate::console::{CliError, Exit, print, say, say_lines};

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
    let done = match arguments.command {
        Command::Run(command) => match &command.resume {
            Some(run) => fleet::resume(run, &command.common),
            None => scenario::of_file(&command)
                .and_then(|(s, common)| run::run(&s, &common, kept::Asked::run(&command))),
        },
        Command::View(command) => scenario::of_flags(&command)
            .and_then(|(s, common)| run::run(&s, &common, kept::Asked::view(&common))),
        Command::Find(command) => find::find(&command),
        Command::Matrix(command) => matrix::matrix(&command),
        Command::Prove(command) => matrix::prove(&command),
        Command::Compare(command) => compare::compare(&command),
        Command::Trend(command) => compare::trend(&command),
        Command::Check(command) => commands::check(&command),
        Command::Report(command) => commands::remake(&command),
        Command::Requests(command) => requests::requests(&command),
        Command::Price(command) => price::price(&command),
        Command::Runs(command) => history::runs(&command),
        Command::Rerun(command) => commands::rerun(&command),
        Command::Worker(command) => worker::worker(&command),
        Command::Fleet(command) => fleet::fleet(&command),
        Command::Stage(command) => stage::stage(&command),
        Command::Calibrate(command) => calibrate::calibrate(&command),
        Command::Ipc(command) => ipc::measure(&command),
        Command::IpcRole => ipc::role(),
        Command::Watch(command) => watch::watch(&command),
        Command::Decode(command) => decode::decode(&command),
        Command::Tap(command) => commands::tap(&command),
        Command::Ring(command) => ring::ring(&command),
        Command::Profile(command) => profile::profile(&command),
        Command::Media(command) => media::media(&command),
        Command::Consent(command) => consent::make(&command),
        Command::Schema(command) => schema(command.format),
    };
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

fn schema(format: Format) -> Result<Exit, CliError> {
    let schema = match format {
        Format::Scenario => throng_scenario::json_schema().to_value(),
        Format::Summary => throng_report::json_schema(),
        Format::Matrix => throng_report::matrix::json_schema(),
        Format::Compare => throng_report::compare::json_schema(),
        Format::Trend => throng_report::trend::json_schema(),
        Format::Price => throng_report::price::json_schema(),
        Format::Ipc => throng_ipc::json_schema(),
    };
    print(&format!("{schema:#}\n"));
    Ok(Exit::Met)
}
