//! The summary that a terminal shows when a run is over.

mod host;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use throng_analysis::reasons;
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};
use throng_observation::{SENDER_CLOCK_EVENT, untrusted};

use crate::cause;
use crate::conference::Conference;
use crate::health::{self, Share};
use crate::role_counts::{RoleCounts, is_send_only};
use crate::sent::{LayerSwitches, Sent};
use crate::summary::{CapacitySummary, Media, Summary, clock_disagreement, one_way_basis};
use crate::survival::TimeTo;
use crate::workers::WorkerHealth;
use crate::{canary, decoded};

/// About fifteen lines: the answer, the objectives, the figures that matter. Plain text, newline at
/// the end.
#[must_use]
pub fn summary(summary: &Summary) -> String {
    let mut out = format!("{}\n", untrusted::line(&summary.headline));
    for caveat in summary.capacity.iter().flat_map(|capacity| &capacity.caveats) {
        line(&mut out, "caveat", caveat);
    }
    out.push('\n');
    for objective in &summary.objectives {
        let sign = if objective.met { "met   " } else { "MISSED" };
        let (text, measured) =
            (untrusted::line(&objective.text), untrusted::line(&objective.measured_text));
        let _ = writeln!(out, "  {sign}  {text:<32} {measured}");
    }
    if !summary.objectives.is_empty() {
        out.push('\n');
    }
    if let Some(capacity) = &summary.capacity {
        capacity_lines(&mut out, capacity);
    }
    if let Some(others) = &summary.other_processes_cpu {
        line(&mut out, "note", &others.sentence());
        out.push('\n');
    }
    cause_lines(&mut out, summary);
    crowd_lines(&mut out, summary);
    media_lines(&mut out, summary);
    for host in &summary.hosts {
        host::lines(&mut out, host, summary.hosts.len() > 1);
    }
    titled(&mut out, "decoded", decoded::lines(&summary.decoded));
    titled(&mut out, "browsers", summary.canary.iter().flat_map(canary::lines));
    line(&mut out, "generator", &generator(summary));
    titled(&mut out, "workers", summary.generator.workers.iter().map(|of| worker(summary, of)));
    if !summary.events.is_empty() {
        line(&mut out, "events", &counts(&summary.events));
    }
    for reason in &summary.partial_reasons {
        line(&mut out, "partial", reason);
    }
    for warning in &summary.warnings {
        line(&mut out, "warning", warning);
    }
    out
}

/// Lines of one kind, of which the first has the title.
fn titled(out: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    for (index, text) in lines.into_iter().enumerate() {
        line(out, if index == 0 { title } else { "" }, &text);
    }
}

/// `ice 3, tcp 1`.
fn counts(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(key, count)| format!("{key} {count}")).collect::<Vec<_>>().join(", ")
}

/// The target, and the joins.
fn crowd_lines(out: &mut String, summary: &Summary) {
    line(out, "target", &summary.target);
    let roles = RoleCounts::of(summary);
    let who = if summary.is_chat_only() { "participants" } else { roles.many() };
    line(out, who, &crowd_line(summary));
    if !summary.failures.is_empty() {
        line(out, "failures", &counts(&summary.failures));
    }
    for example in &summary.failure_examples {
        let (number, detail) = (example.participant, &example.detail);
        let who = if summary.is_chat_only() { "participant" } else { roles.one() };
        line(out, "", &format!("{}: {who} {number}: {detail}", example.reason));
    }
    line(out, "connect", &time_to(&summary.connect));
    if !summary.media_paths.is_empty() {
        line(out, "path", &paths_line(&summary.media_paths));
    }
    // That of a name for this machine says nothing.
    let is_own = |address: &String| address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if summary.addresses.len() > 1 || summary.addresses.keys().any(|address| !is_own(address)) {
        line(out, "addresses", &counts(&summary.addresses));
    }
    if let Some(chat) = &summary.chat {
        line(out, "joined", &time_to(&chat.joined));
    }
    // Publishers wait for no frame, nor does who is in a chat only.
    if !is_send_only(summary) && (summary.chat.is_none() || summary.first_frame.reached > 0) {
        line(out, "first frame", &time_to(&summary.first_frame));
    }
    if let Some(playback) = &summary.playback {
        if let Some(page) = &playback.page {
            line(out, "page loaded", &time_to(&page.loaded));
        }
        line(out, "startup", &time_to(&playback.startup));
    }
}

