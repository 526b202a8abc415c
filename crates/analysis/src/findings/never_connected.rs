//! No participant ever connected: the server was not reached, or rejected all. No resource of the
//! server had a load then, and the host's counters show the work of others.

use std::collections::BTreeMap;

use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::{Failure, FailureReason, Outcome, Phase, RefusalKind};

use super::{Candidate, CheckResult, Evidence, NoFinding};
use crate::context::{Context, Reading};
use crate::windows::{sources, was_none_served};

pub(super) const KEY: &str = "never_connected";

pub(super) fn check(context: &Context<'_>) -> CheckResult {
    let all = users(context.run);
    // The crowd's line counts who was connected at any time, however briefly.
    if !was_none_served(context.run) || all.iter().any(|row| row.was_connected()) {
        return Err(NoFinding::NotApplicable);
    }
    let failures = by_reason(&all);
    // Before the first join no participant failed.
    let since =
        |count: usize| Reading { base: Some(0.0), fail: Some(count as f64), ..Reading::default() };
    let failed: usize = failures.iter().map(|(_, list)| list.len()).sum();
    let Some((reason, most)) = failures.first() else {
        return Ok(waited(context, &all));
    };
    let detail = most.first().map_or("", |failure| failure.detail.as_str());
    let reason_text = if detail.is_empty() { what(reason).to_owned() } else { detail.to_owned() };
    let alike = if most.len() == failed {
        String::new()
    } else {
        format!(", the others {}", rest(&failures))
    };
    let mut evidence = vec![Evidence::count(
        format!("participants that failed: {} ({})", what(reason), reason.key()),
        since(most.len()),
    )];
    evidence.extend(failures.iter().skip(1).map(|(reason, list)| {
        let name = format!("participants that failed: {} ({})", what(reason), reason.key());
        Evidence::count(name, since(list.len()))
    }));
    evidence.push(Evidence::count("participants that began to join", since(all.len())));
    Ok(Candidate {
        evidence,
        change: change(reason).to_owned(),
        ..candidate(
            context,
            format!(
                "No participant could connect: {reason_text} ({} of {}{alike})",
                most.len(),
                all.len()
            ),
        )
    })
}

/// The users that began to join.
pub(super) fn users(run: &RunData) -> Vec<&ParticipantRow> {
    let sources = sources(run);
    let began = |row: &&ParticipantRow| {
        row.reached.contains_key(&Phase::Started) || row.failure().is_some()
    };
    run.participants.iter().filter(began).filter(|row| !sources.contains(&row.cohort)).collect()
}

/// The candidate if no participant failed either: all were still waiting when the run ended.
fn waited(context: &Context<'_>, all: &[&ParticipantRow]) -> Candidate {
    let furthest = all.iter().filter_map(|row| row.reached.keys().max()).max();
    let got_to = furthest.map_or("started", |phase| phase.key());
    let since = Reading { base: Some(0.0), fail: Some(all.len() as f64), ..Reading::default() };
    let change = waited_for(furthest.copied());
    Candidate {
        evidence: vec![Evidence::count(
            format!("participants that waited until the end, none beyond {got_to}"),
            since,
        )],
        change: change.into(),
        ..candidate(
            context,
            format!(
                "No participant was connected when the run ended: {} waited, none got beyond \
                 {got_to}",
                all.len()
            ),
        )
    }
}

/// What to check by how far those got that waited. What came through a firewall once is not what
/// it drops; media may come another way than signalling.
fn waited_for(furthest: Option<Phase>) -> &'static str {
    match furthest {
        Some(Phase::Connected | Phase::Secured | Phase::PageLoaded) => {
            "The server accepts connections and does not answer: check its log, a backend behind \
             it, and that the URL names its protocol"
        }
        Some(Phase::Described) => {
            "The server answered the first requests and not what followed: check its log, and a \
             backend behind it"
        }
        Some(Phase::IceConnected) => change(&FailureReason::Dtls),
        Some(
            Phase::Negotiated
            | Phase::DtlsConnected
            | Phase::Playing
            | Phase::FirstPacket
            | Phase::FirstFrame
            | Phase::PlaybackStarted
            | Phase::Joined,
        ) => {
            "The server answered the setup, and neither the start of the media nor media came: \
             check its log and the source behind it; for media over UDP also a firewall that drops \
             it, and the addresses that the server offers (its candidates, its public address, its \
             port range)"
        }
        Some(Phase::Started | Phase::Resolved) | None => {
            "Check for a firewall that drops silently, a wrong address, or a server that accepts \
             and does not answer"
        }
    }
}

fn candidate(context: &Context<'_>, title: String) -> Candidate {
    Candidate {
        used: 1.0,
        refuses: true,
        crossed_at_s: context.first_bad_s(),
        ..Candidate::new(KEY, title, "connection to the server")
    }
}

/// The failures, the most frequent reason first; those of the generator belong to another finding.
pub(super) fn by_reason<'a>(all: &[&'a ParticipantRow]) -> Vec<(FailureReason, Vec<&'a Failure>)> {
    let mut reasons: BTreeMap<String, (FailureReason, Vec<&Failure>)> = BTreeMap::new();
    for row in all {
        if let Some(Outcome::Failed(failure)) = &row.outcome
            && !failure.reason.is_ours()
            && !failure.reason.is_censored()
        {
            let of = reasons
                .entry(failure.reason.key())
                .or_insert_with(|| (failure.reason.clone(), Vec::new()));
            of.1.push(failure);
        }
    }
    let mut reasons: Vec<_> = reasons.into_values().collect();
    reasons.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
    reasons
}

