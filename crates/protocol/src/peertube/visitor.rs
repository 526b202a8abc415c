//! The visitor: what is asked when, and what follows from it.

use std::time::{Duration, Instant};

use throng_observation::{Detail, Failure, FailureReason, Observation, Outcome, Phase, Url};
use throng_scenario::{PeerConfig, PeerEngine};

use super::calls::{Call, Called, Calls};
use super::heartbeat::Heartbeat;
use super::rhythm::{self, Rhythm};
use super::socket_io::{SocketEvent, SocketIo, SocketOutput};
use super::versions::{self, Version};
use super::video::{Found, Live, Room, Video};
use super::{ChatRoom, Config};
use crate::chat;
use crate::composite::{Part, is_of_whole, place};
use crate::excerpt::excerpt;
use crate::life::Life;
use crate::participant::{
    Channel, DownloadEvent, FetchId, HttpVersion, Input, Message, NEVER, Open, Output, Participant,
    Why,
};
use crate::player;
use crate::webrtc::ParticipantOptions;

/// The places of player and chat among the parts; the page itself has the first.
const PLAYER: usize = 1;
const CHAT: usize = 2;

/// The newest videos, which a page recommends.
const RECENT: &str = "/api/v1/videos?start=0&count=5&sort=-publishedAt&nsfw=false";
const LIVECHAT_SETTINGS: &str = "/api/v1/plugins/peertube-plugin-livechat/public-settings";

/// The channel of socket.io.
const SOCKET: Channel = Channel(0);

/// socket.io connects again after this long, varied by half, and twice as long after each failure,
/// in all not longer than the second (`reconnectionDelay`, `reconnectionDelayMax`).
const SOCKET_AGAIN: Duration = Duration::from_secs(1);
const SOCKET_AGAIN_MAX: Duration = Duration::from_secs(5);

/// A visitor of a watch page.
pub struct Visitor {
    config: Config,
    options: ParticipantOptions,
    rng: fastrand::Rng,
    calls: Calls,
    version: Option<Version>,
    /// Whether the instance has the chat's plugin.
    has_livechat: bool,
    rhythm: Option<Rhythm>,
    video: Option<Video>,
    /// Of the video, if it is live; known before it is played.
    live: Option<Live>,
    socket: Option<SocketIo>,
    socket_again_at: Option<Instant>,
    socket_failures: u32,
    /// When socket.io said something last.
    socket_heard_at: Option<Instant>,
    player: Option<Part>,
    heartbeat: Option<Heartbeat>,
    chat: Option<Part>,
    has_asked_for_chat: bool,
    has_reported_phases: bool,
    life: Life<()>,
}

impl Visitor {
    /// A visitor who has not come.
    #[must_use]
    pub fn new(config: Config, options: ParticipantOptions) -> Self {
        let version = match config.player.http {
            throng_scenario::HttpVersionPolicy::Http1 => HttpVersion::Http1,
            throng_scenario::HttpVersionPolicy::Http2 => HttpVersion::Http2,
            throng_scenario::HttpVersionPolicy::Http3 => HttpVersion::Http3,
            _ => HttpVersion::Negotiated,
        };
        Self {
            calls: Calls::new(config.page.clone(), version, config.player.head_timeout),
            rng: fastrand::Rng::with_seed(options.seed),
            config,
            options,
            version: None,
            has_livechat: false,
            rhythm: None,
            video: None,
            live: None,
            socket: None,
            socket_again_at: None,
            socket_failures: 0,
            socket_heard_at: None,
            player: None,
            heartbeat: None,
            chat: None,
            has_asked_for_chat: false,
            has_reported_phases: false,
            life: Life::new(),
        }
    }

    fn anomaly(&mut self, detail: impl Into<Detail>) {
        self.life.anomaly("peertube", detail);
    }

    /// The URL of `path` on the server of the page.
    fn url(&self, path: &str) -> Url {
        self.config.page.join(path).unwrap_or_else(|_| self.config.page.clone())
    }

    fn get(&mut self, now: Instant, call: Call, path: &str) {
        let url = self.url(path);
        self.calls.get(now, &mut self.life, call, &url);
    }

