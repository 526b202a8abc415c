//! The profiler tested with programs whose functions and time shares are known.
//!
//! The sampling clock needs root or `CAP_PERFMON`; without it these tests are reported as skipped.
#![expect(clippy::print_stdout, reason = "the measurements are in the test's output")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use throng_observation::host::{Profile, ProfileMethod};
use throng_watch::profiler::{self, Options, ProfilerError};

/// A thousand samples per second of CPU time: each program works for about one, so shares are exact
/// to 4 points.
const FREQUENCY_HZ: u32 = 997;

/// A program that works on command, reports when it is done, and ends on command.
struct Program {
    child: Child,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Program {
    fn start(flags: &[&str], how: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = compile(folder.path(), flags);
        let child = Command::new(&path)
            .arg(how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, path, _folder: folder }
    }

    /// Lets it work, and returns when it has.
    fn work(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"w").unwrap();
        let mut done = [0];
        self.child.stdout.as_mut().unwrap().read_exact(&mut done).unwrap();
    }

    fn end(&mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// A profile of its work by the clock; `None`, with a message, if that is not permitted.
    fn profile(&mut self) -> Option<Profile> {
        let sampling = sampling(self.child.id(), Options::default())?;
        self.work();
        Some(sampling.stop())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compile(folder: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join("shares");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shares.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread"]).args(flags).arg("-o").arg(&program).arg(source);
    assert!(gcc.status().expect("these tests need gcc: scripts/setup.sh test").success());
    program
}

fn sampling(pid: u32, options: Options) -> Option<profiler::RunningProfile> {
    let method = Some(ProfileMethod::CpuClock);
    match profiler::start(&[pid], Options { method, frequency_hz: FREQUENCY_HZ, ..options }) {
        Ok(sampling) => Some(sampling),
        Err(ProfilerError::NotAllowed(why)) => {
            throng_sim::skipped(&why.to_string());
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Samples by a name made of each stack.
fn count_by(
    profile: &Profile,
    name: impl Fn(&throng_observation::host::Stack) -> String,
) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for stack in &profile.stacks {
        *counts.entry(name(stack)).or_default() += stack.count;
    }
    counts
}

/// Samples by the function that ran.
fn by_function(profile: &Profile) -> BTreeMap<String, u32> {
    count_by(profile, |stack| {
        stack
            .frames
            .first()
            .map(|frame| profile.frames[*frame as usize].symbol.clone())
            .unwrap_or_default()
    })
}

/// The share of the first in the time of both, percent.
fn share(counts: &BTreeMap<String, u32>, one: &str, other: &str) -> f64 {
    let count = |name| f64::from(counts.get(name).copied().unwrap_or(0));
    assert!(count(one) + count(other) > 200.0, "too few samples: {counts:?}");
    100.0 * count(one) / (count(one) + count(other))
}

#[track_caller]
fn assert_near(share: f64, expect: f64) {
    assert!((share - expect).abs() <= 5.0, "{share:.1} %, not {expect} %");
}

#[test]
fn a_hot_function_is_named_with_its_share_and_callers() {
    let mut program = Program::start(&["-fomit-frame-pointer"], "plain");
    let Some(profile) = program.profile() else { return };
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
    assert_eq!((profile.samples_lost, &profile.limits), (0, &vec![]));
    // Without frame pointers, and still from the function down to the program's entry.
    let whole = |stack: &&throng_observation::host::Stack| {
        let symbols: Vec<_> =
            stack.frames.iter().map(|f| profile.frames[*f as usize].symbol.as_str()).collect();
        ["burn_long", "share", "work", "main"].iter().all(|name| symbols.contains(name))
    };
    let long: u32 = by_function(&profile)["burn_long"];
    let with_callers: u32 = profile.stacks.iter().filter(whole).map(|stack| stack.count).sum();
    assert!(
        f64::from(with_callers) > 0.95 * f64::from(long),
        "{with_callers} of {long} have their callers"
    );
}

#[test]
fn frame_pointers_are_enough_where_nothing_is_to_be_unwound() {
    let mut program = Program::start(&["-fno-omit-frame-pointer"], "plain");
    let Some(sampling) =
        sampling(program.child.id(), Options { unwind: false, ..Options::default() })
    else {
        return;
    };
    program.work();
    let profile = sampling.stop();
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
    assert!(profile.frames.iter().any(|frame| frame.symbol == "main"));
}

#[test]
fn a_program_that_has_ended_and_is_deleted_keeps_its_names() {
    let mut program = Program::start(&[], "plain");
    let Some(sampling) = sampling(program.child.id(), Options::default()) else { return };
    std::fs::remove_file(&program.path).unwrap();
    program.work();
    program.end();
    let profile = sampling.stop();
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
}

#[test]
fn functions_of_a_stripped_program_stay_apart() {
    let mut program = Program::start(&["-s", "-Wl,--build-id=none"], "plain");
    let Some(profile) = program.profile() else { return };
    let mut functions: Vec<_> = by_function(&profile).into_iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let [(first, long), (second, short), ..] = functions.as_slice() else {
        panic!("{functions:?}")
    };
    assert!(first.starts_with("0x") && second.starts_with("0x"), "{functions:?}");
    assert_near(100.0 * f64::from(*long) / f64::from(long + short), 70.0);
    assert!(
        profile.limits.iter().any(|limit| limit.contains("of shares that have no names")),
        "{:?}",
        profile.limits
    );
}

#[test]
fn where_the_symbols_of_a_stripped_program_belong_is_told() {
    let mut program = Program::start(&["-s", "-Wl,--build-id=0x0123456789abcdef"], "plain");
    let Some(profile) = program.profile() else { return };
    let place = "they belong at /usr/lib/debug/.build-id/01/23456789abcdef.debug";
    assert!(profile.limits.iter().any(|limit| limit.ends_with(place)), "{:?}", profile.limits);
}

/// A root directory of its own, as in a container: a stripped, static program, with its debug
/// package inside.
#[test]
fn a_program_in_another_root_is_named_by_the_symbols_there() {
    if !rustix::process::geteuid().is_root() {
        throng_sim::skipped("only root can change the root");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let program = compile(root.path(), &["-static", "-Wl,--build-id=0xabcdef0123456789"]);
    let debug = root.path().join("usr/lib/debug/.build-id/ab");
    std::fs::create_dir_all(&debug).unwrap();
    let keep = Command::new("objcopy")
        .arg("--only-keep-debug")
        .arg(&program)
        .arg(debug.join("cdef0123456789.debug"))
        .status();
    assert!(
        keep.unwrap().success() && Command::new("strip").arg(&program).status().unwrap().success()
    );
    let mut chroot = Command::new("chroot");
    chroot.arg(root.path()).args(["/shares", "plain"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program { child: chroot.spawn().unwrap(), path: program, _folder: root };
    let Some(profile) = program.profile() else { return };
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
}

#[test]
fn what_the_c_library_copies_with_is_named_by_its_callers() {
    let mut program = Program::start(&[], "copy");
    let Some(profile) = program.profile() else { return };
    let functions = by_function(&profile);
    let all: u32 = functions.values().sum();
    let copies: u32 =
        functions.iter().filter(|(name, _)| name.contains("mem")).map(|(_, count)| count).sum();
    assert!(f64::from(copies) > 0.8 * f64::from(all), "{functions:?}");
}

#[test]
fn children_that_come_and_go_are_counted() {
    let mut program = Program::start(&[], "forks");
    let Some(profile) = program.profile() else { return };
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
    let processes = count_by(&profile, |stack| stack.pid.to_string());
    assert!(processes.len() >= 10, "{processes:?}");
}

#[test]
fn a_child_of_a_program_that_is_followed_alone_is_not_counted() {
    let mut program = Program::start(&[], "forks");
    let Some(sampling) =
        sampling(program.child.id(), Options { children: false, ..Options::default() })
    else {
        return;
    };
    program.work();
    let pid = program.child.id();
    assert!(sampling.stop().stacks.iter().all(|stack| stack.pid == pid));
}

#[test]
fn busy_threads_are_found_among_hundreds() {
    let mut program = Program::start(&[], "threads");
    let Some(profile) = program.profile() else { return };
    let threads = count_by(&profile, |stack| stack.thread.clone());
    assert_near(share(&threads, "worker-a", "worker-b"), 50.0);
    assert_near(share(&by_function(&profile), "burn_long", "burn_short"), 70.0);
}

#[test]
fn code_made_while_running_is_named_by_the_programs_map() {
    let mut program = Program::start(&[], "jit");
    let Some(profile) = program.profile() else { return };
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", program.child.id()));
    let made = profile
        .frames
        .iter()
        .position(|frame| frame.module == "[jit]")
        .expect("code without a file");
    assert_eq!(profile.frames[made].symbol, "LazyCompile:*spin server.js:7");
    let functions = by_function(&profile);
    let all: u32 = functions.values().sum();
    assert!(
        f64::from(functions["LazyCompile:*spin server.js:7"]) > 0.8 * f64::from(all),
        "{functions:?}"
    );
}

#[test]
fn without_the_clock_the_states_of_threads_are_sampled() {
    let mut program = Program::start(&[], "threads-long");
    let options = Options { method: Some(ProfileMethod::ThreadState), ..Options::default() };
    let sampling = profiler::start(&[program.child.id()], options).unwrap();
    program.work();
    let profile = sampling.stop();
    assert_eq!((profile.method, profile.frequency_hz), (ProfileMethod::ThreadState, 20));
    let of = |symbol: &str| {
        profile.frames.iter().position(|frame| frame.symbol == symbol).map(|n| n as u32)
    };
    let waiting = of("waiting").expect("idle threads wait");
    let idle: Vec<_> = profile.stacks.iter().filter(|stack| stack.thread == "idle").collect();
    // On a busy machine a few threads may not be waiting yet.
    let wait = idle.iter().filter(|stack| stack.frames.last() == Some(&waiting)).count();
    assert!(idle.len() > 100 && wait * 100 >= idle.len() * 90, "{wait} of {} wait", idle.len());
    let running = of("running or ready to run").expect("workers run");
    let mut workers = profile.stacks.iter().filter(|stack| stack.thread.starts_with("worker"));
    assert!(workers.any(|stack| stack.frames.contains(&running)));
    // 500 threads are sampled in turn; the profile states how often.
    assert!(
        profile.limits.iter().any(|limit| limit.contains("sampled in turn")),
        "{:?}",
        profile.limits
    );
}

/// Run in a process of its own by the test below.
#[test]
#[ignore = "the inner half of without_the_right_it_says_which_one_is_missing"]
fn inner_half_without_rights() {
    let me = std::process::id();
    let clock = Options { method: Some(ProfileMethod::CpuClock), ..Options::default() };
    let refused = profiler::start(&[me], clock).expect_err("nobody may not sample the machine");
    println!("REFUSED {refused}");
    let sampling = profiler::start(&[me], Options::default()).expect("states can be sampled");
    let profile = sampling.stop();
    assert_eq!(profile.method, ProfileMethod::ThreadState);
    println!("LIMITS {}", profile.limits.join(" | "));
}

#[test]
fn without_the_right_it_says_which_one_is_missing() {
    if !rustix::process::geteuid().is_root() {
        throng_sim::skipped("only root can become nobody");
        return;
    }
    // The user nobody may not have access to the test program's directory.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    for path in [folder.path(), &copy] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = Command::new(&copy)
        .args(["--exact", "profiler::inner_half_without_rights", "--ignored", "--nocapture"])
        .current_dir("/")
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["REFUSED", "LIMITS"] {
        let line = text.lines().find_map(|line| line.split_once(part)).expect("it is reported").1;
        assert!(line.contains("perf_event_paranoid is") && line.contains("CAP_PERFMON"), "{line}");
        assert!(line.contains("setcap"), "{line}");
    }
}

#[test]
fn a_profile_that_cannot_be_taken_is_an_error() {
    let refusal = |pids: &[u32], options| match profiler::start(pids, options) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    };
    assert!(refusal(&[], Options::default()).contains("none was given"));
    assert!(refusal(&[u32::MAX], Options::default()).contains("4294967295"));
    let me = [std::process::id()];
    for frequency_hz in [0, 10_001] {
        assert!(
            refusal(&me, Options { frequency_hz, ..Options::default() }).contains("1 to 10000")
        );
    }
}
