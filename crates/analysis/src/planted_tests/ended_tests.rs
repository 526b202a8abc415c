//! Processes that end: which end is the server's, and which is a job's; what killed it; a run that
//! ends with it.

use throng_observation::host::{
    Culprit, HostEvent, HostEventKind, HostId, HowEnded, ProcessEnd, ProcessEvent, ServiceResult,
    Unit,
};
use throng_observation::run::{CohortId, ParticipantId, ParticipantRow, RunData};
use throng_observation::{Failure, FailureReason, Goal, Outcome, RunTime};

use super::planted_limits::{full, hot_worker};
use super::simulated_run::{SimulatedRun, UserImpact};
use crate::bottleneck::{Bottleneck, BottleneckVerdict, explain};

/// The first second past the limit.
const OVER_S: i64 = 203;
const PROCESS: [(&str, &str); 2] = [("process", "media"), ("pid", "7")];
const GROUP: [(&str, &str); 1] = [("cgroup", "/media")];

fn cause(run: &RunData) -> Bottleneck {
    explain(run, Goal::Acceptable).bottleneck
}

pub(super) fn event(run: &mut RunData, at_ms: i64, name: &str, pid: u32, end: Option<ProcessEnd>) {
    let kind =
        if end.is_some() { HostEventKind::ProcessEnded } else { HostEventKind::ProcessFound };
    let process = ProcessEvent { target: 0, name: name.into(), pid, end };
    let detail = process.label();
    let event = HostEvent::new(HostId(0), RunTime(at_ms * 1_000), kind, detail);
    run.host.events.push(HostEvent { process: Some(process), ..event });
}

/// A process that lives from one second to another.
pub(super) fn life(
    run: &mut RunData,
    (from_s, until_s): (i64, i64),
    name: &str,
    pid: u32,
    how: HowEnded,
) {
    event(run, from_s * 1_000, name, pid, None);
    event(run, until_s * 1_000, name, pid, Some(ProcessEnd::new(how)));
}

fn segv() -> HowEnded {
    HowEnded::Signal { number: 11, core: false }
}

#[test]
fn a_job_of_another_that_ends_beside_a_bad_second_is_no_crash() {
    for code in [0, 1] {
        let mut sim = SimulatedRun::new();
        hot_worker(&mut sim);
        let mut run = sim.run();
        life(&mut run, (OVER_S - 1, OVER_S), "media", 90, HowEnded::Exit { code });
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{code}: {found:#?}");
        assert!(
            found.other_findings.iter().all(|other| other.finding != "server_crashed"),
            "{code}: {found:#?}"
        );
    }
}

#[test]
fn jobs_that_come_and_go_at_any_load_are_no_crash() {
    // With 1 as well: who ends in order beside others is no crash anyhow.
    for code in [0, 1] {
        let mut sim = SimulatedRun::new();
        hot_worker(&mut sim);
        let mut run = sim.run();
        // The first ones within the baseline: each is the successor of the one before.
        for (pid, from_s) in (90..).zip((2..OVER_S).step_by(20)) {
            life(&mut run, (from_s, from_s + 1), "ffmpeg", pid, HowEnded::Exit { code });
        }
        life(&mut run, (OVER_S - 1, OVER_S + 1), "ffmpeg", 80, HowEnded::Exit { code });
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{code}: {found:#?}");
        assert!(
            found.other_findings.iter().all(|other| other.finding != "server_crashed"),
            "{code}: {found:#?}"
        );
    }
}

#[test]
fn a_server_that_is_started_again_and_ends_again_is_a_crash() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    sim.events.clear();
    let mut run = sim.run();
    life(&mut run, (0, 150), "media", 7, HowEnded::Exit { code: 1 });
    life(&mut run, (152, OVER_S), "media", 8, segv());
    let found = cause(&run);
    assert_eq!(found.finding.as_deref(), Some("server_crashed"), "{found:#?}");
    assert_eq!(found.title, "media (PID 8) ended under the load, by signal 11 (SIGSEGV)");
    assert_eq!(found.verdict, BottleneckVerdict::Bottleneck, "{found:#?}");
}

#[test]
fn a_server_that_somebody_stopped_is_no_bug_to_report() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    sim.events.clear();
    let mut run = sim.run();
    life(&mut run, (0, OVER_S), "media", 7, HowEnded::Signal { number: 15, core: false });
    let found = cause(&run);
    assert_eq!(found.title, "media (PID 7) ended under the load, by signal 15 (SIGTERM)");
    assert!(found.change.is_some_and(|change| change.starts_with("Find out who asked it to end")));
}

