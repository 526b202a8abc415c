//! The command line: what each command takes, in the words that `--help` prints.

mod compare;
mod export;
mod fleet;
mod history;
mod init;
mod listen;
mod matrix;
mod measure;
mod media;
mod outputs;
mod parsers;
mod price;
mod requests;
mod run;
mod shipped;
mod stage;
mod watch;

pub(crate) use compare::{Compare, Trend};
pub(crate) use export::Export;
pub(crate) use fleet::{Bus, Fleet, FleetCommand, FleetCommands, Manifest, OnLoss, Worker};
pub(crate) use history::{Prune, RUNS, Rerun, Runs, RunsCommand, Serve};
pub(crate) use init::Init;
pub(crate) use listen::ListenAddress;
pub(crate) use matrix::{Matrix, Prove};
pub(crate) use measure::{
    Decode, Doctor, Ipc, Profile, ProfileMethod, Ring, RingCommand, RingStat, Tap,
};
pub(crate) use media::{Container, Media, MediaCommand, MediaMake, VideoCodec};
pub(crate) use outputs::Outputs;
pub(crate) use parsers::{duration, networks, with_unit};
pub(crate) use price::Price;
pub(crate) use requests::Requests;
pub(crate) use run::{Check, Common, Consent, Find, ReceiveWay, Report, Run, View};
pub(crate) use shipped::{Completions, Man, as_printed, for_users};
pub(crate) use stage::{Calibrate, Planted, Stage};
pub(crate) use watch::Watch;

use clap::{Args, Parser, Subcommand};

use crate::console::Exit;

/// What clap says, as it is printed: help, the version, or what is wrong with the command line.
pub(crate) fn words_of(error: &clap::Error, has_colours: bool) -> String {
    let text = error.render();
    let text = if has_colours { text.ansi().to_string() } else { text.to_string() };
    as_printed(&text)
}

/// The kinds of targets, for the end of a help text.
fn targets() -> String {
    let examples: Vec<_> = throng_scenario::target_examples().collect();
    let width = examples.iter().map(|(url, _)| url.len()).max().unwrap_or_default();
    let lines = examples.iter().map(|(url, what)| format!("  {url:width$}  {what}\n"));
    format!("Targets:\n{}", lines.collect::<String>())
}

/// Fills a streaming media server with people until it breaks, and says why.
#[derive(Debug, Parser)]
#[command(name = "throng", version, after_help = Exit::HELP, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Look which protocol answers at a URL and what it offers, and write a scenario for it
    Init(Init),
    /// Send the crowd that a scenario file describes
    Run(Run),
    /// Send viewers at a URL without a file; also takes OvenRtcTester's -url -n -cint -sint -life
    View(View),
    /// Find the largest crowd that is served well: grows and shrinks it until one load passes and
    /// the next one fails
    Find(Find),
    /// Run a scenario in the cells of a grid of factors, each with its own server: effects, limits,
    /// confirmations
    Matrix(Matrix),
    /// Change one thing of a server and see whether the limit moves: variants in pairs with a
    /// baseline, ratios with intervals
    Prove(Prove),
    /// Compare two runs, or two sets of runs: better, the same or worse, with intervals, an exit
    /// code and JUnit XML
    Compare(Compare),
    /// Order many runs of one scenario by time, and find where a figure changed
    Trend(Trend),
    /// Validate a scenario file and print its plan; sends nothing
    Check(Check),
    /// Make the report of a run again from its run.db
    Report(Report),
    /// Write the rows of a run as tables for other programs: CSV, JSON lines, Parquet
    Export(Export),
    /// Count the requests of a run's players by URI and status, and compare them with an access log
    Requests(Requests),
    /// Size and price another crowd from a run: resources, machines, cost by a price file
    Price(Price),
    /// List the runs of a folder, label and annotate them, delete old ones
    Runs(Runs),
    /// Serve the pages of a folder of runs, as they are and while they happen: a list,
    /// comparisons, trends
    Serve(Serve),
    /// Do a run or a search again, from its run folder alone
    Rerun(Rerun),
    /// Play shares of the runs that coordinators start with --fleet
    Worker(Worker),
    /// Prepare a fleet elsewhere: print its manifest for Kubernetes
    Fleet(FleetCommands),
    /// Run the embedded media server (WHEP out, WHIP in)
    Stage(Stage),
    /// Find out how many viewers this machine can play before the generator is the limit
    Calibrate(Calibrate),
    /// Say what this machine allows, what that means for a crowd, and how to change it; sends
    /// nothing
    Doctor(Doctor),
    /// Measure the cost of passing frames between two processes, by each transport
    Ipc(Ipc),
    /// A process of `throng ipc`
    #[command(hide = true)]
    IpcRole,
    /// Watch this host, its processes and threads; --listen makes it the agent of runs on other
    /// machines
    Watch(Watch),
    /// Find out how many video streams this machine decodes in real time
    Decode(Decode),
    /// Decode the frames of a run's tapped participants during the run: frames, freezes, delay
    Tap(Tap),
    /// Look at the shared-memory rings of other processes
    Ring(Ring),
    /// Sample where running programs spend their time: threads, functions, a flame graph
    Profile(Profile),
    /// Make video files for servers of files to deliver
    Media(Media),
    /// Make a consent proof: a secret for the tester, and the file that the owner of a public
    /// server publishes
    Consent(Consent),
    /// Print the JSON Schema of a file format
    Schema(Schema),
    /// Print what a shell completes command lines of throng by; docs/install.md
    Completions(Completions),
    /// Write the manual pages into a folder, for packages
    #[command(hide = true)]
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Which format
    #[arg(value_enum)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// Scenario files
    Scenario,
    /// summary.json
    Summary,
    /// matrix.json
    Matrix,
    /// compare.json
    Compare,
    /// trend.json
    Trend,
    /// The answer of `throng price --json`
    Price,
    /// ipc.json
    Ipc,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_each_kind_of_target_its_headings_and_the_number_of_a_participant() {
        let help = |command: &str| {
            let said = Arguments::try_parse_from(["throng", command, "--help"]).unwrap_err();
            words_of(&said, false)
        };
        for command in ["view", "find"] {
            let text = help(command);
            for (url, _) in throng_scenario::target_examples() {
                assert!(text.split_whitespace().any(|word| word == url), "{url}:\n{text}");
            }
        }
        for command in ["run", "view", "find"] {
            let text = help(command);
            for heading in ["Crowd:", "Server:", "Output:", "Fleet:"] {
                let has_it = text.lines().any(|line| line == heading);
                assert!(has_it, "{command}, {heading}\n{text}");
            }
        }
        let text = help("view");
        assert!(text.contains("{n}") && text.contains("--duration"), "{text}");
    }
}
