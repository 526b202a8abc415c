//! Nobody was ever connected: the server was not reached, or sent everybody away. No resource was asked for anything then,
//! and what the host did meanwhile is somebody else's doing.

use std::collections::BTreeMap;

use throng_observation::host::Unit;
use throng_observation::run::ParticipantRow;
use throng_observation::{Failure, FailureReason, Outcome, Phase};

use super::{Candidate, CheckResult, Evidence};
use crate::context::{Context, Reading};
use crate::windows::was_nobody_connected;

pub(super) const KEY: &str = "never_connected";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    if !was_nobody_connected(context.run) {
        return CheckResult::NotApplicable;
    }
    let began = |row: &&ParticipantRow| row.reached.contains_key(&Phase::Started) || row.failure().is_some();
    let all: Vec<&ParticipantRow> = context.run.participants.iter().filter(began).collect();
    let failures = by_reason(&all);
    // Before anybody came nobody was sent away.
    let since = |count: usize| Reading { base: Some(0.0), fail: Some(count as f64), ..Reading::default() };
    let failed: usize = failures.iter().map(|(_, list)| list.len()).sum();
    let Some((reason, most)) = failures.first() else {
        return waited(context, &all).suspect();
    };
    let detail = most.first().map_or("", |failure| failure.detail.as_str());
    let told = if detail.is_empty() { what(reason).to_owned() } else { detail.to_owned() };
    let alike =
        if most.len() == failed { String::new() } else { format!(", the others {}", rest(&failures)) };
    let mut evidence = vec![Evidence::new(
        format!("participants who failed: {} ({})", what(reason), reason.key()),
        Unit::Count,
        since(most.len()),
    )];
    evidence.extend(failures.iter().skip(1).map(|(reason, list)| {
        let name = format!("participants who failed: {} ({})", what(reason), reason.key());
        Evidence::new(name, Unit::Count, since(list.len()))
    }));
    evidence.push(Evidence::new("participants who began to join", Unit::Count, since(all.len())));
    Candidate {
        evidence,
        change: change(reason).to_owned(),
        ..candidate(context, format!("Nobody could connect: {told} ({} of {}{alike})", most.len(), all.len()))
    }
    .suspect()
}

/// Nobody failed either: all were still waiting when the run ended.
fn waited(context: &Context<'_>, all: &[&ParticipantRow]) -> Candidate {
    let furthest = all.iter().filter_map(|row| row.reached.keys().max()).max();
    let got_to = furthest.map_or("started", |phase| phase.key());
    let since = Reading { base: Some(0.0), fail: Some(all.len() as f64), ..Reading::default() };
    Candidate {
        evidence: vec![Evidence::new(
            format!("participants who waited until the end, none beyond {got_to}"),
            Unit::Count,
            since,
        )],
        change: "Look at what stands between: a firewall that drops silently, a wrong address, a server that accepts and does not answer".into(),
        ..candidate(context, format!("Nobody was connected when the run ended: {} waited, none got beyond {got_to}", all.len()))
    }
}

fn candidate(context: &Context<'_>, title: String) -> Candidate {
    Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: context.windows.first_bad_s.map(|second| second as f64),
        ..Candidate::new(KEY, title, "the way to the server")
    }
}

/// Those who failed, the most frequent reason first; what the generator could not do is told by another finding.
fn by_reason<'a>(all: &[&'a ParticipantRow]) -> Vec<(FailureReason, Vec<&'a Failure>)> {
    let mut reasons: BTreeMap<String, (FailureReason, Vec<&Failure>)> = BTreeMap::new();
    for row in all {
        if let Some(Outcome::Failed(failure)) = &row.outcome
            && !failure.reason.is_ours()
            && failure.reason != FailureReason::NotStarted
        {
            let of =
                reasons.entry(failure.reason.key()).or_insert_with(|| (failure.reason.clone(), Vec::new()));
            of.1.push(failure);
        }
    }
    let mut reasons: Vec<_> = reasons.into_values().collect();
    reasons.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
    reasons
}

fn rest(failures: &[(FailureReason, Vec<&Failure>)]) -> String {
    let of = |(reason, list): &(FailureReason, Vec<&Failure>)| format!("{} {}", list.len(), reason.key());
    failures.iter().skip(1).map(of).collect::<Vec<_>>().join(", ")
}

/// What went wrong, for those to whom the server's own words are not enough.
fn what(reason: &FailureReason) -> &'static str {
    match reason {
        FailureReason::Dns => "the server's name has no address",
        FailureReason::Tcp => "no TCP connection to the server",
        FailureReason::Tls => "no TLS with the server",
        FailureReason::HttpStatus(_) => "the server answered with an HTTP error",
        FailureReason::Protocol => "what the server said was not the protocol",
        FailureReason::Refused => "the server refused",
        FailureReason::NoSuchRoom => "there is no such room",
        FailureReason::RoomFull => "the room is full",
        FailureReason::Unauthorized => "the server wants another key, PIN or token",
        FailureReason::Kicked => "the room threw them out",
        FailureReason::RoomEnded => "the room was destroyed",
        FailureReason::CodecRefused => "the server takes none of the codecs",
        FailureReason::SignallingTimeout => "the server did not answer in time",
        FailureReason::SignallingClosed => "the server closed the signalling",
        FailureReason::Ice => "no ICE candidate pair worked",
        FailureReason::Dtls => "DTLS did not complete",
        FailureReason::NoMedia | FailureReason::MediaLost => "no media came",
        FailureReason::NotAllowed => "the target is not allowed",
        FailureReason::Generator | FailureReason::InternalError | FailureReason::NotStarted => {
            "the generator could not"
        }
    }
}

fn change(reason: &FailureReason) -> &'static str {
    match reason {
        FailureReason::Dns => "The host name in the target's URL, or the resolver of this host",
        FailureReason::Tcp => {
            "Is the server running, and does it listen at this address and port (ss -ltn)? A firewall in between, or the wrong URL"
        }
        FailureReason::Tls => {
            "The server's certificate and its name, or http instead of https: what the failure says"
        }
        FailureReason::HttpStatus(401 | 403) | FailureReason::Unauthorized => {
            "The key, PIN or token in the target, and what the server expects"
        }
        FailureReason::HttpStatus(404) | FailureReason::NoSuchRoom => {
            "The path or room in the target: does it exist, and does anybody publish there?"
        }
        FailureReason::HttpStatus(503) | FailureReason::RoomFull => {
            "The server says that it is full before the first user: a maximum in its configuration or licence, or a backend behind it that is down"
        }
        FailureReason::HttpStatus(_) => {
            "What the server's log says of these requests; the path and the method in the target"
        }
        FailureReason::Ice => {
            "UDP between here and the addresses that the server offers: its public address in the configuration, its port range, a firewall; or TURN"
        }
        FailureReason::Dtls => {
            "UDP packets of 1,200 bytes between both, the server's certificate, and its log"
        }
        FailureReason::CodecRefused => {
            "The codecs of the crowd (video, audio) and those that the server takes"
        }
        FailureReason::NotAllowed => "The consent that the target has to give (docs/consent.md)",
        FailureReason::SignallingTimeout => {
            "Is the right server at this address? It accepts and does not answer: its log, and a backend behind it"
        }
        _ => "What the server's log says of these participants",
    }
}
