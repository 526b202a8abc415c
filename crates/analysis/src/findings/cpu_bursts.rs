//! A thread is full for moments, again and again, though none of its seconds is: what all need at once (a key frame for every
//! viewer) keeps whoever comes next waiting, and the second's mean does not show it.
//!
//! Told by what the watcher reads ten times a second. Other limits are told by more; this one is named where there is none.

use throng_observation::host::Unit;
use throng_observation::host::catalogue as metric;
use throng_observation::units::percent;

use super::{Candidate, Evidence, Seen, cpu_all, cpu_quota};
use crate::scene::{Reading, Scene, Thread};

pub(super) const KEY: &str = "cpu_bursts";
/// A reading this full leaves no room; what begins and ends within a reading shows less than it was.
const FULL_MIN: f64 = 0.90;
/// Readings that tell of moments: a tenth of a second, late by as much again.
const MOMENT_US_MAX: i64 = 250_000;
/// Of the time: one moment in three seconds; and one in each second keeps every frame of it waiting.
const BURSTS_MIN: f64 = 0.03;
const BURSTS_FULL: f64 = 0.10;

pub(super) fn check(scene: &Scene<'_>) -> Seen {
    if !scene.is_seen(&metric::THREAD_CPU) {
        return Seen::Unseen("the server's threads");
    }
    let is_elsewhere = cpu_all::is_full(scene) || scene.throttled().fail() >= cpu_quota::THROTTLED_MIN;
    let has_room = |thread: &&Thread<'_>| thread.cpu.fail() < super::threads::FULL_MIN;
    let of = |thread| (thread, bursts(scene, thread));
    let worst =
        scene.threads.iter().filter(has_room).map(of).max_by(|a, b| a.1.fail().total_cmp(&b.1.fail()));
    let Some((thread, share)) = worst.filter(|(_, share)| !is_elsewhere && share.fail.is_some()) else {
        return Seen::Moot;
    };
    if share.fail() < BURSTS_MIN {
        return Seen::Fine(format!(
            "No thread is full for moments: {} of the time at most",
            percent(share.fail())
        ));
    }
    let label = thread.label();
    Candidate {
        used: (share.fail() / BURSTS_FULL).clamp(0.0, 1.0),
        queue: scene.backlog(),
        crossed_at_s: scene.windows.first_bad_s.map(|second| second as f64),
        series: vec![thread.measured.series.id],
        evidence: vec![
            Evidence::new(format!("share of the time in which {label} was full, read each 100 ms"), Unit::Ratio, share)
                .decides(),
            Evidence::new(format!("thread.cpu of {label}, the median second"), Unit::Ratio, thread.cpu).limit(Some(1.0)),
            Evidence::new("delay of the users' frames above their floor, median", Unit::Milliseconds, scene.users.delay_ms),
        ],
        change: "Spread what comes at once: key frames of different streams at different moments, packets of a key frame paced over the frames after it; or more threads, or a faster core".into(),
        pool: Some(thread.group.clone()),
        ..Candidate::new(
            KEY,
            format!("Thread {label} is full for moments: {} of the time, though its seconds have room", percent(share.fail())),
            format!("thread {label}"),
        )
    }
    .seen()
}

/// In which share of the time a thread was full, of the time in which it was read often enough.
fn bursts(scene: &Scene<'_>, thread: &Thread<'_>) -> Reading {
    let of = scene.reading(|window| thread.measured.share_of_moments(window, FULL_MIN, MOMENT_US_MAX));
    // A thread that was too idle to be read so often was not full.
    let idle = |share: Option<f64>, cpu: Option<f64>| {
        share.or_else(|| cpu.filter(|cpu| *cpu < BURSTS_MIN).map(|_| 0.0))
    };
    Reading { base: idle(of.base, thread.cpu.base), pass: idle(of.pass, thread.cpu.pass), ..of }
}
