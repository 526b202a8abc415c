//! The table of `throng ipc` from this crate alone: builds in a moment, for work on the transports.
//!
//! `cargo run --release -p throng-ipc --example table -- [FRAME [SECONDS [FPS|- [TRANSPORTS|-
//! [ROUNDS [PYTHON]]]]]]`

use std::process::ExitCode;
use std::time::Duration;

use throng_ipc::{
    Assumptions, FrameSize, Launcher, Plan, ReadMode, Transport, Workload, measure, run_role,
};

#[expect(clippy::print_stdout, reason = "it prints its result")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "role").is_some() {
        return if run_role() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let frame = arguments.next().unwrap_or_else(|| "1920x1080:i420".into());
    let Ok(frame) = FrameSize::parse(&frame) else { return ExitCode::from(2) };
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(2.0);
    let fps: Option<f64> = arguments.next().and_then(|fps| fps.parse().ok());
    let only = arguments.next().filter(|only| only != "-");
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let python = arguments.next().map(Into::into);
    let is_wanted =
        |t: &Transport| only.as_ref().is_none_or(|only| only.split(',').any(|key| key == t.key()));
    let plan = Plan {
        transports: Transport::ALL.into_iter().filter(is_wanted).collect(),
        workload: Workload { sizes: frame.into(), fps, producers: 1 },
        reading: ReadMode::Edges,
        duration: Duration::from_secs_f64(seconds),
        rounds,
        inspect: true,
        python,
        assumptions: Assumptions { price_core_hour: 0.05, streams: 1000, fps: fps.unwrap_or(30.0) },
    };
    let launcher = Launcher { program: "/proc/self/exe".into(), arguments: vec!["role".into()] };
    print!("{}", measure(&plan, &launcher, &|| false, &mut |_, _| {}).text());
    ExitCode::SUCCESS
}
