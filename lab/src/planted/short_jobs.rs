//! A nuisance: jobs of another program come and go, whose name the watch of the server matches too.
//! Some end beside the bad seconds, and none of them is the server.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Planted;
use crate::search::{Answer, Lab, Outcome};
use crate::stage::Stage;

/// No other program has this name.
const NAME: &str = "throng-lab-job";
/// How long a job lives, seconds, and how long none does after it.
const LIVES_S: &str = "1";
const PAUSE: Duration = Duration::from_secs(2);

pub(super) const PLANTED: Planted = Planted {
    name: "short jobs",
    what: "stage, 1 worker, 800 passes a packet, beside jobs of 1 s that the watch matches too",
    expects: &["one_thread_full", "single_threaded"],
    verdict: "found",
    is_short: false,
    plant,
};

/// The one of that name that is there from the start; it ends when dropped.
struct Long(Child);

impl Drop for Long {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join(NAME);
    std::fs::copy("/bin/sleep", &program)?;
    let _long = Long(Command::new(&program).arg("3600").spawn()?);
    let stage = Stage::start(lab, None, &["--workers", "1", "--work-per-packet", "800"])?;
    let answer = beside_jobs(&program, || {
        let watch = format!("pid={}", stage.pid());
        let jobs = format!("process={NAME}");
        let more = ["--ceiling", "200", "--watch", &jobs];
        lab.find(None, "short-jobs", &stage.url, &watch, &more)
    })?;
    let answer = answer.never_saying(&["server_crashed", "ended under the load"]);
    Ok(Outcome { answer, truth: None })
}

/// What `search` finds while jobs come and go.
fn beside_jobs(
    program: &Path,
    search: impl FnOnce() -> anyhow::Result<Answer>,
) -> anyhow::Result<Answer> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = Command::new(program).arg(LIVES_S).status();
                std::thread::sleep(PAUSE);
            }
        });
        let answer = search();
        is_over.store(true, Ordering::Relaxed);
        answer
    })
}