#[test]
fn an_end_that_may_be_a_stop_is_no_bug_to_report() {
    let exit = |code| HowEnded::Exit { code };
    for (how, said) in [
        (exit(0), "it ended by itself or was asked to (a stop, a deploy)"),
        (exit(130), "it ended by itself or was asked to (a stop, a deploy)"),
        (exit(143), "it ended by itself or was asked to (a stop, a deploy)"),
        (HowEnded::Unknown, "How it ended is not known: look at its log and journalctl"),
        (exit(1), "a crash under load is a bug to report"),
    ] {
        let mut sim = SimulatedRun::new();
        sim.impact = UserImpact::NotServed;
        sim.events.clear();
        let mut run = sim.run();
        life(&mut run, (0, OVER_S), "media", 7, how);
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("server_crashed"), "{how:?}: {found:#?}");
        let change = found.change.unwrap_or_default();
        assert!(change.contains(said), "{how:?}: {change}");
        assert_eq!(change.contains("a bug to report"), how == exit(1), "{how:?}: {change}");
    }
}

#[test]
fn a_service_that_systemd_ended_at_a_limit_of_its_unit_is_told_as_such() {
    use ServiceResult::{OutOfMemory, Timeout, Watchdog};
    for (number, result, said) in [
        (6, Watchdog, "media.service did not report to systemd within WatchdogSec="),
        (15, OutOfMemory, "The kernel killed a process of media.service for lack of memory"),
        // At TimeoutStopSec=, while the kernel counted no kill.
        (9, OutOfMemory, "The kernel killed a process of media.service for lack of memory"),
        (9, Timeout, "systemd ended media.service at second"),
    ] {
        let mut sim = SimulatedRun::new();
        sim.impact = UserImpact::NotServed;
        sim.events.clear();
        let mut run = sim.run();
        event(&mut run, 0, "media", 7, None);
        let by = Some(Culprit::Service { unit: "media.service".into(), result });
        let how = HowEnded::Signal { number, core: false };
        let end = ProcessEnd { by, ..ProcessEnd::new(how) };
        event(&mut run, OVER_S * 1_000, "media", 7, Some(end));
        let found = cause(&run);
        assert_eq!(found.finding.as_deref(), Some("server_crashed"), "{found:#?}");
        let change = found.change.unwrap_or_default();
        assert!(change.starts_with(said), "{change}");
        assert!(!change.contains("a bug to report") && !change.contains("a person"), "{change}");
    }
}

/// A worker of php-fpm that served its number of requests, or one of nginx at a reload.
#[test]
fn a_worker_that_ends_in_order_beside_others_is_no_crash() {
    let with = |stays: bool, how| {
        let mut sim = SimulatedRun::new();
        hot_worker(&mut sim);
        sim.events.clear();
        let mut run = sim.run();
        let until_s = if stays { 100_000 } else { OVER_S };
        life(&mut run, (0, until_s), "fpm", 7, HowEnded::Exit { code: 0 });
        life(&mut run, (0, OVER_S), "fpm-worker", 8, how);
        // What takes its place is no proof that the service went on.
        event(&mut run, (OVER_S + 1) * 1_000, "fpm-worker", 9, None);
        let found = cause(&run);
        let others = found.other_findings.iter().map(|other| other.finding.as_str());
        found.finding.as_deref().into_iter().chain(others).any(|key| key == "server_crashed")
    };
    assert!(!with(true, HowEnded::Exit { code: 0 }));
    assert!(with(true, segv()), "a crash is one, whoever stays");
    assert!(with(false, HowEnded::Exit { code: 0 }), "nobody stayed");
}

#[test]
fn a_server_that_gives_up_is_quoted_from_its_log() {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    sim.events.clear();
    let mut run = sim.run();
    life(&mut run, (0, OVER_S), "media", 7, HowEnded::Signal { number: 6, core: true });
    for (at_s, line) in
        [(20, "media: panicked at an earlier start"), (OVER_S, "media: Assertion `room' failed")]
    {
        let at = RunTime(at_s * 1_000_000);
        run.host.events.push(HostEvent::new(HostId(0), at, HostEventKind::LogLine, line));
    }
    let change = cause(&run).change.unwrap_or_default();
    assert!(
        change.contains("a bug to report")
            && change.ends_with("(it said: media: Assertion `room' failed)"),
        "{change}"
    );
}

