use super::*;
use crate::RunTime;
use crate::host::HostId;

/// A profile of 10 s at 100 Hz: thread number and name, functions innermost first, samples.
fn profile(stacks: &[(u32, &str, &[&str], u32)]) -> Profile {
    let mut frames: Vec<Frame> = Vec::new();
    let mut number = |name: &&str| {
        let (symbol, module) = name.split_once('@').unwrap_or((name, "server"));
        let frame = Frame { symbol: symbol.into(), module: module.into() };
        let at = frames.iter().position(|known| *known == frame).unwrap_or_else(|| {
            frames.push(frame);
            frames.len() - 1
        });
        at as u32
    };
    let stacks = stacks
        .iter()
        .map(|(tid, thread, names, count)| Stack {
            pid: 1,
            tid: *tid,
            thread: (*thread).into(),
            frames: names.iter().map(&mut number).collect(),
            count: *count,
        })
        .collect();
    Profile {
        host: HostId(0),
        moment: "pass".into(),
        started_at: RunTime(0),
        duration_us: 10_000_000,
        frequency_hz: 100,
        method: ProfileMethod::CpuClock,
        frames,
        stacks,
        samples_lost: 0,
        limits: vec![],
    }
}

#[test]
fn time_is_reported_by_thread_and_function() {
    let profile = profile(&[
        (5, "worker", &["parse", "loop"], 600),
        (6, "worker", &["parse", "loop"], 100),
        (5, "worker", &["memcpy@libc.so.6", "parse", "loop"], 200),
        (7, "timer", &["parse"], 100),
    ]);
    let time = SelfTime::of(&profile);
    assert_eq!((time.samples, time.cores), (1_000, Some(1.0)));
    let [worker, timer] = time.threads.as_slice() else { panic!("{:?}", time.threads) };
    assert_eq!((worker.thread.as_str(), worker.threads, worker.cores), ("worker", 2, Some(0.9)));
    assert_eq!((timer.samples, timer.share), (100, 0.1));
    assert_eq!(worker.symbols[0].frame.symbol, "parse");
    assert!((worker.symbols[0].share - 700.0 / 900.0).abs() < 1e-9);
    assert_eq!((time.symbols[0].samples, time.symbols[1].family), (800, Some(Family::Copy)));
}

#[test]
fn threads_that_differ_in_numbers_count_as_one_unless_one_is_busy() {
    let profile = profile(&[
        (1, "queue1:src", &["push"], 100),
        (2, "queue12:src", &["push"], 100),
        (3, "queue7:src", &["push"], 500),
        (4, "pool-3", &["wait"], 100),
        (5, "timer", &["wait"], 200),
    ]);
    let time = SelfTime::of(&profile);
    let rows: Vec<_> =
        time.threads.iter().map(|t| (t.thread.as_str(), t.threads, t.samples)).collect();
    let mut expect =
        [("queue7:src", 1, 500), ("queue*:src", 2, 200), ("timer", 1, 200), ("pool-3", 1, 100)];
    expect.sort_by_key(|(.., samples)| std::cmp::Reverse(*samples));
    assert_eq!(rows, expect);
}

#[test]
fn a_kind_of_work_counts_by_itself_and_with_what_it_calls() {
    let profile = profile(&[
        (
            5,
            "a",
            &["copy_user_generic@[kernel]", "udp_sendmsg@[kernel]", "sendto@libc.so.6", "loop"],
            30,
        ),
        (5, "a", &["udp_sendmsg@[kernel]", "sendto@libc.so.6", "loop"], 10),
        (5, "a", &["loop"], 60),
    ]);
    let time = SelfTime::of(&profile);
    let send = time.family(Family::Send);
    assert_eq!((send.own_share, send.within_share), (0.1, 0.4));
    let copy = time.family(Family::Copy);
    assert_eq!((copy.own_share, copy.within_share), (0.3, 0.3));
    assert_eq!(time.family(Family::Crypto).within_share, 0.0);
    assert_eq!((send.share(), copy.share()), (0.4, 0.3));
}

#[test]
fn a_parser_that_calls_the_whole_program_counts_for_itself_only() {
    let profile = profile(&[
        (5, "a", &["handle", "XML_ParseBuffer"], 90),
        (5, "a", &["XML_ParseBuffer"], 10),
    ]);
    let parse = SelfTime::of(&profile).family(Family::Parse);
    assert_eq!((parse.within_share, parse.share()), (1.0, 0.1));
}

#[test]
fn one_thread_can_be_looked_at_alone() {
    let profile = profile(&[
        (5, "full", &["hot"], 90),
        (5, "full", &["cold"], 10),
        (6, "idle", &["other"], 5),
    ]);
    let time = SelfTime::of_stacks(&profile, |stack| stack.tid == 5);
    assert_eq!((time.samples, time.symbols[0].share), (100, 0.9));
}

#[test]
fn the_greatest_change_comes_first() {
    let before = profile(&[(5, "a", &["steady"], 50), (5, "a", &["fades"], 50)]);
    let after = profile(&[
        (5, "a", &["steady"], 400),
        (5, "a", &["fades"], 100),
        (5, "a", &["appears"], 500),
    ]);
    let changes = compare(&before, &after);
    let names: Vec<_> = changes.iter().map(|change| change.frame.symbol.as_str()).collect();
    assert_eq!(names, ["appears", "fades", "steady"]);
    assert_eq!((changes[0].before, changes[0].after, changes[0].after_cores), (0.0, 0.5, 0.5));
    assert_eq!((changes[2].before_cores, changes[2].after_cores), (0.05, 0.4));
}

#[test]
fn states_say_nothing_of_cores_and_nothing_divides_by_nothing() {
    let mut profile = profile(&[(5, "a", &["futex@[syscall]", "waiting@[state]"], 10)]);
    profile.method = ProfileMethod::ThreadState;
    let time = SelfTime::of(&profile);
    assert_eq!((time.cores, time.threads[0].cores), (None, None));
    assert_eq!(time.family(Family::Lock).own_share, 1.0);
    profile.stacks.clear();
    assert_eq!(SelfTime::of(&profile), SelfTime::default());
    profile.duration_us = 0;
    profile.method = ProfileMethod::CpuClock;
    assert_eq!(profile.cores(5), None);
}

#[test]
fn numbers_that_refer_to_nothing_are_left_out() {
    let mut profile = profile(&[(5, "a", &["x"], 10)]);
    profile.stacks[0].frames = vec![99, 0];
    assert_eq!(profile.frames_of(&profile.stacks[0]).count(), 1);
    assert_eq!(SelfTime::of(&profile).symbols[0].frame.symbol, "x");
}

#[test]
fn a_few_samples_more_or_less_are_chance() {
    let clear = |before: u32, after: u32, all: u32| {
        let of = |part: u32| profile(&[(5, "a", &["x"], part), (5, "a", &["y"], all - part)]);
        compare(&of(before), &of(after))[0].is_clear()
    };
    assert!(!clear(10, 15, 50));
    assert!(clear(100, 150, 500));
    assert!(!clear(10, 10, 50));
    assert!(compare(&profile(&[]), &profile(&[])).is_empty());
}
