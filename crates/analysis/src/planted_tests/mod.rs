//! Each limit planted into a made-up search with noise: the verdict has to name it, and only it.

mod cpu_tests;
mod ended_tests;
mod even_growth_tests;
mod family_tests;
mod law_tests;
mod line_tests;
mod look_alike_tests;
mod planted_limits;
mod player_tests;
mod refusal_tests;
mod simulated_run;
mod source_tests;
mod tcp_memory_tests;
mod watch_tests;

use throng_observation::Goal;
use throng_observation::host::Unit;
use throng_observation::pack::PACKS_FACT;

use crate::bottleneck::{BottleneckVerdict, Explanation, explain};
use crate::demand::{Resource, after};
use crate::reasons::words;
use planted_limits::{
    PLANTED_LIMITS, full, full_line, hot_worker, refaults, slow_disk, slow_reader, turns,
};
use simulated_run::{FAIL, PASS, SimulatedRun, UserImpact};

fn explained(sim: &mut SimulatedRun) -> Explanation {
    explain(&sim.run(), Goal::Acceptable)
}

/// A limit is planted; the verdict names it, with evidence, and what it was not.
fn check(expect: &str, plant: impl Fn(&mut SimulatedRun)) {
    let mut sim = SimulatedRun::new();
    plant(&mut sim);
    let found = explained(&mut sim).bottleneck;
    let context = format!("{expect}: {found:#?}");
    assert_eq!(found.finding.as_deref(), Some(expect), "{context}");
    assert!(matches!(found.verdict, BottleneckVerdict::Bottleneck), "{context}");
    assert!(found.score.is_some_and(|score| (70.0..=100.0).contains(&score)), "{context}");
    assert!(found.evidence.len() >= 3 && !found.ruled_out.is_empty(), "{context}");
    assert!(found.change.is_some_and(|change| !change.is_empty()), "{context}");
    assert!(
        !found.title.is_empty() && found.resource.is_some_and(|resource| !resource.is_empty()),
        "{context}"
    );
}

/// The first plant of a finding.
fn plant_of(key: &str) -> planted_limits::PlantLimit {
    PLANTED_LIMITS.iter().find(|(planted, _)| *planted == key).map(|(_, plant)| *plant).unwrap()
}

#[test]
fn a_full_thread_is_named_with_its_setting_and_the_moment_at_which_it_was_full() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert!(found.change.is_some_and(|change| change.contains("--workers (media.conf)")));
    let next = found.prediction.expect("something ends next");
    assert!(next.users > f64::from(FAIL), "{next:?}");
    let crossed = found.evidence.iter().find_map(|line| line.crossed_at_s).expect("a crossing");
    assert!(
        found
            .first_bad_s
            .is_some_and(|bad| (bad as f64 - 15.0..bad as f64 + 2.0).contains(&crossed)),
        "{crossed}"
    );
}

/// The log of OvenMediaEngine says how long the queue of its full worker is.
#[test]
fn what_a_log_says_of_a_full_thread_is_evidence_and_what_it_says_of_others_is_none() {
    let pack = |thread: &str| {
        format!(
            r#"[{{"pack":"media","processes":["media"],"log":[{{"id":"queue","pattern":"queue","thread":"{thread}",
               "meaning":"Packets wait","value":[{{"group":"size","metric":"media.queue","unit":"count","meaning":"how many"}}]}}]}}]"#
        )
    };
    let said = |planted: &str, key: &str, thread: &str| {
        let mut sim = SimulatedRun::new();
        plant_of(planted)(&mut sim);
        sim.facts.insert(PACKS_FACT.to_owned(), pack(thread));
        let labels = [("log", "/l"), ("pattern", "queue")];
        sim.put("log.lines", &labels, Unit::PerSecond, None, |m| if m.over { 2.0 } else { 0.0 });
        sim.put(
            "media.queue",
            &labels[..1],
            Unit::Count,
            None,
            |m| if m.over { 922.0 } else { 12.0 },
        );
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some(key), "{found:#?}");
        found
            .evidence
            .into_iter()
            .filter(|line| line.counter.starts_with("media.queue"))
            .collect::<Vec<_>>()
    };
    // Workers may be full while the whole host is: their queue is evidence of that too. Of a thread
    // this pack knows no setting that would make more of it.
    for (planted, key) in [("one_thread_full", "single_threaded"), ("cpu_full", "cpu_full")] {
        let told = said(planted, key, "WORKER-*");
        assert!(told.len() == 1 && told[0].fail.is_some_and(|size| size > 800.0), "{told:#?}");
        assert!(told[0].pass.is_some_and(|size| size < 100.0), "{told:#?}");
        assert!(said(planted, key, "other-*").is_empty(), "{key}");
    }
}

