//! How the engine makes the participants of a plan: their server, secrets, media, and what those of
//! a conference share.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_engine::{Join, ParticipantFactory};
use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::timing::IndexCache;
use throng_protocol::chat::RoomLogs;
use throng_protocol::factory::{ConferenceConfig, Servers, TargetFactory};
use throng_protocol::participant::Participant;
use throng_protocol::player::Swarms;
use throng_protocol::signalling::RelayServer;
use throng_protocol::signalling::janus::NewRoom;
use throng_protocol::webrtc::{StepTimeouts, Weights, crypto};
use throng_scenario::{
    Account, Endpoint, Plan, Role, RoomConfig, Secret, TokenSource, TurnServer, secrets_of,
};

use crate::console::CliError;
use crate::exporter::LiveTraces;
use crate::permission::Permission;
use crate::secrets::{api_secret, token, token_text};
use crate::{media, run_id};

/// The roles with the values of their players' headers, which may be in files and environment
/// variables.
fn with_header_values(roles: &[Role]) -> Result<Vec<Role>, CliError> {
    let mut roles = roles.to_vec();
    for (_, value) in roles.iter_mut().flat_map(|role| &mut role.player.headers) {
        *value = TokenSource::Inline(token(value)?);
    }
    Ok(roles)
}

/// Reads each secret that participants of the plan need: one that is missing ends a run before it
/// has a folder.
pub(crate) fn read_secrets(plan: &Plan) -> Result<(), CliError> {
    token_text(plan.target.token.as_ref())?;
    plan.target.api_key.as_ref().map(api_secret).transpose()?;
    plan.target.turn.as_ref().map(|turn| token(&turn.password)).transpose()?;
    token_text(plan.room.as_ref().and_then(|room| room.admin_key.as_ref()))?;
    with_header_values(&plan.roles).map(drop)
}

/// What participants of the plan tell servers alone, as far as it can be read: where a server
/// repeats it, it is not told.
pub(super) fn told_to_servers(plan: &Plan, pages: &media::Pages) -> Vec<Secret> {
    let pages = || pages.plans.values();
    let of_pages = pages().flat_map(|page| page.secret_headers());
    let of_pages = of_pages.map(|(name, value)| (name, Secret::new(value)));
    let headers = plan.roles.iter().flat_map(|role| &role.player.headers);
    let headers = headers.filter_map(|(name, value)| Some((name.as_str(), token(value).ok()?)));
    let headers: Vec<(&str, Secret)> = headers.chain(of_pages).collect();
    let turn = plan.target.turn.as_ref().map(|turn| &turn.password);
    let admin_key = plan.room.as_ref().and_then(|room| room.admin_key.as_ref());
    let named = [plan.target.token.as_ref(), turn, admin_key].into_iter().flatten();
    let named = named.filter_map(|source| token(source).ok());
    let named = named.chain(headers.iter().map(|(_, value)| value.clone()));
    let endpoints = || {
        let beside = plan.roles.iter().filter_map(|role| role.chat.beside.as_deref());
        plan.destinations.iter().map(|destination| &destination.target.endpoint).chain(beside)
    };
    let peers = plan.roles.iter().filter_map(|role| role.player.peers.as_ref());
    let of_peers = peers.flat_map(|peers| [&peers.tracker, &peers.hashes]).flatten();
    let of_urls = endpoints().flat_map(Endpoint::secrets).chain(of_peers.flat_map(secrets_of));
    let of_urls = of_urls.chain(pages().flat_map(|page| page.secrets_of_urls()));
    let of_accounts = endpoints().filter_map(Endpoint::account).flat_map(encoded);
    let of_headers = headers.iter().flat_map(|(name, value)| within(name, value));
    // Rooms and roles have most of them in common, and so have the requests of a page.
    let mut known = HashSet::new();
    let all = named.chain(of_urls).chain(of_accounts).chain(of_headers);
    all.filter(|secret| known.insert(secret.expose().to_owned())).collect()
}

