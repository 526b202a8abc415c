//! A proof that takes the whole machine: one worker fills a core, and four take what is left.

use std::time::{Duration, Instant};

use throng_sim::not_tested;

use super::{Fixture, stage, viewers};
use crate::matrix::said;
use crate::throng::{Running, Stage, figure};

const WORK: &str = "600";

/// How many viewers of a stage that works for each packet need `cores` of this machine.
fn viewers_that_need(cores: f64) -> u32 {
    const FEW: u32 = 3;
    let stage = Stage::start(None, "127.0.0.1:0", &["--workers", "1", "--work-per-packet", WORK]);
    let few = FEW.to_string();
    let running = Running::start(
        None,
        &["view", &stage.target(), "-n", &few, "--every", "50ms", "--for", "5s", "--quiet"],
    );
    std::thread::sleep(Duration::from_secs(2));
    let (before, began) = (cpu_s(stage.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let used = (cpu_s(stage.pid()) - before) / began.elapsed().as_secs_f64();
    assert_eq!(running.wait().code, Some(0));
    (cores / used * f64::from(FEW)).ceil() as u32
}

/// The CPU time of a process (proc_pid_stat(5): utime, stime), in ticks of 10 ms there.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks =
        after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}

/// One worker has one core; viewers need more.
/// A minute: a run measures what viewers cost, and four follow, each after 5 s of an idle server.
#[test]
#[ignore = "the whole machine for a minute: scripts/proof.sh long, make proof"]
fn four_workers_for_one_confirm_the_thread() {
    let crowd = viewers(viewers_that_need(1.55));
    let server = stage(
        &format!("\"--workers\", \"{{{{workers}}}}\", \"--work-per-packet\", \"{WORK}\""),
        "",
    );
    let text = format!(
        "hold = \"3s\"\n{server}[[variant]]\nname = \"one worker\"\nvariables = {{ workers = 1 }}\n\
         [[variant]]\nname = \"four workers\"\nvariables = {{ workers = 4 }}\nrelieves = \"cpu\"\n"
    );
    let fixture = Fixture::new(&crowd, 2, &text);
    let ended = fixture.start_new(None).wait_with_output().unwrap();
    let cells = &fixture.answer()["cells"];
    if cells[1]["finding"] == "cpu_full" {
        not_tested("four workers filled all CPUs: this machine has nothing left for a second one");
    }
    let runs = cells[0]["runs"].as_array().unwrap();
    if runs.iter().any(|run| figure(run, "figures.served_ratio") > 0.05) {
        not_tested(
            "one worker served some viewers: this machine was faster than when it was measured",
        );
    }
    let answer = fixture.decided(&ended);
    let proof = &answer["proofs"][0];
    assert_eq!(proof["outcome"], "confirmed", "{proof:#}\n{}", said(&ended));
    let before = proof["baseline_finding"].as_str().unwrap_or_default();
    assert!(["one_thread_full", "single_threaded"].contains(&before), "{proof:#}");
    assert_ne!(proof["finding"], proof["baseline_finding"], "{proof:#}");
    let page = std::fs::read_to_string(fixture.output().join("report.html")).unwrap();
    assert!(page.contains(">Proof</a></h2>") && page.contains("confirmed"));
}