/// What names of one limit have in common, so that an experiment on it counts them together.
#[test]
fn a_thread_that_is_the_limit_is_given_apart_whichever_finding_names_it() {
    for key in ["one_thread_full", "cpu_bursts", "run_queue"] {
        let mut sim = SimulatedRun::new();
        plant_of(key)(&mut sim);
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some(key));
        assert!(
            found.thread.as_ref().is_some_and(|name| name.starts_with("worker-")),
            "{found:#?}"
        );
        assert_eq!(found.setting.as_deref(), Some("--workers"), "{found:#?}");
    }
    let mut sim = SimulatedRun::new();
    full_line(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!((found.thread, found.setting), (None, None));
}

#[test]
fn a_host_that_others_kept_full_from_the_start_does_not_hide_a_lock() {
    let mut sim = SimulatedRun::new();
    turns(&mut sim, "relay");
    for (name, tid) in [("t-a", 11), ("t-b", 12), ("t-c", 13), ("t-d", 14)] {
        sim.thread("relay", name, tid, |m| full(m) / 4.0, |m| if m.over { 0.25 } else { 0.05 });
    }
    sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |_| 1.99);
    let found = explained(&mut sim).bottleneck;
    let named: Vec<_> = found
        .finding
        .iter()
        .chain(found.other_findings.iter().map(|other| &other.finding))
        .collect();
    assert!(named.iter().any(|key| *key == "lock_contention"), "{found:#?}");
}

#[test]
fn workers_without_a_core_left_for_another_are_the_cpu() {
    // Workers that bursts of frames keep from being quite full, and neither waits: where there is a
    // core for each and no more, another worker finds none; where there are more cores, it does.
    let workers = |sim: &mut SimulatedRun, cores: f64| {
        sim.without("thread.cpu").without("thread.run_queue_wait");
        sim.thread("media", "worker-0", 11, |m| 0.95 * full(m), |_| 0.03);
        sim.thread("media", "worker-1", 12, |m| 0.84 * full(m), |_| 0.03);
        sim.process("media", |m| 1.79 * full(m));
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(cores), |m| 1.82 * full(m));
    };
    check("cpu_full", |sim| workers(sim, 2.0));
    check("one_thread_full", |sim| workers(sim, 8.0));
    // A full thread, and one with other work that leaves much of its core: that rest has room for
    // another worker.
    check("one_thread_full", |sim| {
        sim.without("thread.cpu").without("thread.run_queue_wait");
        sim.thread("media", "worker-0", 11, full, |_| 0.03);
        sim.thread("media", "mixer", 12, |m| 0.65 * full(m), |_| 0.03);
        sim.process("media", |m| 1.65 * full(m));
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |m| 1.68 * full(m));
    });
}

#[test]
fn a_host_that_others_fill_is_not_the_limit_of_a_thread_that_never_waits() {
    check("one_thread_full", |sim| {
        hot_worker(sim);
        // The generator shares the host's cores.
        sim.put("host.cpu.busy", &[], Unit::Ratio, Some(2.0), |m| 1.98 * full(m));
    });
}

#[test]
fn of_several_disks_it_is_the_servers_own_and_iowait_alone_is_none() {
    let mut sim = SimulatedRun::new();
    slow_disk(&mut sim);
    sim.put("disk.read_bytes", &[("device", "vda")], Unit::BytesPerSecond, None, |_| 80e6);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.resource.as_deref(), Some("disk loop3"), "others read more from theirs");
    let mut sim = SimulatedRun::new();
    sim.put("host.cpu.iowait", &[], Unit::Ratio, Some(8.0), |_| 7.5);
    sim.put("host.pressure.io.some", &[], Unit::Ratio, None, |m| if m.over { 1.0 } else { 0.1 });
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.verdict, BottleneckVerdict::Unattributed, "{found:#?}");
}

#[test]
fn a_page_cache_that_another_process_fills_is_not_named() {
    let mut sim = SimulatedRun::new();
    sim.put("host.memory.refaults_file", &[], Unit::PerSecond, None, refaults);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        found.verdict,
        BottleneckVerdict::Unattributed,
        "files of another process: {found:#?}"
    );
}

#[test]
fn a_buffer_behind_a_full_thread_is_the_threads_doing() {
    check("one_thread_full", |sim| {
        hot_worker(sim);
        slow_reader(sim);
    });
}

#[test]
fn a_generator_past_its_limits_says_nothing_about_the_server() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    sim.generator_cpu = 0.9;
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.verdict, found.finding.as_deref()),
        (BottleneckVerdict::GeneratorLimited, Some("generator_limited"))
    );
}

fn profile(sim: &mut SimulatedRun, symbols: &[(&'static str, &'static str, u32)]) {
    sim.profile = Some(symbols.to_vec());
}

#[test]
fn what_a_full_thread_is_busy_with_explains_it() {
    for (symbol, module, key) in [
        ("__memmove_avx_unaligned_erms", "libc.so.6", "copy_dominated"),
        ("H264Parser_step", "media", "hot_function"),
        ("aesni_ctr32_encrypt_blocks", "libcrypto.so.3", "crypto"),
        ("udp_sendmsg", "[kernel]", "system_calls"),
    ] {
        let mut sim = SimulatedRun::new();
        hot_worker(&mut sim);
        profile(
            &mut sim,
            &[(symbol, module, 500), ("a", "media", 100), ("b", "media", 100), ("c", "media", 100)],
        );
        let found = explained(&mut sim).bottleneck;
        assert_eq!(found.finding.as_deref(), Some("one_thread_full"), "{found:#?}");
        assert!(found.other_findings.iter().any(|other| other.finding == key), "{key}: {found:#?}");
    }
}

