//! The participant: it connects, asks for permission to publish, sends in real time and leaves.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use throng_observation::{Failure, FailureReason, MediaPath, Observation, Outcome, Phase};
use throng_scenario::IpProtocol;

use super::feed::{Feed, refuses};
use super::ffmpeg::{self, Progress};
use super::flv::{self, Tag};
use super::place::Config;
use super::session::{Event, Session};
use crate::life::Life;
use crate::participant::{
    ChannelError, Input, NEVER, Open, Opening, Output, Participant, StreamPeer, Transmit, Why,
};
use crate::published::PublishedMedia;
use crate::signalling::SIGNALLING;
use crate::webrtc::ParticipantOptions;

/// A participant that publishes one stream.
pub struct Publisher {
    config: Config,
    media: Vec<PublishedMedia>,
    options: ParticipantOptions,
    carrier: Carrier,
    life: Life<Step>,
    started_at: Instant,
    /// Once there is something to feed.
    feed: Option<Feed>,
    /// The connection, or the process, takes bytes.
    is_open: bool,
    server: SocketAddr,
}

/// What takes the media to the server.
enum Carrier {
    /// Our own RTMP.
    Rtmp(Box<Session>),
    /// An FFmpeg process.
    Ffmpeg(Progress),
}

enum Step {
    /// Waits for the connection, and for permission; with the time when it gives up.
    Joining {
        by: Instant,
    },
    Active,
}

impl Publisher {
    /// A publisher of `media`, at most one track of each kind.
    #[must_use]
    pub fn new(config: Config, media: Vec<PublishedMedia>, options: ParticipantOptions) -> Self {
        let carrier = if config.needs_ffmpeg() {
            Carrier::Ffmpeg(Progress::default())
        } else {
            let rng = fastrand::Rng::with_seed(options.seed);
            Carrier::Rtmp(Box::new(Session::new(config.place(), rng)))
        };
        Self {
            config,
            media,
            carrier,
            life: Life::new(),
            started_at: options.clock.at,
            feed: None,
            is_open: false,
            server: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            options,
        }
    }

    fn start(&mut self, now: Instant) -> Result<(), Failure> {
        self.started_at = now;
        self.life.start(now, Step::Joining { by: now + self.options.timeouts.signalling });
        let refused = self.media.iter().find_map(|media| refuses(&media.clip));
        let nothing =
            || self.media.is_empty().then(|| "the role has nothing to publish".to_owned());
        if let Some(why) = refused.or_else(nothing) {
            return Err(Failure::new(FailureReason::InternalError, why));
        }
        let open = match self.carrier {
            Carrier::Rtmp(_) => self.connection()?,
            Carrier::Ffmpeg(_) => self.process(now)?,
        };
        self.life.push(Output::Open(SIGNALLING, open));
        Ok(())
    }

    fn connection(&self) -> Result<Open, Failure> {
        let host = self.config.host().to_owned();
        // Names are checked by the driver, by what they resolve to.
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if let Ok(to) = literal.map(|ip| SocketAddr::new(ip, self.config.port()))
            && !(self.options.may_reach)(IpProtocol::Tcp, to)
        {
            return Err(Failure::new(
                FailureReason::NotAllowed,
                format!("{to} is not an allowed target"),
            ));
        }
        let tls = self.config.is_tls().then(|| host.clone());
        Ok(Open::Stream { to: StreamPeer::Host { host, port: self.config.port() }, tls })
    }

    /// The process, and the feed: its time 0 is that of the clock in the picture.
    fn process(&mut self, now: Instant) -> Result<Open, Failure> {
        let address = self.config.address(self.options.toward, &*self.options.may_reach)?;
        let feed = Feed::new(&self.media, self.options.clock, self.started_at, now);
        let encoding = feed.encoding(now).filter(|_| self.config.burns_clock);
        self.feed = Some(feed);
        let told = ffmpeg::preset(&self.config.options())?;
        let arguments = ffmpeg::arguments(
            &self.config.at(address),
            told.is_some(),
            self.config.protocol,
            encoding,
        );
        Ok(Open::Process { program: "ffmpeg", arguments, told, chosen: self.config.chosen })
    }

    fn opened(&mut self, now: Instant, opening: &Opening) {
        self.life.extend(opening.phases().map(Output::Observed));
        self.is_open = true;
        if let Some(remote) = opening.remote {
            self.server = remote;
        }
        match (&self.carrier, &self.feed) {
            (Carrier::Ffmpeg(_), Some(feed)) => {
                let (has_video, has_sound) = feed.kinds();
                let header = flv::file_header(has_video, has_sound);
                let tags = feed.headers();
                self.send(header);
                self.send_tags(tags);
                // It has to read the whole beginning before it connects.
                self.send_due(now);
            }
            _ => self.take_requests(),
        }
    }

    fn bytes(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.carrier {
            Carrier::Rtmp(session) => {
                let events = session.receive(bytes)?;
                self.take_requests();
                for event in events {
                    match event {
                        Event::Greeted => {}
                        Event::Connected => self.life.reach(Phase::Described, now),
                        Event::Publishes => self.publishes(now),
                    }
                }
            }
            Carrier::Ffmpeg(progress) => {
                if progress.takes_media(bytes)
                    && matches!(self.life.live(), Some(Step::Joining { .. }))
                {
                    self.active(now);
                }
            }
        }
        Ok(())
    }

    fn publishes(&mut self, now: Instant) {
        let feed = Feed::new(&self.media, self.options.clock, self.started_at, now);
        let tags = feed.headers();
        self.feed = Some(feed);
        self.send_tags(tags);
        self.active(now);
    }