    fn post(&mut self, now: Instant, path: &str, body: String) {
        let url = self.url(path);
        let body = ("application/json; charset=UTF-8", body);
        self.calls.post(now, &mut self.life, Call::Heartbeat, &url, body);
    }

    /// What the page's URL calls the video.
    fn name(&self) -> String {
        let last =
            self.config.page.in_clear().path_segments().and_then(|mut parts| parts.next_back());
        last.unwrap_or_default().to_owned()
    }

    /// Whether its version searches for what it recommends.
    fn searches(&self) -> bool {
        self.version.is_some_and(|version| version.searches)
    }

    /// Asks for all that the page shows of the video.
    fn ask(&mut self, now: Instant) {
        let Some(version) = self.version else { return };
        let name = self.video.as_ref().map_or_else(|| self.name(), |video| video.uuid.clone());
        self.get(now, Call::Video, &format!("/api/v1/videos/{name}"));
        self.get(now, Call::Other, &format!("/api/v1/videos/{name}/captions"));
        if version.has_chapters {
            self.get(now, Call::Other, &format!("/api/v1/videos/{name}/chapters"));
            self.get(now, Call::Other, &format!("/api/v1/videos/{name}/storyboards"));
        }
        if version.has_player_settings {
            self.get(now, Call::Other, &format!("/api/v1/player-settings/videos/{name}"));
        }
    }

    /// A request of the page is over.
    fn called(&mut self, now: Instant, call: Call, called: Called) {
        match (call, called) {
            (Call::Page, Called::Body(page)) => {
                self.version = Some(versions::of_page(&page));
                self.has_livechat = versions::has_livechat(&page);
                self.rhythm = Some(rhythm::of_page(&page));
                if self.searches() {
                    self.get(now, Call::Other, "/api/v1/config/");
                    self.get(now, Call::Other, "/api/v1/oauth-clients/local");
                }
                self.ask(now);
            }
            (Call::Video, Called::Body(body)) => match serde_json::from_slice::<Video>(&body) {
                Ok(video) => self.learn(now, video),
                Err(error) => self.fail(
                    now,
                    FailureReason::Protocol,
                    &format!(
                        "the description of the video cannot be read: {}",
                        excerpt(&error.to_string())
                    ),
                ),
            },
            (Call::Live, Called::Body(body)) => {
                self.live = Some(serde_json::from_slice(&body).unwrap_or(Live::USUAL));
                self.play(now);
            }
            (Call::LivechatSettings, Called::Body(_)) => {
                let uuid = self.video.as_ref().map(|video| video.uuid.clone()).unwrap_or_default();
                self.get(
                    now,
                    Call::LivechatRoom,
                    &format!("/plugins/livechat/router/api/configuration/room/{uuid}"),
                );
            }
            (Call::LivechatRoom, Called::Body(body)) => match serde_json::from_slice::<Room>(&body)
            {
                Ok(room) => self.join(now, &room),
                Err(error) => {
                    let why = excerpt(&error.to_string());
                    self.anomaly(format!("the description of the chat cannot be read: {why}"));
                }
            },
            (Call::Handshake, Called::Body(body)) => {
                self.socket_heard_at = Some(now);
                let event = self.socket.as_mut().and_then(|socket| socket.shaken(&body));
                self.told(now, event);
            }
            (Call::Poll, Called::Body(body)) => {
                self.socket_heard_at = Some(now);
                let events =
                    self.socket.as_mut().map(|socket| socket.polled(&body)).unwrap_or_default();
                events.into_iter().for_each(|event| self.told(now, Some(event)));
                self.put_socket_outputs(now);
            }
            (Call::Message, Called::Body(_)) => {
                self.socket.iter_mut().for_each(SocketIo::posted);
                self.put_socket_outputs(now);
            }
            (Call::Recommended, Called::Body(body)) => {
                // The video itself is found too.
                let found: Found = serde_json::from_slice(&body).unwrap_or_default();
                if found.data.len() <= 1 {
                    self.get(now, Call::Other, RECENT);
                }
            }
            (Call::Other | Call::Heartbeat, Called::Body(_)) => {}
            (Call::Page | Call::Video, Called::Failed(why)) => {
                self.fail(now, why.reason, &why.detail);
            }
            (Call::Live, Called::Failed(why)) => {
                self.anomaly(format!(
                    "the description of the live stream was not received: {}",
                    why.detail
                ));
                self.live = Some(Live::USUAL);
                self.play(now);
            }
            (Call::Handshake | Call::Poll | Call::Message, Called::Failed(why)) => {
                self.anomaly(format!("socket.io: {}", why.detail));
                let event = self.socket.as_mut().and_then(SocketIo::broken);
                self.told(now, event);
            }
            (Call::LivechatSettings | Call::LivechatRoom, Called::Failed(why)) => {
                self.anomaly(format!("there is no chat: {}", why.detail));
            }
            (Call::Recommended | Call::Other | Call::Heartbeat, Called::Failed(why)) => {
                self.anomaly(why.detail);
            }
        }
    }