#[test]
fn ordinary_encryption_explains_nothing() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    let many = ["a", "b", "c", "d", "e", "f"].map(|name| (name, "media", 100));
    let mut symbols = many.to_vec();
    symbols.extend([("srtp_protect", "libsrtp2", 100), ("aesni_x", "libcrypto", 100)]);
    profile(&mut sim, &symbols);
    let found = explained(&mut sim).bottleneck;
    assert!(found.other_findings.is_empty(), "{:#?}", found.other_findings);
}

#[test]
fn what_the_users_suffer_from_is_said_though_no_cause_is_found() {
    for (impact, expect) in [
        (UserImpact::Delay, "delay alone"),
        (UserImpact::Loss, "loss alone"),
        (UserImpact::NotServed, "not connected alone"),
        (UserImpact::Stall, "stall alone"),
    ] {
        for is_watched in [true, false] {
            let mut sim = SimulatedRun::new();
            (sim.impact, sim.is_watched) = (impact, is_watched);
            let found = explained(&mut sim).bottleneck;
            assert_eq!(words(&found.reasons).as_deref(), Some(expect), "{found:#?}");
        }
    }
}

#[test]
fn nothing_full_is_said_to_be_nothing_that_can_be_seen() {
    let found = explained(&mut SimulatedRun::new()).bottleneck;
    assert_eq!((found.verdict, found.finding), (BottleneckVerdict::Unattributed, None));
    assert!(
        found.ruled_out.len() >= 5 && found.title.contains("No saturated resource"),
        "{:?}",
        found.ruled_out
    );
}

#[test]
fn two_limits_at_once_are_both_named() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    full_line(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.verdict, BottleneckVerdict::CoBottleneck, "{found:#?}");
    assert!(
        found.title.contains("Two limits at once") && found.other_findings.len() == 1,
        "{found:#?}"
    );
}

#[test]
fn without_a_watcher_the_cause_was_not_observed() {
    let mut sim = SimulatedRun::new();
    sim.is_watched = false;
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.verdict, BottleneckVerdict::NotMonitored);
    assert!(found.title.contains("not monitored") && found.change.is_some());
}

#[test]
fn a_plain_run_gets_a_cause_too() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    sim.is_search = false;
    let explained = explained(&mut sim);
    assert_eq!(
        explained.bottleneck.finding.as_deref(),
        Some("one_thread_full"),
        "{:#?}",
        explained.bottleneck
    );
    assert!(explained.demand.iter().any(|demand| demand.users.is_some()));
}

#[test]
fn a_run_in_which_nothing_failed_has_nothing_to_explain() {
    let mut sim = SimulatedRun::new();
    let mut run = sim.run();
    run.holds.retain(|hold| hold.users <= PASS);
    run.experience.iter_mut().for_each(|row| row.bad = 0);
    let found = explain(&run, Goal::Acceptable);
    assert_eq!(found.bottleneck.verdict, BottleneckVerdict::NothingFailed);
    assert!(!found.demand.is_empty(), "the cost of a user is reported all the same");
    assert_eq!(
        explain(&Default::default(), Goal::Clean).bottleneck.verdict,
        BottleneckVerdict::NothingFailed
    );
}

#[test]
fn the_resource_that_ends_first_stands_first_and_the_next_after_the_fix() {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    let explained = explained(&mut sim);
    let first = &explained.demand[0];
    assert!(first.name().contains("worker-0") && !first.extrapolated, "{first:?}");
    let users = first.users.unwrap();
    assert!((users / (f64::from(PASS) * 0.95 / 0.94) - 1.0).abs() < 0.03, "{users}");
    let next = explained.bottleneck.prediction.unwrap();
    let is_within =
        next.users_low <= next.users && next.users_high.is_none_or(|high| next.users < high);
    assert!(next.extrapolated && is_within, "{next:?}");
}

#[test]
fn a_prediction_that_names_threads_names_their_setting() {
    let explained = explained(&mut SimulatedRun::new());
    for resource in [Resource::Thread, Resource::ThreadGroup] {
        let next =
            after(&explained.demand, 40.0, 200.0, |demand| demand.resource != resource).unwrap();
        assert!(next.next_resource.ends_with(", whose setting is --workers"), "{next:?}");
    }
    let others = explained.demand.iter().filter(|demand| demand.group.is_none());
    assert!(others.clone().count() > 3 && others.clone().all(|demand| demand.setting.is_none()));
}

#[test]
fn every_finding_has_its_heading_in_the_documentation() {
    let page = include_str!("../../../../docs/findings.md");
    for (key, _) in crate::findings::RULES {
        assert!(page.contains(&format!("\n### {key}\n\n")), "{key}");
    }
}