pub(super) fn rest(failures: &[(FailureReason, Vec<&Failure>)]) -> String {
    let of = |(reason, list): &(FailureReason, Vec<&Failure>)| {
        format!("{} {}", list.len(), reason.key())
    };
    failures.iter().skip(1).map(of).collect::<Vec<_>>().join(", ")
}

/// A reason in words.
pub(super) fn what(reason: &FailureReason) -> &'static str {
    match reason {
        FailureReason::Dns => "the server's name has no address",
        FailureReason::Tcp => "no TCP connection to the server",
        FailureReason::Quic => "no QUIC connection to the server",
        FailureReason::Srt => "no SRT connection to the server",
        FailureReason::Tls => "no TLS with the server",
        FailureReason::HttpStatus(_) => "the server answered with an HTTP error",
        FailureReason::RtspStatus(_) => "the server answered with an RTSP error",
        FailureReason::Protocol => "the server violated the protocol",
        FailureReason::Unsupported => "the server offers only what throng does not support",
        FailureReason::Refused => "the server refused",
        FailureReason::NoSuchRoom => "the room does not exist",
        FailureReason::RoomFull => "the room is full",
        FailureReason::Unauthorized => {
            "the server does not authorise them (key, PIN, token or membership), or does not prove \
             that it knows the password"
        }
        FailureReason::Kicked => "they were kicked from the room",
        FailureReason::RoomEnded => "the room was destroyed",
        FailureReason::CodecRefused => "the server accepts none of the codecs",
        FailureReason::SignallingTimeout => "the server did not answer in time",
        FailureReason::SignallingClosed => "the server closed the signalling",
        FailureReason::Ice => "no ICE candidate pair worked",
        FailureReason::Dtls => "DTLS did not complete",
        FailureReason::NoMedia | FailureReason::MediaLost => "no media arrived",
        FailureReason::Cors => "browsers would block the responses to the player's page (CORS)",
        FailureReason::MixedContent => "an encrypted page or stream refers to an unencrypted one",
        FailureReason::NotAllowed => "the target is not allowed",
        FailureReason::Generator | FailureReason::InternalError => {
            "the generator had a defect or lacked a resource"
        }
        FailureReason::NotStarted => "the run ended before they joined",
        FailureReason::WorkerLost => "the worker that played them was lost",
    }
}

/// The recommended check for a reason.
pub(super) fn change(reason: &FailureReason) -> &'static str {
    match reason.refusal() {
        Some(RefusalKind::Credentials) => {
            return "Check the key, PIN or token in the target against what the server expects";
        }
        Some(RefusalKind::Forbidden) => {
            return "Check the key, PIN or token in the target against what the server expects, \
                    and its configuration and licence for a maximum of users, or a firewall that \
                    blocks this address";
        }
        Some(RefusalKind::Missing) => {
            return "Check the path or room in the target: does it exist, and does anybody \
                    publish there?";
        }
        Some(RefusalKind::Full) => {
            return "The server is full before the first user: check for a maximum in its \
                    configuration or licence, or a backend that is down";
        }
        Some(RefusalKind::RatePerAddress) => {
            return "The server limits the rate of requests per address (HTTP 429): wait as long \
                    as it says, raise that limit for the generator's address, or give the crowd \
                    more addresses (--source-ip)";
        }
        Some(RefusalKind::Unsupported | RefusalKind::Other) | None => {}
    }
    match reason {
        FailureReason::Dns => {
            "Check the host name in the target's URL, and the resolver of this host"
        }
        FailureReason::Tcp => {
            "Is the server running, and does it listen at this address and port (ss -ltn)? A \
             firewall in between, or the wrong URL"
        }
        FailureReason::Quic => {
            "Does the server speak HTTP/3, and does it listen on UDP at this address and port (ss \
             -lun)? A firewall in between may drop UDP"
        }
        FailureReason::Srt => {
            "Is the server running, and does it listen on UDP at this address and port (ss -lun)? \
             A firewall in between may drop UDP"
        }
        FailureReason::Tls => {
            "Check the server's certificate (--tls-ca makes throng trust a private issuer) and its \
             name, and http against https; the failure has the details"
        }
        FailureReason::RtspStatus(454 | 461) => {
            "Check the server's log; for 461 try the other transport: target.rtsp_transport = \
             \"tcp\" or \"udp\""
        }
        FailureReason::HttpStatus(_) | FailureReason::RtspStatus(_) => {
            "Check the server's log for these requests, and the path and the method in the target"
        }
        FailureReason::Ice => {
            "Check UDP between here and the addresses that the server offers: its public address \
             in the configuration, its port range, a firewall; or use TURN"
        }
        FailureReason::Dtls => {
            "Check UDP packets of 1,200 bytes between both hosts, the server's certificate, and \
             its log"
        }
        FailureReason::CodecRefused => {
            "Compare the codecs of the crowd (video, audio) with those that the server accepts"
        }
        FailureReason::Unsupported => {
            "Have the server offer the media in another form; the failure says what it offers now"
        }
        FailureReason::Cors => {
            "Check the server's Access-Control-Allow-Origin and -Headers against player.page; the \
             failure has the details"
        }
        FailureReason::MixedContent => {
            "Have the server name its media by https (rtsps) too; the failure has the URL"
        }
        FailureReason::NotAllowed => "The target has to give consent (docs/consent.md)",
        FailureReason::SignallingTimeout => {
            "Is the right server at this address? It accepts and does not answer: check its log, \
             and a backend behind it"
        }
        _ => "Check the server's log for these participants",
    }
}