/// Received and sent media.
fn media_lines(out: &mut String, summary: &Summary) {
    if !is_send_only(summary) {
        let (mean, most) = (bit_rate(summary.received_bps), bit_rate(summary.received_bps_max));
        line(out, "received", &format!("{mean} mean, {most} at most"));
    }
    if let Some(sent) = &summary.sent {
        line(out, "sent", &sent_line(sent));
    }
    if let Some(switches) = &summary.layer_switches {
        line(out, "layers", &layers_line(switches));
    }
    if let Some(playback) = &summary.playback {
        line(out, "playback", &playback.playback_line());
        line(out, "transfer", &playback.transfer_line());
        if let Some(page) = playback.page_line() {
            line(out, "page", &page);
        }
        if let Some(requests) = playback.requests_line() {
            line(out, "requests", &requests);
        }
        if let Some(peers) = &playback.peers {
            line(out, "peers", &peers.line());
            peers.channel_line().into_iter().for_each(|channels| line(out, "channels", &channels));
            peers.hashes_line().into_iter().for_each(|hashes| line(out, "hashes", &hashes));
            peers.tracker_line().into_iter().for_each(|tracker| line(out, "tracker", &tracker));
        }
        if let Some(latency) = playback.latency_line() {
            line(out, "behind live", &latency);
        }
    }
    if let Some(chat) = &summary.chat {
        line(out, "messages", &chat.messages_line());
        line(out, "chat", &chat.stanzas_line());
    }
    for (name, media) in summary.media() {
        let figures = media_line(media);
        // Of a player's audio there is no figure that its playback does not have.
        if (media.tracks > 0 || media.packets_received > 0) && !figures.is_empty() {
            line(out, name, &figures);
        }
    }
    if let Some(conference) = &summary.conference {
        let streams = conference_line(conference);
        // A run of publishers alone has no stream from one to another.
        if !streams.is_empty() {
            line(out, "conference", &streams);
        }
        if let Some(note) = &conference.flow.note {
            line(out, "", note);
        }
    }
    if let Some(one_way) = one_way_line(summary) {
        line(out, "one-way", &one_way);
    }
}

/// The crowd in numbers. A search starts and ends participants: it has many more joins than
/// participants at once.
fn crowd_line(summary: &Summary) -> String {
    let (crowd, who) = (&summary.participants, RoleCounts::of(summary));
    let playing = match who.viewers {
        0 => String::new(),
        _ if summary.is_chat_only() => format!(" {} in the room,", crowd.playing),
        _ => format!(" {} playing,", crowd.playing),
    };
    let all = format!("{} connected,{playing} {} failed", crowd.connected, crowd.failed);
    match (summary.capacity.is_some(), who) {
        (true, _) => {
            format!(
                "at most {} at once; {} joins in all: {all}",
                crowd.connected_max, crowd.intended
            )
        }
        (false, RoleCounts { publishers: 1.., viewers: 1.. }) => {
            format!("{} intended, {all}", who.all())
        }
        (false, _) => format!("{} intended, {all}", crowd.intended),
    }
}