/// A server of 12 MB a user in a group of 490 MB, which kills it once.
fn killed(by: Option<Culprit>) -> RunData {
    let mut sim = SimulatedRun::new();
    sim.impact = UserImpact::NotServed;
    sim.events.clear();
    sim.put("cgroup.memory", &GROUP, Unit::Bytes, Some(4.9e8), |m| 4.9e8 * full(m));
    sim.put("process.rss", &PROCESS, Unit::Bytes, None, |m| 1e7 + 1.2e7 * m.users.min(40.0));
    sim.put("cgroup.memory.oom_kills", &GROUP, Unit::PerSecond, None, |m| {
        if m.second == OVER_S { 1.0 } else { 0.0 }
    });
    let mut run = sim.run();
    let how = HowEnded::Signal { number: 9, core: false };
    event(&mut run, 0, "media", 7, None);
    event(
        &mut run,
        OVER_S * 1_000 + 500,
        "media",
        7,
        Some(ProcessEnd { by, ..ProcessEnd::new(how) }),
    );
    run
}

#[test]
fn one_kill_for_lack_of_memory_is_the_cause() {
    let group = Culprit::OutOfMemory {
        group: "/media".into(),
        limit_bytes: Some(490_000_000),
        used_bytes: 489_000_000,
    };
    for (by, title) in [
        (None, "The kernel killed media (PID 7) for lack of memory: 490 MB at most"),
        (
            Some(group),
            "The kernel killed media (PID 7) for lack of memory: control group /media may use 490 MB",
        ),
    ] {
        let run = killed(by);
        let found = cause(&run);
        assert_eq!(
            (found.finding.as_deref(), found.title.as_str()),
            (Some("memory"), title),
            "{found:#?}"
        );
        assert_eq!(found.verdict, BottleneckVerdict::Bottleneck, "{found:#?}");
        // The chart is that of the group's use against its limit, which is the first evidence.
        let group = run.host.series.iter().find(|one| one.metric == "cgroup.memory").unwrap();
        assert_eq!(found.series, [group.id.0], "{found:#?}");
        let first = &found.evidence[0];
        assert_eq!(first.counter, "cgroup.memory of /media, the most");
        assert!(first.limit == Some(4.9e8) && first.fail > first.baseline, "{first:?}");
        assert!(found.evidence[1].counter.starts_with("process.rss, "), "{found:#?}");
        let change = found.change.as_deref().unwrap_or_default();
        assert!(
            change.starts_with("A user takes 1") && change.contains(" MB, so that 490 MB fit "),
            "{change}"
        );
        assert!(
            found.ruled_out.iter().all(|said| !said.contains("lack of memory")),
            "{:#?}",
            found.ruled_out
        );
        assert!(
            found.other_findings.iter().all(|other| other.finding != "server_crashed"),
            "{found:#?}"
        );
    }
}

#[test]
fn a_kill_on_the_host_is_not_the_end_of_a_server_that_lives() {
    let mut run = killed(None);
    run.host.events.retain(|event| event.kind == HostEventKind::ProcessFound);
    let found = cause(&run);
    assert_eq!(found.title, "Memory is exhausted", "{found:#?}");
}

/// The same, counted by the host alone, while the group uses this share of its limit.
fn killed_on_the_host(how: HowEnded, used: f64) -> RunData {
    let mut run = killed(None);
    for series in run.host.series.iter_mut().filter(|one| one.metric == "cgroup.memory.oom_kills") {
        (series.metric, series.labels) = ("host.memory.oom_kills".into(), Default::default());
    }
    let is_of_group = |one: &&throng_observation::host::HostSeries| one.metric == "cgroup.memory";
    let group = run.host.series.iter().find(is_of_group).map(|one| one.id);
    let of_group = run.host.samples.iter_mut().filter(|sample| Some(sample.series) == group);
    of_group.for_each(|sample| sample.value = used * 4.9e8);
    let ends = run.host.events.iter_mut().filter_map(|event| event.process.as_mut()?.end.as_mut());
    ends.for_each(|end| end.how = how);
    run
}

#[test]
fn a_kill_that_the_host_alone_counts_is_certain_only_where_the_group_was_full() {
    let signal = HowEnded::Signal { number: 9, core: false };
    for how in [signal, HowEnded::Unknown] {
        let found = cause(&killed_on_the_host(how, 0.97));
        assert_eq!(found.finding.as_deref(), Some("memory"), "{how:?}: {found:#?}");
        assert_eq!(
            found.title,
            "The kernel killed media (PID 7) for lack of memory: 490 MB at most"
        );
    }
    let found = cause(&killed_on_the_host(signal, 0.3));
    assert_eq!(found.finding.as_deref(), Some("server_crashed"), "{found:#?}");
    let memory = found.other_findings.iter().find(|other| other.finding == "memory");
    let memory = memory.unwrap_or_else(|| panic!("{found:#?}"));
    assert!(
        memory.title.starts_with("The kernel probably killed media (PID 7)"),
        "{}",
        memory.title
    );
    let found = cause(&killed_on_the_host(HowEnded::Unknown, 0.3));
    let others = found.other_findings.iter().map(|other| &other.title);
    assert!(
        others.chain([&found.title]).all(|title| !title.contains("killed media")),
        "{found:#?}"
    );
}