    fn fail(&mut self, now: Instant, reason: FailureReason, detail: &str) {
        let detail = format!("{}: {detail}", self.config.page);
        self.leave(now, Outcome::Failed(Failure::new(reason, detail)));
    }

    /// The API has said what the video is.
    fn learn(&mut self, now: Instant, video: Video) {
        let (id, uuid, is_live) = (video.id, video.uuid.clone(), video.is_live);
        let search = format!("/api/v1/search/videos?{}", video.recommended());
        self.video = Some(video);
        self.get(
            now,
            Call::Other,
            &format!("/api/v1/videos/{uuid}/comment-threads?start=0&count=10&sort=-createdAt"),
        );
        if self.searches() {
            self.get(now, Call::Recommended, &search);
        } else {
            self.get(now, Call::Other, RECENT);
        }
        // What socket.io tells is of lives only.
        if is_live && self.socket.is_none() {
            let socket = self.socket.insert(SocketIo::new(&self.config.page, id));
            socket.start();
            self.put_socket_outputs(now);
        }
        if !std::mem::replace(&mut self.has_asked_for_chat, true) {
            self.ask_for_chat(now);
        }
        if is_live {
            self.get(now, Call::Live, &format!("/api/v1/videos/live/{uuid}"));
        } else {
            self.play(now);
        }
    }

    /// What the chat's plugin asks for; it asks for its settings where a video has no chat, too.
    fn ask_for_chat(&mut self, now: Instant) {
        if self.config.chat.is_some() {
            self.get(now, Call::LivechatSettings, LIVECHAT_SETTINGS);
            if self.searches() {
                self.get(now, Call::Other, LIVECHAT_SETTINGS);
                self.get(now, Call::Other, LIVECHAT_SETTINGS);
            }
        } else if self.has_livechat {
            self.get(now, Call::Other, LIVECHAT_SETTINGS);
        }
    }

    /// Begins to play, if there is something to play and it is not played yet.
    fn play(&mut self, now: Instant) {
        let (Some(video), Some(version)) = (&self.video, self.version) else { return };
        let Some(playlist) = video.playlist().filter(|_| self.player.is_none()) else { return };
        let page = &self.config.page;
        let Some(url) = playlist.playlist(page) else {
            return self.anomaly("the URL of the playlist is not valid");
        };
        let mut config = self.config.player.clone();
        let live = self.live.unwrap_or(Live::USUAL);
        if url.origin() != page.origin() {
            // What is for the instance is not for the store of its segments.
            config.token = None;
            config.player.headers.clear();
        }
        config.url = url;
        config.player.page = Some(self.config.page.clone());
        config.player.live.segments_behind = Some(live.segments_behind());
        let peers = config.player.peers.take().filter(|_| live.allows_peers());
        // Without hashes PeerTube's player uses no peers.
        config.player.peers = peers.zip(playlist.hashes(page)).map(|(peers, hashes)| PeerConfig {
            engine: version.engine_with(peers.engine),
            tracker: video.tracker(page).or(peers.tracker),
            swarm: Some(match version.engine {
                PeerEngine::V4 => video.uuid.clone(),
                PeerEngine::V22 | PeerEngine::V23 | PeerEngine::V06 => {
                    config.url.in_clear().to_string()
                }
            }),
            hashes: Some(hashes),
            ..peers
        });
        let mut player = Part::new(PLAYER, "player", Box::new(player::Viewer::new(config)));
        player.take(now, Input::Start { intended_at: now });
        self.player = Some(player);
        self.life.reach(Phase::PageLoaded, now);
        let rhythm = self.rhythm.unwrap_or_else(|| rhythm::of_page(&[]));
        let heartbeat = Heartbeat::new(now, rhythm, version.has_sessions, &mut self.rng);
        let view = heartbeat.view();
        self.heartbeat = Some(heartbeat);
        self.send_view(now, view);
    }

