//! The source stopped: all viewers of a cohort were served, and from one second to the next none
//! is, while their connections stay. An encoder that was killed, an ingest that broke, a camera
//! that was switched off: no limit of the server is met by all at once.
//!
//! Seen from the crowd. Whether it was the source, or the server or the path stopped, the server's
//! host shows: what came in before the crowd did comes no longer. What comes in with the crowd are
//! its own packets, and end with the media. A server that hangs stops neither.

use std::collections::BTreeMap;

use throng_observation::host::catalogue as metric;
use throng_observation::run::{CohortId, CrowdRow};

use super::{Candidate, CheckResult, Evidence, NoFinding};
use crate::context::{Context, Reading};
use crate::windows::second_range;

pub(super) const KEY: &str = "source_stopped";
/// Least viewers that were served before: one viewer may have a fault of its own.
const VIEWERS_MIN: u32 = 2;
/// Share of them that must still be connected when none receives: who left, or was thrown out, is
/// no proof.
const CONNECTED_MIN: f64 = 0.5;
/// Less than this share of what came in without viewers comes in: the source is not there.
const INGEST_MAX: f64 = 0.5;
/// Bytes a second; less coming in before shows nothing.
const INGEST_BYTES_MIN: f64 = 10_000.0;
/// Highest score without that proof: a server or a path that stops looks the same to the crowd.
const CAP_UNPROVEN: f64 = 65.0;
const LOOPBACK: &str = "lo";

/// The end of the media of a cohort.
struct Silence {
    /// The first second without media.
    second: i64,
    /// How many seconds were seen without any.
    seconds: usize,
    viewers: u32,
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let Some(silence) = silence(context).filter(|silence| !sends(context, silence.second)) else {
        return Err(NoFinding::NotApplicable);
    };
    let (at, seconds, viewers) = (silence.second, silence.seconds, silence.viewers);
    let (interface, received) = received(context);
    let source = without_viewers(context, received).filter(|source| *source >= INGEST_BYTES_MIN);
    let is_proven =
        source.zip(received.fail).is_some_and(|(source, fail)| fail < INGEST_MAX * source);
    let title = if is_proven {
        format!(
            "The source stopped: all {viewers} viewers received nothing from second {at} on, for {seconds} s, and stayed connected"
        )
    } else {
        format!(
            "{viewers} users lost their media in one second, for {seconds} s: the source, the server or the path"
        )
    };
    let none =
        Reading { base: Some(0.0), pass: Some(0.0), ..Reading::at_failure(f64::from(viewers)) };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: Some(at as f64),
        evidence: vec![
            Evidence::count(
                "viewers that stayed connected and received nothing from one second on",
                none,
            )
            .crossed(Some(at as f64))
            .decides(),
            Evidence::bytes_per_second(format!("nic.rx_bytes of {interface}"), received),
        ],
        change: format!(
            "Look at what the server is fed with around second {at}: the encoder or publisher, its connection, the server's log of the ingest. It says nothing about the capacity of the server"
        ),
        at_most: if is_proven { 100.0 } else { CAP_UNPROVEN },
        ..Candidate::new(KEY, title, "source of the media")
    })
}

/// What comes in on the interface on which most came in at the baseline. On the loopback interface
/// what the server sends comes in too.
fn received<'a>(context: &'a Context<'_>) -> (&'a str, Reading) {
    let all = context.host.metric(metric::NIC_RX_BYTES.name).iter();
    let others = all.filter(|series| series.label("interface") != LOOPBACK);
    let readings = others.map(|series| (series.label("interface"), context.median(series)));
    let most = |reading: &Reading| reading.base.unwrap_or(0.0);
    readings.max_by(|a, b| most(&a.1).total_cmp(&most(&b.1))).unwrap_or_default()
}

/// Bytes a second that came in before the crowd did: at the baseline, less what its viewers send,
/// which grows with them.
fn without_viewers(context: &Context<'_>, received: Reading) -> Option<f64> {
    let (base, at_base) = (context.windows.base?.users, received.base?);
    if base <= 0.0 {
        return Some(at_base);
    }
    let (pass, at_pass) = (context.windows.pass?.users, received.pass?);
    let of_a_viewer = ((at_pass - at_base) / (pass - base)).max(0.0);
    (pass > base).then_some(at_base - of_a_viewer * base)
}

/// The first second near the failure from which a whole cohort receives nothing.
fn silence(context: &Context<'_>) -> Option<Silence> {
    let mut cohorts: BTreeMap<CohortId, BTreeMap<i64, &CrowdRow>> = BTreeMap::new();
    for row in &context.run.crowd {
        cohorts.entry(row.cohort).or_default().insert(row.second, row);
    }
    let seconds = second_range(context.onset);
    let of_cohort = |rows: &BTreeMap<i64, &CrowdRow>| {
        rows.range(seconds.clone()).find_map(|(second, last)| {
            // A second after the last one with media, as that of the end may have some of it.
            let silent = [second + 1, second + 2].map(|second| rows.get(&second).copied());
            let stayed = f64::from(last.playing) * CONNECTED_MIN;
            let is_silent = silent.iter().all(|row| {
                row.is_some_and(|row| row.playing == 0 && f64::from(row.connected) >= stayed)
            });
            let has_ended = last.playing >= VIEWERS_MIN && is_silent;
            let silent = rows.range(second + 1..).take_while(|(_, row)| row.playing == 0).count();
            has_ended.then_some(Silence {
                second: second + 1,
                seconds: silent,
                viewers: last.playing,
            })
        })
    };
    cohorts.values().filter_map(of_cohort).min_by_key(|silence| silence.second)
}

/// Whether publishers of the run itself still send then: their source did not stop.
fn sends(context: &Context<'_>, second: i64) -> bool {
    let after =
        |row: &&throng_observation::run::SentRow| (second..second + 3).contains(&row.second);
    context.run.sent.iter().filter(after).any(|row| row.tracks > 0)
}
