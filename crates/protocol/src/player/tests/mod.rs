//! A server with a known rate, and the time moved by hand.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::timing::IndexCache;
use throng_observation::{
    Observation, Outcome, Phase, PlaybackCounters, PlaybackInterval, TrackInterval, Url,
};
use throng_scenario::{AtEnd, PlaybackPosition, PlayerConfig, UserHabits};

use super::{Config, PageVisit, Swarms, Viewer};
use crate::participant::{
    ChannelError, Demand, DownloadEvent, FetchId, HttpVersion, Input, Opening, Output, Participant,
};

mod browser;
mod cors;
mod dash_live;
mod dates_ahead;
mod failing;
mod file;
mod fragmented;
mod hashes;
mod holes;
mod jumps;
mod left_out;
mod live;
mod live_with_peers;
mod low_latency;
mod matroska;
mod movie;
mod packed_audio;
mod page;
mod playing;
mod recording_with_peers;
mod segmented;
mod short_segments;
mod sizes;
mod slow_pictures;

use movie::{Movie, movie};

/// How the time is moved.
const STEP: Duration = Duration::from_millis(10);

/// A response of the server to a request for `range`, whose path has `OPTIONS ` before it if that
/// is its method; `None` for a connection that breaks before the head.
type Answers = Box<dyn FnMut(&str, Option<(u64, Option<u64>)>) -> Option<Reply>>;

#[derive(Clone)]
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Bytes after which the connection breaks.
    breaks_after: Option<usize>,
    /// The server holds it back until then, since the start.
    not_before: Duration,
}