    fn send_view(&mut self, now: Instant, body: String) {
        let uuid = self.video.as_ref().map(|video| video.uuid.clone()).unwrap_or_default();
        self.post(now, &format!("/api/v1/videos/{uuid}/views"), body);
    }

    /// Joins the chat of the video.
    fn join(&mut self, now: Instant, room: &Room) {
        let (Some(make), Ok(mut url)) =
            (&self.config.chat, self.config.page.join(&room.local_websocket_service_url))
        else {
            return;
        };
        let scheme = if matches!(url.scheme(), "https" | "wss") { "wss" } else { "ws" };
        if self.config.page.scheme() == "https" && scheme == "ws" {
            return self.anomaly(format!("{url} is mixed content, which browsers block: no chat"));
        }
        url.set_scheme(scheme);
        let domain = room.local_anonymous_jid.clone();
        let mut config = make(ChatRoom { url, domain, room: room.room.clone() });
        config.chat.origin.get_or_insert_with(|| self.config.page.origin().ascii_serialization());
        let member = chat::Member::new(config, self.options.clone());
        let mut chat = Part::new(CHAT, "chat", Box::new(member));
        chat.take(now, Input::Start { intended_at: now });
        self.chat = Some(chat);
    }

    /// socket.io told something.
    fn told(&mut self, now: Instant, event: Option<SocketEvent>) {
        match event {
            // The live has begun: everything is asked for again, by all who wait.
            Some(SocketEvent::State(1)) => self.ask(now),
            Some(SocketEvent::ForceEnd) => {
                if let Some(player) = &mut self.player {
                    player.take(now, Input::Leave { others_follow: true });
                }
            }
            Some(SocketEvent::Broken) => {
                let of_socket = |call| matches!(call, Call::Handshake | Call::Poll | Call::Message);
                let ended = self.calls.give_up(now, &mut self.life, of_socket);
                let has_worked = self.socket.as_ref().is_some_and(SocketIo::has_joined);
                let failures = if has_worked { 0 } else { self.socket_failures };
                self.socket_failures = failures.saturating_add(1);
                self.socket_again_at = Some(now + socket_delay(failures, self.rng.f64()));
                ended.into_iter().for_each(|(call, called)| self.called(now, call, called));
            }
            Some(SocketEvent::State(_) | SocketEvent::Viewers(_)) | None => {}
        }
        self.put_socket_outputs(now);
    }

    fn put_socket_outputs(&mut self, now: Instant) {
        for output in self.socket.as_mut().map(SocketIo::take_outputs).unwrap_or_default() {
            match output {
                SocketOutput::Handshake(url) => {
                    self.calls.get(now, &mut self.life, Call::Handshake, &url);
                }
                SocketOutput::Poll(url) => self.calls.get(now, &mut self.life, Call::Poll, &url),
                SocketOutput::Post(url, body) => {
                    let body = ("text/plain;charset=UTF-8", body);
                    self.calls.post(now, &mut self.life, Call::Message, &url, body);
                }
                SocketOutput::Open(url) => {
                    let origin = self.config.page.origin().ascii_serialization();
                    let headers = vec![("Origin".to_owned(), origin)];
                    self.life.push(Output::Open(
                        SOCKET,
                        Open::WebSocket { url, protocols: Vec::new(), headers },
                    ));
                }
                SocketOutput::Send(text) => {
                    self.life.push(Output::Signal(SOCKET, Message::Text(text)));
                }
                SocketOutput::Close => self.life.push(Output::Close(SOCKET)),
            }
        }
    }