/// Participants by media path, the most common first.
fn paths_line(paths: &BTreeMap<String, u64>) -> String {
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let path_text = |(path, count): (&String, &u64)| {
        let way = match path.as_str() {
            "host" => "directly (host)",
            "srflx" => "directly through a NAT (srflx)",
            "relay_udp" => "through a relay over UDP",
            "relay_tcp" => "through a relay over TCP",
            "relay_tls" => "through a relay over TLS",
            "rtp_udp" => "by RTP over UDP",
            "rtp_tcp" => "by RTP on the RTSP connection",
            "rtmp" => "by RTMP",
            "rtmp_tls" => "by RTMP over TLS",
            "process" => "by FFmpeg",
            "rtp_tls" => "by RTP on the RTSP connection, over TLS",
            "http1" => "by HTTP/1.1",
            "http2" => "by HTTP/2",
            "http3" => "by HTTP/3",
            other => other,
        };
        format!("{count} {way}")
    };
    paths.into_iter().map(path_text).collect::<Vec<_>>().join(", ")
}

/// The bottleneck, its evidence, what to change and the predicted effect: at most ten lines.
fn cause_lines(out: &mut String, summary: &Summary) {
    if let Some(found) = &summary.bottleneck {
        line(out, "cause", &cause::sentence(found));
        // The loads of a search have theirs with each goal.
        let suffered = reasons::words(&found.reasons).filter(|_| summary.capacity.is_none());
        suffered.iter().for_each(|words| line(out, "bad seconds", words));
        for evidence in found.evidence.iter().take(3) {
            line(out, "", &evidence.sentence());
        }
        let fine: Vec<&str> = found.ruled_out.iter().take(2).map(String::as_str).collect();
        if !fine.is_empty() {
            line(out, "ruled out", &fine.join("; "));
        }
        if let Some(change) = &found.change {
            line(out, "change", change);
        }
        if let Some(predicted) = &found.prediction {
            line(out, "then", &cause::prediction(predicted));
        }
    }
    let costs: Vec<String> = cause::costs(&summary.demand);
    if !costs.is_empty() {
        line(out, "a user costs", &costs.join(", "));
    }
    let join = cause::join_cost(summary);
    if let Some(cost) = &join {
        line(out, "a join costs", cost);
    }
    let chat = summary.chat_cost.as_ref().and_then(cause::chat_cost);
    if let Some(cost) = &chat {
        line(out, "a chat costs", cost);
    }
    if summary.bottleneck.is_some() || !costs.is_empty() || join.is_some() || chat.is_some() {
        out.push('\n');
    }
}

/// Between which loads the limit of each goal lies and why the failing one failed, and the notes of
/// the search.
fn capacity_lines(out: &mut String, capacity: &CapacitySummary) {
    for goal in &capacity.goals {
        let Some(said) = &goal.statement else { continue };
        let ratio = percent(goal.bad_users_ratio_max);
        let why = goal
            .failing
            .zip(reasons::words(&goal.reasons))
            .map_or_else(String::new, |(load, words)| {
                format!("; {} failed: {words}", capacity.load(load))
            });
        line(out, &goal.goal, &format!("{said} (at most {ratio} of users with a bad second){why}"));
    }
    if let Some(ms) = capacity.recovery_ms {
        line(out, "recovery", &format!("{} after too large a crowd", duration_ms(ms as f64)));
    }
    if let Some(soak) = &capacity.soak {
        line(out, "soak", &soak.sentence());
    }
    for note in &capacity.notes {
        line(out, "note", note);
    }
    out.push('\n');
}

/// The streams of a conference that played, and the rates into and out of the server.
fn conference_line(conference: &Conference) -> String {
    let kinds = [("video", &conference.video), ("audio", &conference.audio)];
    let mut parts: Vec<String> = kinds
        .into_iter()
        .filter(|(_, media)| media.received > 0 || media.played().is_some())
        .map(|(name, media)| match media.played() {
            Some((playing, of)) => format!("{name} {playing} of {of} play"),
            None => format!("{name} {} seen", media.received),
        })
        .collect();
    parts.extend(conference.missing());
    if let (Some(into), Some(out)) = (conference.flow.in_bps_max, conference.flow.out_bps_max) {
        parts.push(format!("in {}, out {}", bit_rate(into), bit_rate(out)));
    }
    if let Some((due, ratio)) =
        conference.flow.expected_bps_max.zip(conference.flow.delivered_ratio)
    {
        parts.push(format!("{} of the expected {}", percent(ratio), bit_rate(due)));
    }
    parts.join("; ")
}

