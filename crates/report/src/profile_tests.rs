use super::*;
use throng_observation::RunTime;
use throng_observation::host::{Frame, HostId, Stack, compare};

/// A profile of 10 s at 99 Hz: thread, functions innermost first, samples.
pub(crate) fn example(stacks: &[(&str, &[&str], u32)]) -> Profile {
    let mut frames: Vec<Frame> = Vec::new();
    let mut number = |name: &&str| {
        let (symbol, module) = name.split_once('@').unwrap_or((name, "server"));
        let frame = Frame { symbol: symbol.into(), module: module.into() };
        frames.iter().position(|known| *known == frame).unwrap_or_else(|| {
            frames.push(frame);
            frames.len() - 1
        }) as u32
    };
    let stack = |(nth, (thread, names, count)): (usize, &(&str, &[&str], u32))| Stack {
        pid: 1,
        tid: nth as u32,
        thread: (*thread).into(),
        frames: names.iter().map(&mut number).collect(),
        count: *count,
    };
    let stacks = stacks.iter().enumerate().map(stack).collect();
    Profile {
        host: HostId(0),
        moment: String::new(),
        started_at: RunTime(0),
        duration_us: 10_000_000,
        frequency_hz: 99,
        method: ProfileMethod::CpuClock,
        frames,
        stacks,
        samples_lost: 0,
        limits: vec![],
    }
}

#[test]
fn the_table_names_threads_functions_and_kinds() {
    let mut profile = example(&[
        ("ice", &["memcpy@libc.so.6", "relay"], 495),
        ("ice", &["relay"], 99),
        ("timer", &["tick"], 99),
    ]);
    profile.samples_lost = 3;
    profile.limits = vec!["something was hidden".into()];
    let text = text(&profile);
    for part in [
        "10.0 s at 99 Hz on each CPU: 693 samples, 0.70 cores; 3 records of all processes were lost",
        "note: something was hidden",
        "ice (of 2 threads): 0.60 cores, 85.7 % of the samples",
        "83.3 %  memcpy  (libc.so.6)  copying",
        "timer: 0.10 cores",
        "kinds of work: copying 71.4 %",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn changes_are_reported_before_and_after() {
    let before = example(&[("a", &["x"], 10), ("a", &["y"], 90)]);
    let after = example(&[("a", &["x"], 60), ("a", &["y"], 40)]);
    let table = changes(&compare(&before, &after));
    assert!(table.contains("10.0 %  60.0 %  x  (server)"), "{table}");
    assert!(changes(&compare(&before, &before)).contains("no change"));
}

#[test]
fn names_do_no_harm_to_a_terminal() {
    let long = "x".repeat(500);
    let profile = example(&[("\u{1b}[2J\u{202e}evil\n", &[&long], 1)]);
    let text = text(&profile);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && !text.contains(&long));
    assert!(text.contains("[2J"));
}

#[test]
fn nothing_sampled_is_no_accident() {
    let text = text(&example(&[]));
    assert!(text.contains("0 samples, 0.00 cores") && !text.contains("NaN"), "{text}");
}
