//! Every transport passes frames between real processes, all of them unchanged.
#![expect(clippy::print_stderr, reason = "a skipped transport is reported")]

use std::time::Duration;

use throng_ipc::{
    Assumptions, FrameSize, FrameSizes, IpcReport, Launcher, Outcome, Plan, ReadMode, Transport,
    Workload, measure,
};

fn plan(transports: Vec<Transport>, sizes: FrameSizes) -> Plan {
    Plan {
        transports,
        workload: Workload { sizes, fps: None, producers: 1 },
        reading: ReadMode::All,
        // Long enough for frames to pass while other tests have the cores.
        duration: Duration::from_millis(300),
        rounds: 1,
        inspect: false,
        python: None,
        assumptions: Assumptions { price_core_hour: 0.05, streams: 1000, fps: 30.0 },
    }
}

fn run(plan: &Plan) -> IpcReport {
    let launcher =
        Launcher { program: env!("CARGO_BIN_EXE_ipc-role").into(), arguments: Vec::new() };
    measure(plan, &launcher, &|| false, &mut |_, _| {})
}

/// All frames arrived; a transport that this machine lacks is reported and skipped.
#[track_caller]
fn assert_all_came(report: &IpcReport, plan: &Plan) {
    assert_eq!(report.rows.len(), plan.transports.len());
    for row in &report.rows {
        match (row.outcome, &row.figures) {
            (Outcome::Measured, Some(figures)) => {
                assert!(figures.frames > 0 && figures.bytes > 0, "{}", row.name);
                assert!(
                    figures.cpu_s_per_gb > 0.0 && figures.bytes_per_second > 0.0,
                    "{}",
                    row.name
                );
            }
            (Outcome::Missing, None) => {
                let reason = row.reason.as_deref().unwrap_or_default();
                assert!(!reason.is_empty(), "{}", row.name);
                match row.transport {
                    // No lack of this machine: `scripts/proof.sh features` has it.
                    Transport::Iceoryx2 if cfg!(not(feature = "iceoryx2")) => {}
                    Transport::GstreamerShm | Transport::WebsocketPython => {
                        eprintln!("SKIPPED: {}: {reason}", row.name);
                    }
                    _ => panic!("{}: {reason}", row.name),
                }
            }
            _ => panic!("{}: {:?}", row.name, row.reason),
        }
    }
}

/// Sizes just below and above the transports' fragment sizes and the page size, in one stream.
#[test]
fn every_transport_passes_frames_of_all_sizes_whole_and_in_order() {
    let sizes = "48\n49\n4096\n131072\n131073\n100\n65535\n1200\n300001\n";
    let plan = plan(Transport::ALL.to_vec(), FrameSizes::read_list(sizes).unwrap());
    assert_all_came(&run(&plan), &plan);
}

/// A pipe takes a `write` for each frame at least; a copy within a process takes none.
#[test]
fn system_calls_are_counted_or_the_missing_right_is_named() {
    let transports = [Transport::Memcpy, Transport::Pipe, Transport::WebsocketPython].to_vec();
    let mut plan = plan(transports, FrameSize::bytes(300_000).unwrap().into());
    plan.inspect = true;
    let report = run(&plan);
    assert_all_came(&report, &plan);
    for figures in report.rows.iter().filter_map(|row| row.figures.as_ref()) {
        let (calls, spent) =
            (figures.system_calls.as_ref().unwrap(), figures.cpu_profile.as_ref().unwrap());
        assert!(calls.per_frame().is_some() || calls.missing.is_some());
        assert!(spent.samples > 0 || spent.missing.is_some());
    }
    let per_frame =
        |row: usize| report.rows[row].figures.as_ref()?.system_calls.as_ref()?.per_frame();
    if let (Some(copy), Some(pipe)) = (per_frame(0), per_frame(1)) {
        assert!(copy < 1.0 && pipe >= 2.0, "{copy} {pipe}");
    }
}

#[test]
fn three_producers_at_an_offered_rate_are_all_accounted_for() {
    let transports =
        [Transport::Ring, Transport::Tcp, Transport::Websocket, Transport::UnixSeqpacket].to_vec();
    let mut plan = plan(transports, FrameSize::bytes(20_000).unwrap().into());
    plan.workload.producers = 3;
    plan.workload.fps = Some(50.0);
    plan.duration = Duration::from_millis(400);
    let report = run(&plan);
    assert_all_came(&report, &plan);
    for row in &report.rows {
        let figures = row.figures.as_ref().unwrap();
        // 3 producers x 50 fps x 0.4 s; frames that a busy machine could not send are counted.
        let due = figures.frames + figures.frames_not_sent;
        assert!((59..=61).contains(&due), "{}: {due} frames", row.name);
        assert!(figures.latency.is_some() && figures.send_delay.is_some(), "{}", row.name);
    }
}

#[test]
fn a_program_that_plays_no_role_is_a_failed_row_and_the_others_go_on() {
    let plan = plan(vec![Transport::Tcp, Transport::Pipe], FrameSize::bytes(1000).unwrap().into());
    let launcher = Launcher { program: "/bin/false".into(), arguments: Vec::new() };
    let report = measure(&plan, &launcher, &|| false, &mut |_, _| {});
    assert_eq!(report.rows.len(), 2);
    for row in &report.rows {
        assert_eq!(row.outcome, Outcome::Failed);
        let reason = row.reason.as_deref().unwrap_or_default();
        assert!(reason.contains("consumer"), "{reason}");
    }
    assert!(report.has_failed_rows() && !report.has_figures());
}

#[test]
fn what_was_measured_before_a_stop_is_kept() {
    let plan = plan(
        vec![Transport::Pipe, Transport::Tcp, Transport::UnixStream],
        FrameSize::bytes(1000).unwrap().into(),
    );
    let launcher =
        Launcher { program: env!("CARGO_BIN_EXE_ipc-role").into(), arguments: Vec::new() };
    let is_stopped = std::cell::Cell::new(false);
    let report = measure(&plan, &launcher, &|| is_stopped.get(), &mut |transport, _| {
        is_stopped.set(transport == Transport::Tcp);
    });
    let measured: Vec<_> =
        report.rows.iter().filter(|row| row.figures.is_some()).map(|row| row.transport).collect();
    assert!(report.partial && measured == [Transport::Pipe], "{measured:?}");
}

#[test]
fn a_python_without_the_package_is_named() {
    let mut plan = plan(vec![Transport::WebsocketPython], FrameSize::bytes(1000).unwrap().into());
    plan.python = Some("/bin/false".into());
    let report = run(&plan);
    let row = &report.rows[0];
    assert_eq!(row.outcome, Outcome::Missing);
    assert!(
        row.reason.as_deref().unwrap_or_default().contains("/bin/false has no package websockets")
    );
}