/// One line: line ends in `what` are escaped.
fn line(out: &mut String, name: &str, what: &str) {
    let _ = writeln!(out, "  {:<12} {}", untrusted::name(name), untrusted::line(what));
}

fn time_to(time: &TimeTo) -> String {
    // Without failures a figure is only missing because the run was too short to know it.
    let unknown = if time.failed > 0 { "never" } else { "after the end" };
    let at = |ms: Option<f64>| ms.map_or_else(|| unknown.into(), duration_ms);
    let mut said =
        format!("p50 {}, p95 {}, p99 {}", at(time.ms_p50), at(time.ms_p95), at(time.ms_p99));
    if time.failed > 0 {
        let _ = write!(said, " ({} failed: they count as never)", time.failed);
    }
    if time.censored > 0 {
        let _ = write!(said, " ({} interrupted by the end of the run)", time.censored);
    }
    said
}

fn sent_line(sent: &Sent) -> String {
    let mut said = format!(
        "{} mean, {} at most, as {} streams of video and {} of audio",
        bit_rate(sent.bps),
        bit_rate(sent.bps_max),
        sent.video_streams,
        sent.audio_streams
    );
    if sent.packets_repeated > 0 {
        let ratio = sent.packets_repeated as f64 / sent.packets.max(1) as f64;
        let _ = write!(said, ", {} sent again", percent(ratio));
    }
    if let Some(ratio) = sent.blocked_ratio {
        let _ = write!(said, ", {} of the time the connection took no bytes", percent(ratio));
    }
    said
}

fn layers_line(switches: &LayerSwitches) -> String {
    let mut said = format!("{} of {} changes shown", switches.shown, switches.requested);
    if let (Some(p50), Some(p95), Some(max)) = (switches.ms_p50, switches.ms_p95, switches.ms_max) {
        let [p50, p95, max] = [p50, p95, max].map(duration_ms);
        let _ = write!(said, ", after p50 {p50}, p95 {p95}, at most {max}");
    }
    said
}

fn media_line(media: &Media) -> String {
    let mut parts = Vec::new();
    if let Some(fps) = media.fps_p50 {
        let source = media.source_fps.map_or_else(String::new, |source| format!(" of {source:.1}"));
        parts.push(format!("{fps:.1}{source} fps"));
    }
    if media.tracks_missing > 0 {
        parts.push(format!("{} of {} tracks never received", media.tracks_missing, media.tracks));
    }
    if let Some(missing) = media.missing_ratio.filter(|missing| *missing > 0.0) {
        parts.push(format!("missing {}", percent(missing)));
    }
    if let Some(loss) = media.loss_ratio {
        parts.push(format!("loss {}", percent(loss)));
    }
    if let (Some(p50), Some(p95), Some(p99)) =
        (media.delay_ms_p50, media.delay_ms_p95, media.delay_ms_p99)
    {
        parts.push(format!(
            "delay p50 {}, p95 {}, p99 {}",
            duration_ms(p50),
            duration_ms(p95),
            duration_ms(p99)
        ));
    }
    if let Some(freeze) = media.freeze_ratio {
        parts.push(format!("frozen {}", percent(freeze)));
    }
    parts.join(", ")
}