thread_local! {
    /// The time since the start, for servers whose answers depend on it.
    static CLOCK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn clock() -> Duration {
    CLOCK.get()
}

/// The wall clock at the start, seconds since 1970.
const STARTS_AT_S: u64 = 86_400;

impl Reply {
    fn of(status: u16, headers: &[(&'static str, String)]) -> Self {
        Self {
            status,
            headers: headers.to_vec(),
            body: Vec::new(),
            breaks_after: None,
            not_before: Duration::ZERO,
        }
    }

    /// The part of `body` that was asked for.
    fn range(body: &[u8], range: Option<(u64, Option<u64>)>) -> Self {
        let total = body.len();
        let (first, last) = range.map_or((0, total - 1), |(first, last)| {
            (first as usize, last.map_or(total - 1, |last| (last as usize).min(total - 1)))
        });
        let body = body[first..=last].to_vec();
        let headers = vec![
            ("content-length", body.len().to_string()),
            ("content-range", format!("bytes {first}-{last}/{total}")),
        ];
        Self { headers, body, ..Self::of(206, &[]) }
    }
}

struct Download {
    fetch: FetchId,
    reply: Option<Reply>,
    has_head: bool,
    sent: usize,
    demands: Vec<Demand>,
}

/// A viewer of `url`, who begins now.
fn config(url: &str, player: PlayerConfig) -> Config {
    Config {
        url: Url::parse(url).unwrap(),
        http: player.http.of(1, 3),
        player,
        page: None,
        token: None,
        may_reach: Arc::new(|_, to| to.ip().to_string().starts_with("10.")),
        clock: WallClock { at: Instant::now(), unix_ns: STARTS_AT_S * 1_000_000_000 },
        number: 3,
        identity_seed: 0,
        head_timeout: Duration::from_secs(10),
        indexes: IndexCache::default(),
        playlists: PlaylistCache::default(),
        swarms: Swarms::default(),
    }
}

/// A viewer, a server, and the time.
struct Fixture {
    viewer: Viewer,
    start: Instant,
    now: Instant,
    /// What the server and the way to it carry.
    bytes_per_s: u64,
    answers: Answers,
    downloads: Vec<Download>,
    /// Requests as `PATH FIRST-`.
    requests: Vec<String>,
    versions: Vec<HttpVersion>,
    heads: Vec<http::request::Parts>,
    /// Why the alternatives of the server cannot be reached.
    alternative_failed: Option<ChannelError>,
    /// When each was made.
    requested_at: Vec<Duration>,
    cancelled: Vec<FetchId>,
    /// Bytes that the viewer read.
    delivered: u64,
    /// The next deadline, and how many have passed.
    deadline: Instant,
    wakes: u64,
    observed: Vec<(Duration, Observation)>,
    ended: Option<Outcome>,
}

impl Fixture {
    fn new(player: PlayerConfig, bytes_per_s: u64, answers: Answers) -> Self {
        Self::at("http://10.0.0.1/movie.mp4", player, bytes_per_s, answers)
    }

    fn at(url: &str, player: PlayerConfig, bytes_per_s: u64, answers: Answers) -> Self {
        Self::visiting(url, None, player, bytes_per_s, answers)
    }

    /// A viewer that loads a page before.
    fn visiting(
        url: &str,
        page: Option<PageVisit>,
        player: PlayerConfig,
        bytes_per_s: u64,
        answers: Answers,
    ) -> Self {
        Self::watching(Config { page, ..config(url, player) }, bytes_per_s, answers)
    }

    fn watching(config: Config, bytes_per_s: u64, answers: Answers) -> Self {
        let start = config.clock.at;
        CLOCK.set(Duration::ZERO);
        let viewer = Viewer::new(config);
        let mut fixture = Self {
            viewer,
            start,
            now: start,
            bytes_per_s,
            answers,
            downloads: Vec::new(),
            requests: Vec::new(),
            versions: Vec::new(),
            heads: Vec::new(),
            alternative_failed: None,
            requested_at: Vec::new(),
            cancelled: Vec::new(),
            delivered: 0,
            deadline: start,
            wakes: 0,
            observed: Vec::new(),
            ended: None,
        };
        fixture.viewer.handle(start, Input::Start { intended_at: start });
        fixture.drain();
        fixture
    }

    /// A server of one file.
    fn of(player: PlayerConfig, bytes_per_s: u64, movie: &Movie) -> Self {
        let body = movie.bytes.clone();
        Self::new(player, bytes_per_s, Box::new(move |_, range| Some(Reply::range(&body, range))))
    }

    fn drain(&mut self) {
        for turn in 0.. {
            assert!(turn < 10_000, "the viewer does not come to rest");
            match self.viewer.poll_output(self.now) {
                Output::Download(fetch, request, version) => {
                    self.versions.push(version);
                    self.heads.push(request.head.clone());
                    let range = request.head.headers.get("range").map(|value| {
                        let (first, last) = value
                            .to_str()
                            .unwrap()
                            .strip_prefix("bytes=")
                            .unwrap()
                            .split_once('-')
                            .unwrap();
                        (first.parse().unwrap(), last.parse().ok())
                    });
                    let is_preflight = request.head.method == http::Method::OPTIONS;
                    let method = if is_preflight { "OPTIONS " } else { "" };
                    let path = format!("{method}{}", request.head.uri.path_and_query().unwrap());
                    self.requested_at.push(self.now - self.start);
                    self.requests
                        .push(format!("{path} {}", range.map_or(0, |(first, _): (u64, _)| first)));
                    let reply = (self.answers)(&path, range);
                    self.downloads.push(Download {
                        fetch,
                        reply,
                        has_head: false,
                        sent: 0,
                        demands: vec![],
                    });
                }
                Output::Demand(fetch, demand) => {
                    if let Some(download) = self.downloads.iter_mut().find(|d| d.fetch == fetch) {
                        download.demands.push(demand);
                    }
                }
                Output::Cancel(fetch) => {
                    self.downloads.retain(|download| download.fetch != fetch);
                    self.cancelled.push(fetch);
                }
                Output::Observed(observation) => {
                    self.observed.push((self.now - self.start, observation));
                }
                Output::Ended(outcome) => self.ended = Some(outcome),
                Output::Timeout(at, _) => {
                    assert!(at > self.now);
                    self.deadline = at;
                    return;
                }
                other => panic!("{other:?}"),
            }
            if self.ended.is_some() {
                return;
            }
        }
    }

    fn tell(&mut self, fetch: FetchId, event: DownloadEvent<'_>) {
        self.viewer.handle(self.now, Input::Download { fetch, event });
        self.drain();
    }

    /// Moves the time by `time`, and what the server sends in it.
    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until && self.ended.is_none() {
            self.now += STEP;
            CLOCK.set(self.now - self.start);
            self.wakes += u64::from(self.deadline <= self.now);
            self.viewer.handle(self.now, Input::Timeout);
            self.drain();
            let mut budget = (self.bytes_per_s as f64 * STEP.as_secs_f64()) as usize;
            while budget > 0 && self.ended.is_none() && self.send(&mut budget) {}
        }
    }

    fn seconds(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds));
    }

    /// Sends the next piece of a download; false if there is none that is wanted.
    fn send(&mut self, budget: &mut usize) -> bool {
        let failed = self.alternative_failed.clone().map(Box::new);
        let opening = Opening {
            connected_at: Some(self.now),
            alternative_failed: failed,
            ..Opening::default()
        };
        for at in 0..self.downloads.len() {
            let download = &mut self.downloads[at];
            let fetch = download.fetch;
            let Some(reply) = &download.reply else {
                self.downloads.remove(at);
                let broken = Err(ChannelError::Tcp("10.0.0.1:80: refused".into()));
                self.tell(fetch, DownloadEvent::Finished(broken));
                return true;
            };
            if clock() < reply.not_before {
                continue;
            }
            if !download.has_head {
                download.has_head = true;
                let mut head =
                    Response::builder().status(StatusCode::from_u16(reply.status).unwrap());
                for (name, value) in &reply.headers {
                    head = head.header(*name, value);
                }
                let (head, ()) = head.body(()).unwrap().into_parts();
                let event =
                    DownloadEvent::Head { head: Box::new(head), opening: Box::new(opening) };
                self.tell(fetch, event);
                return true;
            }
            let end = reply.breaks_after.unwrap_or(reply.body.len());
            if download.sent == end {
                let result = match reply.breaks_after {
                    Some(_) => Err(ChannelError::Truncated {
                        received: end as u64,
                        expected: reply.body.len() as u64,
                    }),
                    None => Ok(()),
                };
                self.downloads.remove(at);
                self.tell(fetch, DownloadEvent::Finished(result));
                return true;
            }
            let Some(demand) = download.demands.first_mut() else { continue };
            let (Demand::Deliver(left) | Demand::Ignore(left)) = demand;
            let count = (*left as usize).min(*budget).min(end - download.sent);
            *left -= count as u64;
            let is_ignored = matches!(demand, Demand::Ignore(_));
            let is_met = matches!(demand, Demand::Deliver(0) | Demand::Ignore(0));
            if is_met {
                download.demands.remove(0);
            }
            let bytes = reply.body[download.sent..download.sent + count].to_vec();
            download.sent += count;
            *budget -= count;
            self.delivered += if is_ignored { 0 } else { count as u64 };
            let event = if is_ignored {
                DownloadEvent::Ignored(count as u64)
            } else {
                DownloadEvent::Body(&bytes)
            };
            self.tell(fetch, event);
            return true;
        }
        false
    }

    /// When a phase was reached.
    fn reached(&self, phase: Phase) -> Option<Duration> {
        let reached = self.observed.iter().find_map(|(_, observation)| match observation {
            Observation::Reached(known, at) if *known == phase => Some(*at),
            _ => None,
        });
        reached.map(|at| at - self.start)
    }

    fn intervals(&self) -> Vec<&PlaybackInterval> {
        let mut intervals = Vec::new();
        for (_, observation) in &self.observed {
            if let Observation::Playback(interval) = observation {
                intervals.push(&**interval);
            }
        }
        intervals
    }

    fn totals(&self) -> PlaybackCounters {
        let mut totals = PlaybackCounters::default();
        self.intervals().iter().for_each(|interval| totals += interval.counters);
        totals
    }

    fn track_intervals(&self, track: u16) -> impl Iterator<Item = &TrackInterval> {
        self.observed.iter().filter_map(move |(_, observation)| match observation {
            Observation::Interval(interval) if interval.track.0 == track => Some(&**interval),
            _ => None,
        })
    }

    fn frames_played(&self, track: u16) -> u64 {
        self.track_intervals(track).map(|interval| interval.counters.frames_complete).sum()
    }

    fn anomalies(&self) -> Vec<&str> {
        let mut anomalies = Vec::new();
        for (_, observation) in &self.observed {
            if let Observation::ProtocolAnomaly { detail, .. } = observation {
                anomalies.push(detail.as_str());
            }
        }
        anomalies
    }

    fn failure(&self) -> String {
        match &self.ended {
            Some(Outcome::Failed(failure)) => failure.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

/// A player with a buffer of so many seconds.
fn buffering(seconds: u64) -> PlayerConfig {
    PlayerConfig { buffer: Duration::from_secs(seconds), ..PlayerConfig::default() }
}

fn from(position: PlaybackPosition) -> PlayerConfig {
    PlayerConfig { position, ..buffering(5) }
}
