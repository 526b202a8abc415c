//! A participant that downloads as a script tells it, and the record of what it was told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use throng_engine::{Join, Reach, RunConfig, run};
use throng_observation::run::{CohortId, ParticipantId, Row};
use throng_observation::{Outcome, RunTime};
use throng_protocol::participant::{
    ChannelError, Demand, DownloadEvent, FetchId, HttpVersion, Input, Output, Participant, Request,
    TransportState,
};

/// What a script is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Start,
    /// Time passes: scripts poll what they wait for.
    Tick,
    Head(u32, Head),
    Body(u32, Vec<u8>),
    Ignored(u32, u64),
    Transport(u32, TransportState),
    Finished(u32, Result<(), ChannelError>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) version: http::Version,
    pub(crate) location: Option<String>,
    pub(crate) length: Option<u64>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) is_new: bool,
}

/// What a script does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Get(u32, String, HttpVersion),
    Want(u32, Demand),
    Cancel(u32),
    /// The session is over.
    End,
}

pub(crate) fn deliver(bytes: u64) -> Demand {
    Demand::Deliver(bytes)
}

pub(crate) fn ignore(bytes: u64) -> Demand {
    Demand::Ignore(bytes)
}

type Script = Box<dyn FnMut(&Event) -> Vec<Act> + Send>;

const TICK: Duration = Duration::from_millis(20);

/// Longest run: a script that never ends is a failure.
const FOR_MS: i64 = 30_000;

/// Time limit of heads: long, but of those that never come.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
const NO_HEAD_WITHIN: Duration = Duration::from_millis(700);

struct Puller {
    script: Script,
    outputs: VecDeque<Output>,
    events: Arc<Mutex<Vec<Event>>>,
    next: Instant,
}

impl Puller {
    fn tell(&mut self, event: Event) {
        for act in (self.script)(&event) {
            self.outputs.push_back(match act {
                Act::Get(id, url, version) => {
                    let timeout = if url.contains("silent") { NO_HEAD_WITHIN } else { HEAD_WITHIN };
                    let (head, ()) = http::Request::get(url).body(()).unwrap().into_parts();
                    let request = Request { head, body: vec![], timeout };
                    Output::Download(FetchId(id), Box::new(request), version)
                }
                Act::Want(id, demand) => Output::Demand(FetchId(id), demand),
                Act::Cancel(id) => Output::Cancel(FetchId(id)),
                Act::End => Output::Ended(Outcome::Completed),
            });
        }
        if event != Event::Tick {
            self.events.lock().unwrap().push(event);
        }
    }
}

impl Participant for Puller {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { .. } => {
                self.next = now + TICK;
                self.tell(Event::Start);
            }
            Input::Timeout => {
                self.next = now + TICK;
                self.tell(Event::Tick);
            }
            Input::Leave { .. } => {
                self.outputs.push_back(Output::Ended(Outcome::Completed));
            }
            Input::Download { fetch: FetchId(id), event } => self.tell(match event {
                DownloadEvent::Head { head, opening } => {
                    let text = |name: &str| {
                        head.headers
                            .get(name)
                            .and_then(|value| value.to_str().ok())
                            .map(str::to_owned)
                    };
                    let is_new = opening.connected_at.is_some() || opening.secured_at.is_some();
                    Event::Head(
                        id,
                        Head {
                            status: head.status.as_u16(),
                            version: head.version,
                            location: text("location"),
                            length: text("content-length").and_then(|length| length.parse().ok()),
                            local: opening.local,
                            is_new,
                        },
                    )
                }
                DownloadEvent::Body(bytes) => Event::Body(id, bytes.to_vec()),
                DownloadEvent::Ignored(bytes) => Event::Ignored(id, bytes),
                DownloadEvent::Transport(state) => Event::Transport(id, state),
                DownloadEvent::Finished(result) => Event::Finished(id, result),
            }),
            _ => {}
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Output {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.next, "tick"))
    }
}

/// Runs one participant with `script` until it ends; returns what it was told, without the ticks.
///
/// # Panics
/// When the script does not end.
pub(crate) fn pull(
    change: impl FnOnce(&mut RunConfig),
    script: impl FnMut(&Event) -> Vec<Act> + Send + 'static,
) -> Vec<Event> {
    let join = Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let reach: Reach = Arc::new(|_, to| to.ip().is_loopback());
    let mut config = RunConfig::new(vec![join], RunTime(FOR_MS * 1000), reach);
    config.connect_timeout = Duration::from_millis(1200);
    config.grace = Duration::from_millis(500);
    config.lead = Duration::from_millis(10);
    change(&mut config);
    let events = Arc::new(Mutex::new(Vec::new()));
    let script: Mutex<Option<Script>> = Mutex::new(Some(Box::new(script)));
    let seen = Arc::clone(&events);
    let factory = move |_: &Join| -> Box<dyn Participant> {
        let script = script.lock().unwrap().take().unwrap();
        let (outputs, events) = (VecDeque::new(), Arc::clone(&seen));
        Box::new(Puller { script, outputs, events, next: Instant::now() })
    };
    let (rows, written) = mpsc::sync_channel(10_000);
    let begun = Instant::now();
    let end = run(config, Arc::new(factory), rows).unwrap().wait();
    // An assertion of the script is the participant's panic.
    let failures: Vec<_> = written
        .iter()
        .filter_map(|row| match row {
            Row::Participant(row) => match row.outcome {
                Some(Outcome::Failed(failure)) => Some(failure.to_string()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(failures.is_empty(), "{failures:?}");
    let events = events.lock().unwrap().clone();
    let is_over = begun.elapsed() < Duration::from_millis(FOR_MS as u64);
    assert!(is_over, "{:?}: the script did not end: {events:?}", end.ending);
    events
}

/// Downloads `url` with `demands`, and ends with the download.
pub(crate) fn pull_one(
    url: &str,
    version: HttpVersion,
    demands: &[Demand],
    change: impl FnOnce(&mut RunConfig),
) -> Vec<Event> {
    let (url, demands) = (url.to_owned(), demands.to_vec());
    pull(change, move |event| match event {
        Event::Start => {
            let get = Act::Get(1, url.clone(), version);
            [get].into_iter().chain(demands.iter().map(|demand| Act::Want(1, *demand))).collect()
        }
        Event::Finished(..) => vec![Act::End],
        _ => vec![],
    })
}

/// How the only download ended.
pub(crate) fn result(events: &[Event]) -> Result<(), ChannelError> {
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Finished(_, result) => Some(result.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), 1, "{events:?}");
    results[0].clone()
}

/// The head of download `id`.
pub(crate) fn head(events: &[Event], id: u32) -> &Head {
    let head = events.iter().find_map(|event| match event {
        Event::Head(of, head) if *of == id => Some(head),
        _ => None,
    });
    head.unwrap_or_else(|| panic!("no head of {id}: {events:?}"))
}

/// The delivered bytes of download `id`.
pub(crate) fn delivered(events: &[Event], id: u32) -> Vec<u8> {
    let pieces = events.iter().filter_map(|event| match event {
        Event::Body(of, bytes) if *of == id => Some(bytes.as_slice()),
        _ => None,
    });
    pieces.collect::<Vec<_>>().concat()
}

/// How many bytes of download `id` were ignored.
pub(crate) fn ignored(events: &[Event], id: u32) -> u64 {
    let counts = events.iter().filter_map(|event| match event {
        Event::Ignored(of, bytes) if *of == id => Some(*bytes),
        _ => None,
    });
    counts.sum()
}