/// The one-way delay with its basis and error; `None` when no frame carried a capture time.
fn one_way_line(summary: &Summary) -> Option<String> {
    let (media, clock) = (&summary.video, &summary.clock_error);
    let Some(basis) = one_way_basis(media) else {
        let has_none = summary.events.contains_key(SENDER_CLOCK_EVENT);
        return has_none.then(|| "not known: sender reports have no wall clock".to_owned());
    };
    let disagreement = clock_disagreement(media, clock);
    // Percentiles among frames that seem to be too early.
    let early = if disagreement.is_some() { "below zero" } else { "within the clock error" };
    let mut line = match (media.one_way_delay_ms_p50, media.one_way_delay_ms_p95) {
        (Some(p50), Some(p95)) => format!("p50 {}, p95 {}", duration_ms(p50), duration_ms(p95)),
        (None, Some(p95)) => format!("p50 {early}, p95 {}", duration_ms(p95)),
        _ => early.to_owned(),
    };
    let _ = write!(line, " by {}", basis.text());
    match clock.bound_ms {
        Some(ms) => {
            let _ = write!(line, "; clock error at most {ms:.1} ms");
        }
        None => line.push_str("; clock error not known"),
    }
    if let Some(disagreement) = disagreement {
        let _ = write!(line, "; {}", disagreement.text(basis));
    }
    Some(line)
}

/// `a (2 cores): 9 viewers, at most 12 % of a core, 1.2 ms late, clock ±0.4 ms, at the end ±0.9 ms
/// (chrony on both hosts)`.
fn worker(summary: &Summary, worker: &WorkerHealth) -> String {
    let who = RoleCounts::of(summary).many();
    let WorkerHealth { name, cores, participants, clock_basis, .. } = worker;
    let mut said = format!("{name} ({cores} cores): {participants} {who}");
    if let Some(ratio) = worker.thread_cpu_ratio_max {
        let _ = write!(said, ", at most {} of a core", percent(ratio));
    }
    if let Some(ms) = worker.lag_ms_p99_max {
        let _ = write!(said, ", {} late", duration_ms(ms));
    }
    if worker.limited_seconds > 0 {
        let _ =
            write!(said, ", its own limit for {} of {} s", worker.limited_seconds, worker.seconds);
    }
    let _ = write!(said, ", clock {}", worker.clock_bounds());
    if !clock_basis.is_empty() {
        let _ = write!(said, " ({clock_basis})");
    }
    said
}

