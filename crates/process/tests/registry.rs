//! The registry is that of the process, so this is one test.

use std::io::Read as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::catch_unwind;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use throng_process::{EndsAll, Started, end_all, end_all_within};

/// A shell that has said that it is ready, in a process group of its own.
fn started(script: &str) -> (Child, Started) {
    let mut command = Command::new("sh");
    command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let registered = Started::group(child.id());
    (child, registered)
}

fn ended_by(child: &mut Child) -> Option<i32> {
    child.wait().unwrap().signal()
}

/// How many living processes are in this group (proc_pid_stat(5), field 5).
fn living(group: &str) -> usize {
    let is_in = |stat: String| {
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| is_in(stat.clone()))
        .count()
}

#[test]
fn the_registry_is_emptied_at_every_end() {
    // Whoever has ended what it started has nothing in it.
    let (mut other, registered) = started("echo; exec sleep 100");
    drop(registered);
    end_all();
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();

    // Time for a shell on a busy machine to take the first SIGTERM before the second comes: two
    // that wait are one.
    let twice = "trap 'trap \"exit 7\" TERM' TERM; echo; while :; do sleep 0.01; done";
    let (mut asked_twice, _asked_twice) = started(twice);
    end_all_within(Duration::from_secs(1), Duration::from_secs(5));
    assert_eq!(
        asked_twice.wait().unwrap().code(),
        Some(7),
        "a throng counts one with its parent's"
    );

    // Whole groups, also what ignores SIGTERM.
    let (mut polite, _polite) = started("echo; exec sleep 100");
    let (mut stubborn, _stubborn) = started("trap '' TERM; sleep 100 & echo; wait");
    end_all();
    assert_eq!((ended_by(&mut polite), ended_by(&mut stubborn)), (Some(15), Some(9)));
    let until = Instant::now() + Duration::from_secs(5);
    let group = stubborn.id().to_string();
    while living(&group) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(living(&group), 0, "what it had started");

    // A panic, and nobody who drops what was started.
    let panicked: Result<(), _> = catch_unwind(|| {
        let _ends = EndsAll;
        let (child, registered) = started("echo; exec sleep 100");
        std::mem::forget(registered);
        std::panic::panic_any(child);
    });
    let mut left = panicked.unwrap_err().downcast::<Child>().unwrap();
    assert_eq!(ended_by(&mut left), Some(15));
}