    fn active(&mut self, now: Instant) {
        self.life.enter(Step::Active);
        let path = match (self.config.needs_ffmpeg(), self.config.is_tls()) {
            (true, _) => MediaPath::Process,
            (false, true) => MediaPath::RtmpTls,
            (false, false) => MediaPath::Rtmp,
        };
        self.life.observe(Observation::Path(path));
        self.life.reach(Phase::Playing, now);
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let transmit = Transmit { to: self.server, from: None, bytes };
        self.life.push(Output::Send(SIGNALLING, transmit));
    }

    fn send_tags(&mut self, tags: Vec<Tag>) {
        let mut bytes = Vec::new();
        for tag in tags {
            match &mut self.carrier {
                Carrier::Rtmp(session) => {
                    let body = if tag.kind == super::chunk::kind::DATA {
                        flv::set_data_frame(&tag.body)
                    } else {
                        tag.body
                    };
                    bytes.extend(session.media(tag.kind, tag.timestamp_ms, body));
                }
                Carrier::Ffmpeg(_) => flv::in_file(&tag, &mut bytes),
            }
        }
        if !bytes.is_empty() {
            self.send(bytes);
        }
    }

    fn take_requests(&mut self) {
        let Carrier::Rtmp(session) = &mut self.carrier else { return };
        let requests: Vec<_> = std::iter::from_fn(|| session.poll_send()).collect();
        requests.into_iter().for_each(|bytes| self.send(bytes));
    }

    fn send_due(&mut self, now: Instant) {
        let Some(feed) = self.feed.as_mut().filter(|_| self.is_open) else { return };
        let tags = feed.due(now);
        let intervals = feed.take_due_intervals(now);
        // What a process reads before it is connected has not been sent.
        let intervals = if self.is_active() { intervals } else { Vec::new() };
        self.send_tags(tags);
        self.life.extend(intervals.into_iter().map(Output::Observed));
    }

    fn is_active(&self) -> bool {
        matches!(self.life.live(), Some(Step::Active))
    }

    fn closed(&mut self, now: Instant, why: ChannelError) {
        let failure = match why {
            why if self.is_active() => why.after_opening(),
            ChannelError::Process(words) => Failure::new(ffmpeg::reason(&words), words),
            why => why.into(),
        };
        self.end(now, Outcome::Failed(failure));
    }

    fn leave(&mut self, now: Instant) {
        let outcome = if self.is_active() {
            Outcome::Completed
        } else {
            Outcome::not_started("left before the server took its media")
        };
        self.end(now, outcome);
    }

    /// Signs off, and closes the channel behind what was sent.
    fn end(&mut self, now: Instant, outcome: Outcome) {
        if let Some(mut feed) = self.feed.take().filter(|_| self.is_active()) {
            let intervals = feed.take_intervals(now);
            self.life.extend(intervals.into_iter().map(Output::Observed));
        }
        if let Carrier::Rtmp(session) = &mut self.carrier {
            session.leave();
        }
        self.take_requests();
        self.life.push(Output::Close(SIGNALLING));
        self.life.end(outcome);
    }

    fn tick(&mut self, now: Instant) {
        self.send_due(now);
        if let Some(Step::Joining { by }) = self.life.live()
            && now >= *by
        {
            let what = match &self.carrier {
                Carrier::Rtmp(session) => session.awaited().unwrap_or("publish"),
                Carrier::Ffmpeg(_) => "FFmpeg's media",
            };
            let within = throng_observation::units::duration(self.options.timeouts.signalling);
            let detail = format!("the server did not answer {what} within {within}");
            self.end(now, Outcome::Failed(Failure::new(FailureReason::SignallingTimeout, detail)));
        }
    }

    fn next_deadline(&self) -> (Instant, Why) {
        let never = (self.options.clock.at + NEVER, "nothing");
        let joining = match self.life.live() {
            Some(Step::Joining { by }) => Some((*by, "answer overdue")),
            Some(Step::Active) | None => None,
        };
        let feed = self.feed.as_ref().filter(|_| self.is_open).map(Feed::next_timeout);
        joining.into_iter().chain(feed).min_by_key(|(at, _)| *at).unwrap_or(never)
    }
}

impl Participant for Publisher {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if self.life.is_over() {
            return;
        }
        let result = match input {
            Input::Start { .. } => self.start(now),
            Input::Opened { channel: SIGNALLING, opening } => {
                self.opened(now, &opening);
                Ok(())
            }
            Input::Bytes { channel: SIGNALLING, bytes } => self.bytes(now, bytes),
            Input::Blocked { duration, .. } => {
                if let Some(feed) = &mut self.feed {
                    feed.blocked(duration);
                }
                Ok(())
            }
            Input::Closed { why, .. } => {
                self.closed(now, why);
                Ok(())
            }
            Input::Leave { .. } => {
                self.leave(now);
                Ok(())
            }
            // Due work is done when the outputs are drained.
            Input::Timeout
            | Input::Opened { .. }
            | Input::Bytes { .. }
            | Input::Datagram { .. }
            | Input::Message { .. }
            | Input::Fetched { .. }
            | Input::Download { .. } => Ok(()),
        };
        if let Err(failure) = result {
            self.end(now, Outcome::Failed(failure));
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        if !self.life.has_output() && !self.life.is_over() {
            self.tick(now);
        }
        self.life.pop().unwrap_or_else(|| Output::wait(now, self.next_deadline()))
    }
}