/// What a server may repeat of a header alone: what follows the word of a scheme (`Bearer TOKEN`),
/// and the values of cookies.
fn within(name: &str, value: &Secret) -> Vec<Secret> {
    let text = value.expose();
    if name.eq_ignore_ascii_case("cookie") {
        let cookies = text.split(';').filter_map(|cookie| cookie.split_once('='));
        return cookies.map(|(_, value)| Secret::new(value.trim())).collect();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [_, told] = words.as_slice() { vec![Secret::new(*told)] } else { Vec::new() }
}

/// An account as a server is told it: by Basic (RFC 7617) and by PLAIN (RFC 4616).
fn encoded(Account { name, password }: &Account) -> [Secret; 2] {
    let password = password.expose();
    [format!("{name}:{password}"), format!("\0{name}\0{password}")]
        .map(|login| Secret::new(STANDARD.encode(login)))
}

/// The factory from which the engine gets participants; reads secrets and media files here, once.
/// `clock` is what capture times of published media are told by, `worker` the number of this
/// process in a fleet. Requests of joins that have a trace name it.
pub(super) fn participant_factory(
    plan: &Plan,
    permission: &Permission,
    pages: &media::Pages,
    (clock, worker): (WallClock, u16),
    traces: Option<LiveTraces>,
) -> Result<Arc<dyn ParticipantFactory>, CliError> {
    // Made now: the self-tests of cryptography take 0.1 s, which the first joins would contain
    // otherwise.
    crypto::shared().map_err(CliError::invalid)?;
    let factory = TargetFactory {
        endpoint: plan.target.endpoint.clone(),
        token: token_text(plan.target.token.as_ref())?,
        api_key: plan.target.api_key.as_ref().map(api_secret).transpose()?,
        may_reach: permission.filter(),
        clock,
        servers: Servers::of_worker(worker, permission.servers()).of(permission.target_addresses()),
        seed: run_id::seed(),
        timeouts: StepTimeouts::default(),
        tapped: plan.tap.as_ref().map(|tap| tap.selection.clone()).unwrap_or_default(),
        conference: conference(plan)?,
        mark: run_id::mark(),
        ice_transport_policy: plan.target.ice_transport_policy,
        stun: plan.target.stun.clone(),
        turn: plan.target.turn.as_ref().map(|turn| turn_server(turn, plan)).transpose()?,
        rtsp_transport: plan.target.rtsp_transport,
        indexes: IndexCache::default(),
        rooms: RoomLogs::default(),
        playlists: PlaylistCache::default(),
        swarms: Swarms::default(),
        pages: Arc::clone(&pages.plans),
    };
    let (roles, destinations) = (with_header_values(&plan.roles)?, plan.destinations.clone());
    Ok(Arc::new(move |join: &Join| {
        let cohort = usize::from(join.cohort.0);
        let role = roles.get(cohort).cloned().unwrap_or_default();
        let joins_at = Duration::from_micros(u64::try_from(join.at.0).unwrap_or(0));
        let number = join.participant.0;
        let participant = match destinations.get(cohort) {
            Some(destination) => {
                let endpoint = destination.endpoint(join.place, run_id::random(number));
                factory.participant_at(&endpoint, number, joins_at, &role)
            }
            None => factory.participant(number, joins_at, &role),
        };
        in_trace(participant, join, traces.as_ref())
    }))
}

/// `participant`, whose requests name the trace of its join, if it has one.
fn in_trace(
    participant: Box<dyn Participant>,
    join: &Join,
    traces: Option<&LiveTraces>,
) -> Box<dyn Participant> {
    match traces.and_then(|traces| traces.join(join.participant, join.at)) {
        Some(trace) => throng_protocol::traced(participant, &trace.traceparent()),
        None => participant,
    }
}

fn turn_server(turn: &TurnServer, plan: &Plan) -> Result<RelayServer, CliError> {
    Ok(RelayServer::of_scenario(turn, token(&turn.password)?, plan.target.url()))
}

/// What the participants of a conference share: the files that they play, their talkspurts, the
/// room to create.
fn conference(plan: &Plan) -> Result<ConferenceConfig, CliError> {
    let clips = media::clips(plan)?;
    let new_room = plan.room.as_ref().map(|room| new_room(plan, room, &clips)).transpose()?;
    let is_even = plan.roles.iter().all(|role| role.speaking_weight == 1);
    let weights = (!is_even).then(|| -> Weights {
        let talks = |join: &throng_scenario::Join| {
            plan.roles.get(usize::from(join.cohort.0)).map(|role| role.speaking_weight)
        };
        let weights: HashMap<String, u32> = plan
            .joins
            .iter()
            .filter_map(|join| Some((join.participant.name(), talks(join)?)))
            .collect();
        Arc::new(move |name| weights.get(name).copied().unwrap_or(1))
    });
    Ok(ConferenceConfig {
        conversation: plan.conversation,
        weights,
        clips: Arc::new(clips),
        new_room,
    })
}

fn new_room(plan: &Plan, room: &RoomConfig, clips: &media::Clips) -> Result<NewRoom, CliError> {
    let sent = plan.roles.iter().filter_map(|role| {
        let publish = role.publish.as_ref().filter(|publish| publish.has_video())?;
        let of_file = publish.video_file.as_ref().and_then(|file| clips.get(file));
        Some(of_file.map_or(publish.codec, |clip| clip.codec()).name().to_ascii_lowercase())
    });
    let codecs = if room.video_codecs.is_empty() {
        sent.collect::<BTreeSet<_>>().into_iter().collect()
    } else {
        room.video_codecs.clone()
    };
    Ok(NewRoom {
        secret: run_id::room_secret(),
        admin_key: token_text(room.admin_key.as_ref())?,
        // A participant that rejoins needs a free place before the server has noticed that it left.
        publishers: room.publishers.unwrap_or_else(|| {
            plan.expected.users.div_ceil(plan.target.rooms.max(1)).saturating_mul(2)
        }),
        bitrate_bps: room.bits_per_s.unwrap_or(0.0) as u32,
        video_codecs: if codecs.is_empty() { "vp8".into() } else { codecs.join(",") },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use hyper::Request as HttpRequest;
    use throng_observation::RunTime;
    use throng_observation::run::{CohortId, ParticipantId, RunInfo};
    use throng_protocol::participant::{FetchId, Input, Output, Request};
    use throng_report::openmetrics::Metrics;
    use throng_report::otlp::Traces;
    use throng_scenario::Scenario;

    use super::*;
    use crate::exporter::LiveFigures;

    /// Asks for the same again and again.
    struct Asks;

    impl Participant for Asks {
        fn handle(&mut self, _: Instant, _: Input<'_>) {}

        fn poll_output(&mut self, _: Instant) -> Output {
            let request = HttpRequest::post("http://h/whep").body(()).unwrap();
            let (head, ()) = request.into_parts();
            let request = Request { head, body: Vec::new(), timeout: Duration::from_secs(1) };
            Output::Fetch(FetchId(1), Box::new(request))
        }
    }

    /// How many headers a request of the first join has.
    fn headers(traces: Option<&LiveTraces>) -> usize {
        let join = Join {
            participant: ParticipantId(0),
            cohort: CohortId(0),
            place: 0,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        };
        match in_trace(Box::new(Asks), &join, traces).poll_output(Instant::now()) {
            Output::Fetch(_, request) => request.head.headers.len(),
            output => panic!("{output:?}"),
        }
    }

    #[test]
    fn what_participants_tell_servers_alone_is_known() {
        let text = "[target]\nurl = \"http://me:first@127.0.0.1:9/?sig=second-2\"\n\
                    token = \"third\"\n[crowd]\nsize = 2\n\
                    player = { headers = { X-Session = \"fourth\" } }\n";
        let plan = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}")).plan();
        let known = told_to_servers(&plan, &media::Pages::default());
        let known: Vec<&str> = known.iter().map(Secret::expose).collect();
        assert_eq!(known, ["third", "fourth", "first", "second-2"]);
        let text = "[target]\nurl = \"http://127.0.0.1:9/\"\n[crowd]\nsize = 2\n\
                    player = { headers = { X-Auth = \"Bearer fifth\", \
                    Cookie = \"sid=sixth; n=seventh\", X-Words = \"of no scheme\" } }\n";
        let plan = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}")).plan();
        let mut known = told_to_servers(&plan, &media::Pages::default());
        known.retain(|secret| !secret.expose().contains(' '));
        let mut known: Vec<&str> = known.iter().map(Secret::expose).collect();
        known.sort_unstable();
        assert_eq!(known, ["fifth", "seventh", "sixth"]);
        let text = "[target]\nurl = \"rtsp://me:first@127.0.0.1:9/cam\"\n[crowd]\nsize = 2\n";
        let plan = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}")).plan();
        let known = told_to_servers(&plan, &media::Pages::default());
        let known: Vec<&str> = known.iter().map(Secret::expose).collect();
        assert_eq!(known, ["first", "bWU6Zmlyc3Q=", "AG1lAGZpcnN0"], "by Basic, by PLAIN");
    }

    #[test]
    fn what_a_recorded_page_tells_servers_alone_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let har = folder.path().join("page.har");
        let recorded = r#"{"log":{"entries":[{"startedDateTime":"2026-11-25T10:00:00Z","time":5,
            "request":{"method":"GET","url":"https://h/?access_token=second-2","headers":[
                {"name":"X-Auth","value":"Bearer first"}]},
            "response":{"status":200,"content":{"mimeType":"text/html"}}}]}}"#;
        std::fs::write(&har, recorded).unwrap();
        let text = format!(
            "[target]\nurl = \"http://127.0.0.1:9/a.m3u8\"\n[crowd]\nsize = 1\n\
             player = {{ har = {har:?} }}\n"
        );
        let plan = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan();
        let known = told_to_servers(&plan, &media::Pages::read(&plan).unwrap());
        let known: Vec<&str> = known.iter().map(Secret::expose).collect();
        assert_eq!(known, ["Bearer first", "second-2", "first"]);
    }

    #[test]
    fn only_requests_of_traced_joins_name_a_trace() {
        let traced = |most| {
            let traces = Traces::new(&RunInfo::default(), 7, most);
            headers(LiveFigures::new(Metrics::of_watch("1.2.3"), Some(traces)).traces().as_ref())
        };
        assert_eq!((headers(None), traced(0), traced(1)), (0, 0, 1));
    }
}