    /// Does what is due.
    fn tick(&mut self, now: Instant) {
        if self.life.is_ending() {
            return;
        }
        for (call, called) in self.calls.give_up(now, &mut self.life, |_| false) {
            self.called(now, call, called);
        }
        if self.socket_silent_at().is_some_and(|at| now >= at) {
            self.anomaly("socket.io: no packet in time".to_owned());
            let event = self.socket.as_mut().and_then(SocketIo::broken);
            self.told(now, event);
        }
        if self.socket_again_at.take_if(|at| now >= *at).is_some() {
            self.socket.iter_mut().for_each(SocketIo::start);
            self.put_socket_outputs(now);
        }
        let has_peers = self.config.player.player.peers.is_some();
        let uuid = self.video.as_ref().map(|video| video.uuid.clone()).unwrap_or_default();
        let Some(heartbeat) = self.heartbeat.as_mut().filter(|_| self.player.is_some()) else {
            return;
        };
        let (view, metrics) =
            (heartbeat.due_view(now), heartbeat.due_metrics(now, &uuid, has_peers));
        view.into_iter().for_each(|body| self.send_view(now, body));
        metrics.into_iter().for_each(|body| self.post(now, "/api/v1/metrics/playback", body));
    }

    /// When socket.io has been silent for too long.
    fn socket_silent_at(&self) -> Option<Instant> {
        Some(self.socket_heard_at? + self.socket.as_ref()?.silence_max()?)
    }

    /// The tab is closed.
    fn leave(&mut self, now: Instant, outcome: Outcome) {
        if !self.life.is_ending() {
            self.socket.iter_mut().for_each(SocketIo::close);
            self.put_socket_outputs(now);
            self.parts().for_each(|part| part.take(now, Input::Leave { others_follow: true }));
            self.life.leave(None, outcome);
        }
    }

    /// What the page makes of an output of a part.
    fn pass(&mut self, now: Instant, place: usize, output: Output) -> Option<Output> {
        match output {
            Output::Ended(outcome) => {
                if place == PLAYER {
                    // Who has watched closes the tab.
                    self.leave(now, outcome);
                } else if let Outcome::Failed(failure) = outcome
                    && failure.reason != FailureReason::NotStarted
                {
                    self.anomaly(format!("the chat has ended: {failure}"));
                }
                None
            }
            Output::Observed(Observation::Playback(mut interval)) => {
                self.heartbeat.iter_mut().for_each(|heartbeat| heartbeat.played(&interval));
                interval.counters += self.calls.take_counters();
                Some(Output::Observed(Observation::Playback(interval)))
            }
            Output::Observed(Observation::Interval(interval)) if place == PLAYER => {
                self.heartbeat.iter_mut().for_each(|heartbeat| heartbeat.shows(&interval));
                Some(Output::Observed(Observation::Interval(interval)))
            }
            Output::Observed(Observation::Reached(phase, _))
                if place == PLAYER && phase < Phase::Described =>
            {
                None
            }
            Output::Observed(observation) if place == CHAT && !is_of_whole(&observation) => None,
            output => Some(output),
        }
    }

    /// The next output of the parts.
    fn poll_parts(&mut self, now: Instant) -> Option<Output> {
        loop {
            let of_player = self
                .player
                .as_mut()
                .and_then(|part| poll(part, now))
                .map(|output| (PLAYER, output));
            let of_chat =
                || self.chat.as_mut().and_then(|part| poll(part, now)).map(|output| (CHAT, output));
            let (place, output) = of_player.or_else(of_chat)?;
            if let Some(output) = self.pass(now, place, output) {
                return Some(output);
            }
        }
    }

