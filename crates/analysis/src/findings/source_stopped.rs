//! The source stopped: all viewers of a cohort were served, and within moments none is, while their
//! connections stay. An encoder that was killed, an ingest that broke, a camera
//! that was switched off: no limit of the server is met by all at once.
//!
//! Seen from the crowd. Whether it was the source, or the server or the path stopped, the server's
//! host shows: what came in before the crowd did comes no longer. What comes in with the crowd are
//! its own packets, and end with the media. A server that hangs stops neither.

use std::collections::BTreeMap;

use throng_observation::host::catalogue as metric;
use throng_observation::run::{CohortId, CrowdRow};
use throng_observation::units::count;

use super::{Candidate, CheckResult, Evidence, NoFinding};
use crate::context::{Context, Reading};
use crate::windows::second_range;

pub(super) const KEY: &str = "source_stopped";
/// For so long before it, seconds, viewers may fall silent one after the other: each plays what its
/// buffer has.
const STAGGER_S: i64 = 8;
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
    /// Seconds from the last one in which all had media to it.
    within_s: i64,
    viewers: u32,
    /// Whether they are in a chat and in nothing else: what they lose is the room.
    is_chat: bool,
}

impl Silence {
    fn title(&self, is_proven: bool) -> String {
        let Self { second, seconds, within_s, viewers, is_chat } = self;
        if *is_chat {
            let who = count(u64::from(*viewers), "chatters");
            let within = (*within_s).max(1);
            return format!(
                "{who} dropped out of the room within {within} s, for {seconds} s, and stayed \
                 connected: the chat server or the path"
            );
        }
        match (is_proven, viewers) {
            (true, 1) => format!(
                "The source stopped: the only viewer received nothing from second {second} on, \
                 for {seconds} s, and stayed connected"
            ),
            (true, _) => format!(
                "The source stopped: all {viewers} viewers received nothing from second {second} \
                 on, for {seconds} s, and stayed connected"
            ),
            (false, 1) => format!(
                "The only user lost its media for {seconds} s: the source, the server or the path"
            ),
            (false, _) if *within_s <= 1 => format!(
                "{viewers} users lost their media in one second, for {seconds} s: the source, the \
                 server or the path"
            ),
            (false, _) => format!(
                "{viewers} users lost their media within {within_s} s, for {seconds} s: the \
                 source, the server or the path"
            ),
        }
    }
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let Some(silence) = silence(context).filter(|silence| !sends(context, silence.second)) else {
        return Err(NoFinding::NotApplicable);
    };
    let (at, viewers) = (silence.second, silence.viewers);
    let (interface, received) = received(context);
    let source = without_viewers(context, received).filter(|source| *source >= INGEST_BYTES_MIN);
    // A chat has no source: what stops coming in is something else.
    let is_proven = !silence.is_chat
        && source.zip(received.fail).is_some_and(|(source, fail)| fail < INGEST_MAX * source);
    let title = silence.title(is_proven);
    let none =
        Reading { base: Some(0.0), pass: Some(0.0), ..Reading::at_failure(f64::from(viewers)) };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: Some(at as f64),
        evidence: vec![
            Evidence::count(
                if silence.is_chat {
                    "chatters that stayed connected and were in no room from one second on"
                } else {
                    "viewers that stayed connected and received nothing from one second on"
                },
                none,
            )
            .crossed(Some(at as f64))
            .decides(),
            Evidence::bytes_per_second(format!("nic.rx_bytes of {interface}"), received),
        ],
        change: if silence.is_chat {
            format!(
                "Look at the chat server's log around second {at}: a restart, a room that was \
                 destroyed, a moderator. It says nothing about the capacity of the server"
            )
        } else {
            format!(
                "Look at what feeds the server around second {at}: the encoder or publisher, its \
                 connection, the server's log of the ingest. It says nothing about the capacity \
                 of the server"
            )
        },
        at_most: if is_proven { 100.0 } else { CAP_UNPROVEN },
        ..Candidate::new(KEY, title, if silence.is_chat { "chat" } else { "source of the media" })
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
    let of_cohort = |(cohort, rows): (&CohortId, &BTreeMap<i64, &CrowdRow>)| {
        rows.range(seconds.clone()).find_map(|(second, last)| {
            // A second after the last one with media, as that of the end may have some of it.
            let silent = [second + 1, second + 2].map(|second| rows.get(&second).copied());
            let before = rows.range(second - STAGGER_S..=*second);
            let (all_at, all) = before
                .map(|(second, row)| (*second, row.playing))
                .max_by_key(|(second, playing)| (*playing, *second))?;
            let stayed = f64::from(all) * CONNECTED_MIN;
            let is_silent = silent.iter().all(|row| {
                row.is_some_and(|row| row.playing == 0 && f64::from(row.connected) >= stayed)
            });
            let has_ended = last.playing > 0 && is_silent;
            let silent = rows.range(second + 1..).take_while(|(_, row)| row.playing == 0).count();
            has_ended.then_some(Silence {
                second: second + 1,
                seconds: silent,
                within_s: second + 1 - all_at,
                viewers: all,
                is_chat: is_chat(context, *cohort),
            })
        })
    };
    cohorts.iter().filter_map(of_cohort).min_by_key(|silence| silence.second)
}

/// Whether a cohort is in a chat and receives no media.
fn is_chat(context: &Context<'_>, cohort: CohortId) -> bool {
    let run = context.run;
    let has_media = run.series.iter().any(|row| row.cohort == cohort)
        || run.playback.iter().any(|row| row.cohort == cohort);
    !has_media && run.chat.iter().any(|row| row.cohort == cohort)
}

/// Whether publishers of the run itself still send then: their source did not stop.
fn sends(context: &Context<'_>, second: i64) -> bool {
    let after =
        |row: &&throng_observation::run::SentRow| (second..second + 3).contains(&row.second);
    context.run.sent.iter().filter(after).any(|row| row.tracks > 0)
}
