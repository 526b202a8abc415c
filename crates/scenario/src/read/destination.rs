//! Checks the URL of a cohort and the streams that it is distributed over.

use throng_observation::Codec;

use super::crowd::CohortSpans;
use super::fields::Reader;
use super::target::{check_access, host_of};
use crate::role::PublishConfig;
use crate::scenario::Cohort;
use crate::target::{Carriage, Part, Protocol, Target};
use crate::url_template::UrlVariable;

/// Checks the cohorts' URLs and streams against the target, and completes their own targets with
/// the values of `[target]`.
pub(super) fn check(
    reader: &mut Reader,
    target: &Target,
    crowd: &mut [Cohort],
    spans: &[CohortSpans],
) {
    for (cohort, spans) in crowd.iter_mut().zip(spans) {
        if let Some(own) = &mut cohort.target {
            check_own(reader, target, own, spans);
            own.token.clone_from(&target.token);
            own.api_key.clone_from(&target.api_key);
            own.allow.clone_from(&target.allow);
            own.stun.clone_from(&target.stun);
            own.turn.clone_from(&target.turn);
            (own.rooms, own.tls_insecure) = (target.rooms, target.tls_insecure);
            own.rtsp_transport = target.rtsp_transport;
            // target.ice_transport_policy applies to all cohorts, a query of the target's URL to
            // its own participants.
            if !target.endpoint.asks_for_relay() {
                own.ice_transport_policy =
                    own.ice_transport_policy.max(target.ice_transport_policy);
            }
        }
        let own = cohort.target.as_ref().unwrap_or(target);
        let protocol = own.protocol();
        if protocol == Protocol::RtspPublish {
            check_rtsp_publishers(reader, cohort, spans);
        }
        check_ingest(reader, protocol, cohort, spans);
        let own = cohort.target.as_ref().unwrap_or(target);
        match (own.has_variable(UrlVariable::Stream), &cohort.streams) {
            (true, None) => {
                let message =
                    format!("the URL of {} has {{stream}}, but `streams` is missing", cohort.name);
                let help = "write streams = 10 under [crowd] (--streams 10), or {n} in the URL \
                            for one stream each";
                reader.fail(spans.url.unwrap_or(spans.cohort), message, help);
            }
            (false, Some(_)) => {
                let message = format!(
                    "`streams` of {} has no effect: its URL has no {{stream}}",
                    cohort.name
                );
                let help =
                    "write {stream} into the path or the query of the URL, or remove streams";
                reader.fail(spans.streams, message, help);
            }
            _ => {}
        }
    }
}

/// RTSP has neither layers nor a room, and its server requests nothing of a publisher.
fn check_rtsp_publishers(reader: &mut Reader, cohort: &Cohort, spans: &CohortSpans) {
    let Some(role) = &cohort.role else { return };
    let name = &cohort.name;
    let (message, help) = match &role.publish {
        None => (
            format!(
                "{name} publish nothing, and there is nothing else to do at a URL `publish+rtsp://`"
            ),
            "remove publish = \"none\", or write `rtsp://…` for viewers",
        ),
        Some(publish) if !publish.simulcast.is_empty() => (
            format!("`publish.simulcast` of {name}: RTSP has no layers"),
            "write one size, such as publish = { video = \"720p\", codec = \"h264\" }",
        ),
        Some(_) if !role.script.is_empty() || !role.layers.is_empty() => {
            (format!("`script` and `layers` of {name} have no effect on RTSP"), "remove them")
        }
        Some(_) => return,
    };
    reader.fail(spans.cohort, message, help);
}

/// RTMP and SRT carry one stream of H.264 and AAC, and their servers request nothing.
fn check_ingest(reader: &mut Reader, protocol: Protocol, cohort: &mut Cohort, spans: &CohortSpans) {
    let name = &cohort.name;
    let publish =
        cohort.role.as_mut().map(|role| (&mut role.publish, role.script.len() + role.layers.len()));
    if protocol.carriage() != Carriage::Ingest {
        if let Some((Some(PublishConfig { burns_clock: true, .. }), _)) = publish {
            let message =
                format!("`publish.burn_clock` of {name} has no effect on {}", protocol.name());
            reader.fail(
                spans.publish,
                message,
                "remove it, or publish by publish+rtmp:// or publish+srt://",
            );
        }
        return;
    }
    let (message, help) = match publish {
        None => return,
        Some((None, _)) => (
            format!(
                "{name} publish nothing, and there is nothing else to do by {}",
                protocol.name()
            ),
            "remove publish = \"none\"",
        ),
        Some((Some(publish), _)) if !publish.simulcast.is_empty() => (
            format!("`publish.simulcast` of {name}: {} has no layers", protocol.name()),
            "write one size, such as publish = { video = \"720p\" }",
        ),
        Some((Some(publish), _)) if publish.video.is_some() && spans.has_vp8 => (
            format!("`publish.codec` of {name}: {} carries H.264", protocol.name()),
            "write codec = \"h264\", or remove it",
        ),
        Some((Some(publish), _)) if publish.burns_clock && !publish.has_video() => (
            format!("`publish.burn_clock` of {name} has no effect: there is no video"),
            "remove it",
        ),
        Some((_, 1..)) => (
            format!("`script` and `layers` of {name} have no effect on {}", protocol.name()),
            "remove them",
        ),
        Some((Some(publish), 0)) => {
            if publish.video.is_some() {
                publish.codec = Codec::H264;
            }
            return;
        }
    };
    reader.fail(spans.publish.unwrap_or(spans.cohort), message, help);
}

fn check_own(reader: &mut Reader, target: &Target, own: &Target, spans: &CohortSpans) {
    let (host, of_own) = (host_of(target), host_of(own));
    // Media servers take streams at another port than that at which they deliver them.
    let is_ingest =
        [target, own].iter().any(|target| target.protocol().carriage() == Carriage::Ingest);
    let is_same_host = is_ingest && target.url().host_str() == own.url().host_str();
    if host != of_own && !is_same_host {
        let message =
            format!("`url` of a cohort has another host ({of_own}) than target.url ({host})");
        reader.fail(spans.url, message, "write the same host and port, or one scenario per host");
    }
    if target.part() == Part::Confer || own.part() == Part::Confer {
        let help = "remove it, or write a separate scenario for the conference";
        reader.fail(
            spans.url,
            "`url` of a cohort: all participants of a conference join at target.url",
            help,
        );
    }
    check_access(reader, spans.url, own, target.api_key.as_ref(), target.token.is_some());
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