    /// A response of the page.
    fn download(&mut self, now: Instant, fetch: FetchId, event: DownloadEvent<'_>) {
        let mut phases = Vec::new();
        let over = self.calls.handle(fetch, event, |opening| phases.extend(opening.phases()));
        if !phases.is_empty() && !std::mem::replace(&mut self.has_reported_phases, true) {
            self.life.extend(phases.into_iter().map(Output::Observed));
        }
        if let Some((call, called)) = over {
            self.called(now, call, called);
        }
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        self.player.iter_mut().chain(self.chat.iter_mut())
    }

    fn next_deadline(&self, now: Instant) -> (Instant, Why) {
        let parts = self.player.iter().chain(&self.chat).filter_map(Part::deadline);
        let socket = self.socket_again_at.map(|at| (at, "socket.io connects again"));
        let is_watched = self.player.as_ref().is_some_and(|player| !player.is_over());
        let heartbeat = self.heartbeat.as_ref().filter(|_| is_watched);
        let heartbeat = heartbeat.map(|heartbeat| (heartbeat.next_timeout(), "heartbeat"));
        let calls = self.calls.next_timeout().map(|at| (at, "response overdue"));
        let silence = self.socket_silent_at().map(|at| (at, "socket.io is silent"));
        let own = socket
            .into_iter()
            .chain(silence)
            .chain(heartbeat)
            .chain(calls)
            .filter(|_| !self.life.is_ending());
        parts.chain(own).min_by_key(|(at, _)| *at).unwrap_or((now + NEVER, "nothing"))
    }
}

/// How long after a connection of socket.io broke the next one is made, where so many have failed
/// since one worked.
fn socket_delay(failures: u32, draw: f64) -> Duration {
    SOCKET_AGAIN.saturating_mul(1 << failures.min(8)).mul_f64(0.5 + draw).min(SOCKET_AGAIN_MAX)
}

/// The next output of a part whose time has perhaps come.
fn poll(part: &mut Part, now: Instant) -> Option<Output> {
    part.wake(now);
    part.poll(now)
}

impl Participant for Visitor {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let of_part = place(&input).filter(|place| *place != 0);
        if let Some(part) = of_part {
            let part = if part == PLAYER { &mut self.player } else { &mut self.chat };
            if let Some(part) = part {
                part.handle(now, input);
            }
            return;
        }
        match input {
            Input::Start { .. } => {
                self.life.start(now, ());
                let page = self.config.page.clone();
                self.calls.get(now, &mut self.life, Call::Page, &page);
            }
            Input::Download { fetch, event } if !self.life.is_ending() => {
                self.download(now, fetch, event);
            }
            Input::Opened { .. } => {
                self.socket.iter_mut().for_each(SocketIo::opened);
                self.put_socket_outputs(now);
            }
            Input::Message { message: Message::Text(text), .. } => {
                self.socket_heard_at = Some(now);
                let event = self.socket.as_mut().and_then(|socket| socket.message(&text));
                self.told(now, event);
            }
            Input::Closed { .. } if !self.life.is_ending() => {
                let event = self.socket.as_mut().and_then(SocketIo::closed);
                self.told(now, event);
            }
            Input::Leave { others_follow } => {
                self.parts().for_each(|part| part.take(now, Input::Leave { others_follow }));
                if self.player.is_none() {
                    let outcome = if self.video.is_some() {
                        Outcome::Completed
                    } else {
                        Outcome::not_started("left before the page was there")
                    };
                    self.leave(now, outcome);
                }
            }
            // Due work is done when the outputs are drained.
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if !self.life.has_output() {
            self.tick(now);
        }
        if let Some(output) = self.life.pop().or_else(|| self.poll_parts(now)) {
            return output;
        }
        if self.player.iter().chain(&self.chat).all(Part::is_over) {
            self.life.over();
        }
        self.life.pop().unwrap_or_else(|| Output::wait(now, self.next_deadline(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_io_connects_again_after_a_second_and_never_later_than_five() {
        let delays = [0, 1, 2, 3, 40].map(|failures| socket_delay(failures, 0.5).as_millis());
        assert_eq!(delays, [1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(
            [0.0, 1.0].map(|draw| socket_delay(2, draw).as_millis()),
            [2_000, 5_000],
            "varied, then bounded"
        );
    }
}