/// A transcoder that came later, and is killed in the server's group while the server lives.
#[test]
fn a_killed_transcoder_is_not_the_end_of_the_server() {
    let mut run = killed(None);
    for event in
        run.host.events.iter_mut().filter(|event| event.kind == HostEventKind::ProcessEnded)
    {
        event.process.as_mut().unwrap().pid = 90;
        event.process.as_mut().unwrap().name = "ffmpeg".into();
    }
    event(&mut run, 100_000, "ffmpeg", 90, None);
    run.host.events.sort_by_key(|event| event.at);
    let found = cause(&run);
    assert_eq!(found.finding.as_deref(), Some("memory"), "{found:#?}");
    assert!(found.title.contains("ffmpeg (PID 90)"), "{found:#?}");
    // The server's own end counts for more than that of another.
    let how = HowEnded::Signal { number: 9, core: false };
    event(&mut run, OVER_S * 1_000 + 900, "media", 7, Some(ProcessEnd::new(how)));
    let found = cause(&run);
    assert!(found.title.contains("media (PID 7)"), "{found:#?}");
    assert!(
        found.other_findings.iter().all(|other| other.finding != "server_crashed"),
        "{found:#?}"
    );
}

/// A plain run of 120 s in which all is well, until all 20 participants fail in its last second.
pub(super) fn ends_with_its_users() -> RunData {
    let end_us = 120_400_000;
    let mut sim = SimulatedRun::new();
    sim.is_search = false;
    sim.events.clear();
    let mut run = sim.run();
    run.ended_at = Some(RunTime(end_us));
    run.experience.retain(|row| row.second < 120);
    run.crowd.retain(|row| row.second < 120);
    run.series.retain(|row| row.second < 120);
    run.generator.retain(|row| row.second < 120);
    run.host.samples.retain(|sample| sample.at.0 < end_us);
    run.participants = (0..20)
        .map(|id| ParticipantRow {
            participant: ParticipantId(id),
            cohort: CohortId(0),
            intended_at: RunTime(0),
            reached: Default::default(),
            ended_at: Some(RunTime(end_us - 100_000)),
            outcome: Some(Outcome::Failed(Failure::new(FailureReason::SignallingClosed, "closed"))),
            local_address: None,
        })
        .collect();
    run
}

#[test]
fn a_run_that_ends_in_the_second_of_its_server_says_how_that_ended() {
    let mut run = ends_with_its_users();
    life(&mut run, (0, 121), "media", 7, HowEnded::Signal { number: 9, core: false });
    let found = cause(&run);
    assert_eq!(found.verdict, BottleneckVerdict::Bottleneck, "{found:#?}");
    assert_eq!(found.title, "media (PID 7) ended under the load, by signal 9 (SIGKILL)");
    assert_eq!(found.first_bad_s, Some(120));
}

/// Some of a crowd fail in the seconds in which the run ends by its duration: the others play on.
#[test]
fn a_run_of_which_most_play_to_its_end_did_not_end_for_lack_of_users() {
    let verdict = |playing: usize| {
        let mut run = ends_with_its_users();
        life(&mut run, (0, 121), "media", 7, HowEnded::Signal { number: 9, core: false });
        let players = run.participants.iter_mut().take(playing);
        players.for_each(|row| (row.ended_at, row.outcome) = (None, None));
        cause(&run).verdict
    };
    assert_eq!(
        (verdict(8), verdict(1)),
        (BottleneckVerdict::NothingFailed, BottleneckVerdict::Bottleneck)
    );
}

#[test]
fn a_run_that_ends_in_a_second_without_an_event_is_not_explained() {
    let mut run = ends_with_its_users();
    assert_eq!(cause(&run).verdict, BottleneckVerdict::NothingFailed);
    // Nor is a server that ends with a run whose users all left.
    life(&mut run, (0, 120), "media", 7, HowEnded::Exit { code: 0 });
    run.participants.iter_mut().for_each(|row| row.outcome = None);
    assert_eq!(cause(&run).verdict, BottleneckVerdict::NothingFailed);
}