fn generator(summary: &Summary) -> String {
    let (health, one) = (&summary.generator, RoleCounts::of(summary).one());
    let mut said = match health::share(summary) {
        Share::None => "was not the limit".to_owned(),
        Share::LeftOut => {
            format!("was the limit at times, which were not judged: {}", health.reasons.join("; "))
        }
        Share::All => "WAS THE LIMIT".to_owned(),
    };
    if let Some(ms) = health.cpu_ms_per_participant_s {
        let _ = write!(said, "; {ms:.2} CPU ms per {one}-second");
    }
    if let Some(rss) = health.rss_bytes_per_participant {
        let _ = write!(said, ", {} per {one}", bytes(rss));
    }
    if health.ring_datagrams > 0 {
        let _ = write!(
            said,
            "; received by memory-mapped rings of {}",
            bytes(health.ring_bytes_max as f64)
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use crate::{example, summarise};
    use std::time::Duration;
    use throng_observation::run::EventRow;
    use throng_observation::{MediaPath, RunTime};

    #[test]
    fn the_terminal_shows_the_answer_first_and_about_fifteen_lines() {
        let text = super::summary(&summarise(
            &example::degraded(),
            &example::objectives(),
            Duration::ZERO,
        ));
        assert!(text.starts_with("Objectives missed: video.loss p95 < 1%"), "{text}");
        assert!(text.contains(" by in-media mark; clock error at most 2.0 ms"), "{text}");
        assert!(
            text.lines().count() <= 23 && text.contains("100 intended, 97 connected"),
            "{text}"
        );
        assert!(text.contains("\n  bad seconds  mostly delay (100 %), fps "), "{text}");
    }

    #[test]
    fn the_line_of_a_goal_says_which_clauses_made_its_load_fail() {
        let text = super::summary(&summarise(&example::searched(), &[], Duration::ZERO));
        let expect = "acceptable   40 passed, 42 failed (at most 1.00 % of users with a bad second); 42 failed: mostly \
                      delay (100 %), fps 10 %";
        assert!(text.contains(expect), "{text}");
        assert!(!text.contains("bad seconds  "), "it has been said: {text}");
    }

    #[test]
    fn an_answer_that_is_no_capacity_says_what_was_bad() {
        let headline = |run: &_| summarise(run, &[], Duration::ZERO).headline;
        let mut never = example::searched();
        never.holds.retain(|hold| hold.users == 42);
        assert_eq!(
            headline(&never),
            "None: a crowd of 42 had bad service, mostly delay (100 %), fps 10 %"
        );
        let mut soaked = example::searched();
        let last =
            soaked.holds.iter().rfind(|hold| hold.users == 42).cloned().expect("a failing load");
        let soak = throng_observation::HoldRow {
            purpose: throng_observation::Purpose::Soak,
            users: 36,
            ..last
        };
        soaked.holds.push(throng_observation::HoldRow {
            number: 99,
            broke_at: soak.judged_from,
            ..soak
        });
        let said = headline(&soaked);
        assert!(
            said.contains("not sustained") && said.ends_with(", mostly delay (100 %), fps 10 %"),
            "{said}"
        );
    }

    #[test]
    fn a_search_distinguishes_joins_from_the_crowd_at_once() {
        let mut search = example::searched();
        search.participants = example::healthy(58, 10).participants;
        let summary = summarise(&search, &[], Duration::ZERO);
        let text = super::summary(&summary);
        let expect =
            "viewers      at most 48 at once; 58 joins in all: 58 connected, 58 playing, 0 failed";
        assert!(text.contains(expect), "{text}");
        let page = crate::html::render(&search, &summary);
        assert!(page.contains("at most 48 at once") && !page.contains("58 of 58"));
    }

    #[test]
    fn caveats_stand_below_the_answer_and_not_in_it() {
        let mut summary = summarise(&example::searched(), &[], Duration::ZERO);
        let capacity = summary.capacity.as_mut().expect("a search");
        capacity.caveats = vec!["36 failed in 2 of 3 holds".into()];
        let text = super::summary(&summary);
        let mut lines = text.lines();
        let (answer, caveat) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(answer, summary.headline);
        assert!(!answer.contains("2 of 3 holds"), "{answer}");
        assert_eq!(caveat.trim(), "caveat       36 failed in 2 of 3 holds");
        let page = crate::html::render(&example::searched(), &summary);
        let heading = page.find("</h1>").expect("a heading");
        let place = page.find("36 failed in 2 of 3 holds").expect("the caveat");
        assert!(heading < place, "the caveat is below the heading");
        assert_eq!(page.matches("36 failed in 2 of 3 holds").count(), 1, "once on the page");
    }

    #[test]
    fn a_search_that_left_seconds_out_reports_it_and_keeps_its_answer() {
        let line = |run| {
            let text = super::summary(&summarise(&run, &[], Duration::ZERO));
            text.lines()
                .find(|line| line.contains("generator    "))
                .map(str::to_owned)
                .unwrap_or_default()
        };
        let mut search = example::searched();
        assert!(line(search.clone()).contains("generator    was not the limit; "));
        // In so few seconds that bad seconds without it remain.
        search.generator.iter_mut().step_by(8).for_each(|row| row.cpu_us = 930_000);
        let said = line(search.clone());
        assert!(
            said.contains("was the limit at times, which were not judged: an engine thread used"),
            "{said}"
        );
        assert!(line(example::limited()).contains("generator    WAS THE LIMIT; "));
        search
            .holds
            .iter_mut()
            .for_each(|hold| (hold.passed, hold.limited_seconds) = (Default::default(), 9));
        assert!(line(search).contains("generator    WAS THE LIMIT; "), "no load came through");
    }

    #[test]
    fn a_load_that_failed_at_the_generators_limits_did_not_fail() {
        let mut search = example::searched();
        search
            .generator
            .iter_mut()
            .filter(|row| row.cpu_us >= 160_000)
            .for_each(|row| row.cpu_us = 930_000);
        let summary = summarise(&search, &[], Duration::ZERO);
        let verdict = summary.bottleneck.as_ref().map(|found| found.verdict);
        assert_eq!(verdict, Some(throng_analysis::bottleneck::BottleneckVerdict::GeneratorLimited));
        assert_eq!(summary.outcome, crate::summary::RunOutcome::Invalid, "{}", summary.headline);
        let capacity = summary.capacity.as_ref().expect("a search");
        assert_eq!((capacity.verdict.as_str(), capacity.first_failing), ("invalid", None));
        let text = super::summary(&summary);
        let expect = "Invalid: the generator was the limit above 40 viewers: an engine thread used up to 93 % of its \
                      core, more than 70 % (120 of 120 s over the limit)";
        assert!(text.starts_with(expect), "{text}");
        assert!(
            !text.contains(" failed (at most") && text.contains("40 passed, 42 not decided"),
            "{text}"
        );
    }

    #[test]
    fn a_conference_takes_a_line_and_one_more_when_its_server_is_full() {
        let said = |run| super::summary(&summarise(&run, &[], Duration::ZERO));
        let text = said(crate::conference::tests::lesson(6, 30, |_| 1.0));
        let expect = "conference   video 30 of 30 play; audio 30 of 30 play; in 96.0 kbit/s, out 480 kbit/s; 100.0 % of the expected 480 kbit/s";
        assert!(text.contains(expect), "{text}");
        let mut short = crate::conference::tests::lesson(25, 30, |_| 1.0);
        crate::conference::tests::fail_to_join(&mut short, 20);
        let short = said(short);
        let expect = "video 380 of 600 play; audio 380 of 600 play; 20 of 25 connected; in ";
        assert!(short.contains(expect), "{short}");
        let full =
            said(crate::conference::tests::lesson(
                30,
                60,
                |second| if second < 25 { 1.0 } else { 0.5 },
            ));
        assert!(full.contains("in rises, out falls"), "{full}");
    }

    #[test]
    fn the_media_path_is_reported_with_its_count() {
        let mut run = example::healthy(10, 20);
        assert!(!super::summary(&summarise(&run, &[], Duration::ZERO)).contains("  path "));
        for (path, count) in [(MediaPath::Host, 3), (MediaPath::RelayTcp, 7)] {
            let kind = format!("{}{}", MediaPath::EVENT, path.key());
            let (at, detail) = (RunTime(20_000_000), "".into());
            run.events.push(EventRow { at, participant: None, kind, count, detail });
        }
        let summary = summarise(&run, &[], Duration::ZERO);
        assert!(summary.events.is_empty(), "{:?}", summary.events);
        let text = super::summary(&summary);
        assert!(
            text.contains("path         7 through a relay over TCP, 3 directly (host)"),
            "{text}"
        );
    }

    #[test]
    fn addresses_are_reported_with_their_counts_but_a_name_of_this_machine_alone() {
        let said = |addresses: &[(&str, u32)]| {
            let mut run = example::healthy(10, 20);
            for (address, count) in addresses {
                let kind = format!("{}{address}", throng_observation::run::ADDRESS_EVENT);
                let (at, count, detail) = (RunTime(20_000_000), *count, "".into());
                run.events.push(EventRow { at, participant: None, kind, count, detail });
            }
            let summary = summarise(&run, &[], Duration::ZERO);
            assert!(summary.events.is_empty(), "{:?}", summary.events);
            assert_eq!(summary.addresses.len(), addresses.len());
            let text = super::summary(&summary);
            let line = text.lines().find_map(|line| line.trim().strip_prefix("addresses"));
            line.map(|counts| counts.trim().to_owned())
        };
        let two = said(&[("192.0.2.1", 3), ("192.0.2.2", 7)]);
        assert_eq!(two.as_deref(), Some("192.0.2.1 3, 192.0.2.2 7"));
        let one = said(&[("192.0.2.1", 10)]);
        assert_eq!(one.as_deref(), Some("192.0.2.1 10"), "it may be the wrong one");
        assert_eq!(said(&[("127.0.0.1", 10)]), None);
    }

    #[test]
    fn a_watched_server_takes_three_to_six_lines() {
        let run = crate::server::tests::watched();
        let lines = |run| {
            let without_cause =
                crate::Summary { bottleneck: None, ..summarise(run, &[], Duration::ZERO) };
            super::summary(&crate::Summary { demand: Vec::new(), ..without_cause }).lines().count()
        };
        let text = super::summary(&summarise(&run, &[], Duration::ZERO));
        let more = lines(&run) - lines(&example::degraded());
        assert!((3..=6).contains(&more), "{text}");
        assert!(text.contains("hottest thread hloop 1 (tid 4012)"), "{text}");
        assert!(text.contains("to give it room: event_loops"), "{text}");
        assert!(text.contains("168 UDP receive buffer errors"), "{text}");
    }

    #[test]
    fn reports_without_a_wall_clock_are_called_so_and_no_clock_is_said_to_disagree() {
        use throng_observation::run::EventRow;
        use throng_observation::{OneWayDelay, RunTime, SENDER_CLOCK_EVENT};
        let mut run = example::healthy(10, 20);
        run.series.iter_mut().for_each(|row| row.absolute_delay = OneWayDelay::default());
        let said = |run: &_| super::summary(&summarise(run, &[], Duration::ZERO));
        assert!(!said(&run).contains("one-way"), "{}", said(&run));
        let (at, kind) = (RunTime(1), SENDER_CLOCK_EVENT.to_owned());
        run.events.push(EventRow { at, participant: None, kind, count: 10, detail: "".into() });
        let text = said(&run);
        assert!(
            text.contains("one-way      not known: sender reports have no wall clock"),
            "{text}"
        );
        assert!(!text.contains("disagree"), "{text}");
    }

    #[test]
    fn the_servers_own_clock_is_named_and_clocks_that_disagree_are_counted() {
        use throng_observation::{CaptureBasis, MediaKind, OneWayDelay};
        let with_early = |delay_us| {
            let mut run = example::healthy(10, 20);
            for row in run.series.iter_mut().filter(|row| row.kind == Some(MediaKind::Video)) {
                row.absolute_delay = OneWayDelay::default();
                (0..60)
                    .for_each(|_| row.absolute_delay.record(CaptureBasis::SenderReport, delay_us));
                (0..40).for_each(|_| row.absolute_delay.record(CaptureBasis::SenderReport, 3_000));
            }
            run
        };
        // The clocks of the example are known to 2 ms.
        let within = super::summary(&summarise(&with_early(-400), &[], Duration::ZERO));
        assert!(within.contains("p50 within the clock error, p95 3.0 ms by RTCP SR"), "{within}");
        assert!(!within.contains("seem to arrive") && !within.contains("below zero"), "{within}");
        let run = with_early(-5_000);
        let goal = ["video.one_way_delay p95 < 400ms".parse().unwrap()];
        let summary = summarise(&run, &goal, Duration::ZERO);
        assert_eq!(summary.video.one_way_delay_basis.as_deref(), Some("sender_report"));
        assert_eq!(
            (summary.video.one_way_delay_ms_p50, summary.video.clock_disagrees_ratio),
            (None, Some(0.6))
        );
        assert_eq!(summary.objectives[0].result, "not_measured");
        let text = super::summary(&summary);
        assert!(
            text.contains("p50 below zero, p95 3.0 ms by RTCP SR (the server's own clock"),
            "{text}"
        );
        let early =
            "; 60.0 % of frames seem to arrive before they were sent, by up to 5.0 ms (p95)";
        assert!(text.contains(early), "{text}");
        let page = crate::html::render(&run, &summary);
        assert!(
            page.contains("By RTCP SR (the server&#39;s own clock")
                || page.contains("By RTCP SR (the server's own clock")
        );
    }
}
