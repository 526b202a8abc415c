//! The source stopped: all viewers of a cohort were served, and within moments none is. An encoder
//! that was killed, an ingest that broke, a camera that was switched off: no limit of the server is
//! met by all at once.
//!
//! Seen from the crowd: its viewers stay connected without media (`silence`), or the server
//! disconnects all of them and lives on (`cut_off`). Whether it was the source, or the server or
//! the path stopped, the server's own counters or its host show (`ingest`).

use throng_observation::units::count;

use super::score::CAP_COMPANY;
use super::{Candidate, CheckResult, Evidence, NoFinding};
use crate::context::{Context, Reading};

mod cut_off;
mod ingest;
mod silence;

use ingest::Ingest;

pub(super) const KEY: &str = "source_stopped";
/// Highest score without proof of the source where viewers stay connected: a server or a path that
/// stops looks the same to the crowd.
const CAP_UNPROVEN: f64 = 65.0;

/// The end of the media of a cohort.
struct Loss {
    /// The first second without media.
    second: i64,
    /// Seconds from the last one in which all had media to it.
    within_s: i64,
    viewers: u32,
    how: How,
}

/// What the viewers of a cohort that lost its media have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// They stay connected without media, for so many seconds as were seen.
    Silent { seconds: usize },
    /// They are in a chat and in nothing else: what they lose is the room.
    Roomless { seconds: usize },
    /// The server disconnected them, and lives on.
    CutOff,
}

impl Loss {
    fn title(&self, is_proven: bool) -> String {
        let Self { second, within_s, viewers, how } = self;
        let within = (*within_s).max(1);
        match (how, is_proven, viewers) {
            (How::Roomless { seconds }, _, _) => format!(
                "{} dropped out of the room within {within} s, for {seconds} s, and stayed \
                 connected: the chat server or the path",
                count(u64::from(*viewers), "chatters")
            ),
            (How::Silent { seconds }, true, 1) => format!(
                "The source stopped: the only viewer received nothing from second {second} on, \
                 for {seconds} s, and stayed connected"
            ),
            (How::Silent { seconds }, true, _) => format!(
                "The source stopped: all {viewers} viewers received nothing from second {second} \
                 on, for {seconds} s, and stayed connected"
            ),
            (How::Silent { seconds }, false, 1) => format!(
                "The only user lost its media for {seconds} s: the source, the server or the path"
            ),
            (How::Silent { seconds }, false, _) if *within_s <= 1 => format!(
                "{viewers} users lost their media in one second, for {seconds} s: the source, the \
                 server or the path"
            ),
            (How::Silent { seconds }, false, _) => format!(
                "{viewers} users lost their media within {within_s} s, for {seconds} s: the \
                 source, the server or the path"
            ),
            (How::CutOff, true, _) => format!(
                "The source stopped: the server disconnected all {viewers} viewers within \
                 {within} s, and lived on"
            ),
            (How::CutOff, false, _) => format!(
                "All {viewers} viewers were disconnected within {within} s, and the server lived \
                 on: the source, the server or the path"
            ),
        }
    }

    /// What of the viewers decides.
    fn counter(&self) -> &'static str {
        match self.how {
            How::Silent { .. } => {
                "viewers that stayed connected and received nothing from one second on"
            }
            How::Roomless { .. } => {
                "chatters that stayed connected and were in no room from one second on"
            }
            How::CutOff => "viewers that were disconnected together while the server lived on",
        }
    }

    fn change(&self) -> String {
        let at = self.second;
        match self.how {
            How::Roomless { .. } => format!(
                "Look at the chat server's log around second {at}: a restart, a room that was \
                 destroyed, a moderator. It says nothing about the capacity of the server"
            ),
            How::Silent { .. } | How::CutOff => format!(
                "Look at what feeds the server around second {at}: the encoder or publisher, its \
                 connection, the server's log of the ingest. It says nothing about the capacity \
                 of the server"
            ),
        }
    }
}

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let loss = silence::find(context).or_else(|| cut_off::find(context));
    let Some(loss) = loss.filter(|loss| !sends(context, loss.second)) else {
        return Err(NoFinding::NotApplicable);
    };
    let ingest = Ingest::of(context, loss.second);
    let (is_proven, resource, cap) = match loss.how {
        // A chat has no source: what stops coming in is something else.
        How::Roomless { .. } => (false, "chat", CAP_UNPROVEN),
        How::Silent { .. } => (ingest.has_stopped(), "source of the media", CAP_UNPROVEN),
        // A server that is full may disconnect all as well.
        How::CutOff => (ingest.has_stopped(), "source of the media", CAP_COMPANY),
    };
    let at_s = Some(loss.second as f64);
    let viewers = f64::from(loss.viewers);
    let none = Reading { base: Some(0.0), pass: Some(0.0), ..Reading::at_failure(viewers) };
    Ok(Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: at_s,
        evidence: vec![
            Evidence::count(loss.counter(), none).crossed(at_s).decides(),
            Evidence::bytes_per_second(ingest.counter, ingest.received),
        ],
        change: loss.change(),
        at_most: if is_proven { 100.0 } else { cap },
        ..Candidate::new(KEY, loss.title(is_proven), resource)
    })
}

/// Whether publishers of the run itself still send then: their source did not stop.
fn sends(context: &Context<'_>, second: i64) -> bool {
    let after =
        |row: &&throng_observation::run::SentRow| (second..second + 3).contains(&row.second);
    context.run.sent.iter().filter(after).any(|row| row.tracks > 0)
}
