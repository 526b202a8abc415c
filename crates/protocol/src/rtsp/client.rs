//! The dialogue of an RTSP session: requests with their deadlines, and what the server's responses
//! mean.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rtsp_types::{Message, Method, Request, Response, StatusCode, Version, headers};
use throng_observation::{Failure, FailureReason, Url};

use super::credentials::{Authentication, Credentials};
use super::description::{Description, control_url};
use super::npt;
use super::rtp_info::{self, FirstPacket};
use super::transport::Granted;
use crate::excerpt::{after_colon, excerpt};

/// Redirects that are followed.
const REDIRECTS_MAX: u8 = 5;
/// The session timeout where the server names none (RFC 2326 section 12.37).
const SESSION_TIMEOUT_S: u64 = 60;
/// The least time between two keepalives, for servers that name a session timeout of nothing.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Options,
    Describe,
    /// Of the media section with this index.
    SetUp(usize),
    Play,
    Pause,
    Announce,
    Record,
    Keepalive,
    Teardown,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Options => "OPTIONS",
            Self::Describe => "DESCRIBE",
            Self::SetUp(_) => "SETUP",
            Self::Play => "PLAY",
            Self::Pause => "PAUSE",
            Self::Announce => "ANNOUNCE",
            Self::Record => "RECORD",
            Self::Keepalive => "the keepalive",
            Self::Teardown => "TEARDOWN",
        }
    }
}

/// The meaning of a response.
#[derive(Debug)]
pub(super) enum Answer {
    /// OPTIONS was answered.
    Ready,
    Described(Description),
    SetUp(usize, Granted),
    /// 461: another transport may be supported.
    TransportRefused,
    Plays(Played),
    /// A PLAY after the first was refused: of a recording from its beginning, after a pause or a
    /// seek.
    PlayRefused(StatusCode),
    Paused,
    /// Playback goes on.
    PauseRefused(StatusCode),
    /// The description was accepted.
    Announced,
    Records,
    /// The presentation is elsewhere.
    Moved(Url),
    /// The session is torn down.
    Gone,
    /// Nothing follows from it.
    Nothing,
}

/// What a server plays, as its response to PLAY says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Played {
    /// The position in the recording at which it begins.
    pub(super) from: Option<Duration>,
    /// The position at which it stops.
    pub(super) until: Option<Duration>,
    /// How fast the position moves, where the server says it: `Scale` times `Speed` (RFC 2326
    /// section 12.35).
    pub(super) scale: Option<f64>,
    /// The first packet of each track.
    pub(super) first: Vec<FirstPacket>,
}

/// A request that is not answered yet.
struct Pending {
    step: Step,
    cseq: u32,
    by: Instant,
    /// Its parts, to repeat it with credentials.
    method: Method,
    uri: String,
    extra: Vec<(headers::HeaderName, String)>,
    body: String,
}

/// The RTSP dialogue on one connection.
pub(super) struct Client {
    url: Url,
    /// The presentation's URL, for PLAY and TEARDOWN.
    aggregate: String,
    /// The base of relative control URLs.
    base: String,
    authentication: Authentication,
    answer_within: Duration,
    cseq: u32,
    pending: Option<Pending>,
    /// The `CSeq` of a request whose answer TEARDOWN did not wait for.
    abandoned: Option<u32>,
    session: Option<String>,
    keepalive: Method,
    keepalive_every: Duration,
    keepalive_at: Option<Instant>,
    redirects: u8,
    plays: bool,
    sends: VecDeque<Vec<u8>>,
    anomalies: Vec<String>,
}

impl Client {
    /// A dialogue about the presentation at `url` (`rtsp:` or `rtsps:`, without user info).
    pub(super) fn new(url: Url, credentials: Option<Credentials>, answer_within: Duration) -> Self {
        let text = url.in_clear().to_string();
        Self {
            url,
            aggregate: text.clone(),
            base: text,
            authentication: Authentication::new(credentials),
            answer_within,
            cseq: 0,
            pending: None,
            abandoned: None,
            session: None,
            keepalive: Method::Options,
            keepalive_every: Duration::from_secs(SESSION_TIMEOUT_S / 2),
            keepalive_at: None,
            redirects: 0,
            plays: false,
            sends: VecDeque::new(),
            anomalies: Vec::new(),
        }
    }

    /// The presentation as requests name it.
    fn uri(&self) -> String {
        self.url.in_clear().to_string()
    }

    pub(super) fn options(&mut self, now: Instant) {
        self.request(now, Step::Options, Method::Options, self.uri(), Vec::new());
    }

    pub(super) fn describe(&mut self, now: Instant) {
        let accept = (headers::ACCEPT, "application/sdp".to_owned());
        self.request(now, Step::Describe, Method::Describe, self.uri(), vec![accept]);
    }

    /// Announces what is published, as SDP.
    pub(super) fn announce(&mut self, now: Instant, sdp: String) {
        let kind = (headers::CONTENT_TYPE, "application/sdp".to_owned());
        self.request_with(
            now,
            Step::Announce,
            Method::Announce,
            self.aggregate.clone(),
            vec![kind],
            sdp,
        );
    }

    /// Sets up media section `at`, whose control URL is given; `transport` is the header's value.
    pub(super) fn set_up(
        &mut self,
        now: Instant,
        at: usize,
        control: Option<&str>,
        transport: String,
    ) {
        let uri = control_url(&self.base, control);
        self.request(
            now,
            Step::SetUp(at),
            Method::Setup,
            uri,
            vec![(headers::TRANSPORT, transport)],
        );
    }

    /// The URL of a media section.
    pub(super) fn url_of(&self, control: Option<&str>) -> String {
        control_url(&self.base, control)
    }

    /// Plays from a position of a recording (of a live presentation, from now), or without one from
    /// where it was paused; at so many times the normal speed.
    pub(super) fn play(&mut self, now: Instant, from: Option<Duration>, scale: f64) {
        let mut extra = Vec::new();
        extra.extend(from.map(|from| (headers::RANGE, npt::from(from))));
        if scale != 1.0 {
            extra.push((headers::SCALE, format!("{scale:.3}")));
        }
        self.request(now, Step::Play, Method::Play, self.aggregate.clone(), extra);
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.request(now, Step::Pause, Method::Pause, self.aggregate.clone(), Vec::new());
    }

    /// Begins to publish.
    pub(super) fn record(&mut self, now: Instant) {
        let range = (headers::RANGE, npt::from(Duration::ZERO));
        self.request(now, Step::Record, Method::Record, self.aggregate.clone(), vec![range]);
    }

    /// Whether no request waits for its answer: one is open at a time, so that a keepalive may have
    /// to be answered first.
    pub(super) fn is_free(&self) -> bool {
        self.pending.is_none()
    }

    /// Ends the session; false when there is none.
    pub(super) fn tear_down(&mut self, now: Instant) -> bool {
        self.keepalive_at = None;
        if self.session.is_none() {
            return false;
        }
        self.abandoned = self.pending.as_ref().map(|pending| pending.cseq);
        self.request(now, Step::Teardown, Method::Teardown, self.aggregate.clone(), Vec::new());
        true
    }

    /// The session is set up anew: without a session id, the description is kept.
    pub(super) fn forget_session(&mut self) {
        self.session = None;
        self.keepalive_at = None;
        self.plays = false;
    }

    /// Continues at another URL, on a new connection.
    pub(super) fn moved_to(&mut self, url: Url, credentials: Option<Credentials>) {
        let text = url.in_clear().to_string();
        (self.url, self.aggregate, self.base) = (url, text.clone(), text);
        self.authentication = Authentication::new(credentials);
        (self.pending, self.session, self.cseq) = (None, None, 0);
    }

    /// The bytes to send next.
    pub(super) fn poll_send(&mut self) -> Option<Vec<u8>> {
        self.sends.pop_front()
    }

    /// What broke the protocol but could be ignored.
    pub(super) fn take_anomalies(&mut self) -> Vec<String> {
        std::mem::take(&mut self.anomalies)
    }

    /// The next deadline.
    pub(super) fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let response = self.pending.as_ref().map(|pending| (pending.by, "RTSP response overdue"));
        let keepalive = self.keepalive_at.map(|at| (at, "RTSP keepalive"));
        response.into_iter().chain(keepalive).min_by_key(|(at, _)| *at)
    }

    /// Sends a keepalive that is due.
    ///
    /// # Errors
    /// A response is overdue.
    pub(super) fn timeout(&mut self, now: Instant) -> Result<(), Failure> {
        if let Some(pending) = self.pending.as_ref().filter(|pending| now >= pending.by) {
            let (step, seconds) = (pending.step.name(), self.answer_within.as_secs_f64());
            let noticed = self.anomalies.last().map(|last| format!("; {last}")).unwrap_or_default();
            let detail = format!("{step} was not answered within {seconds:.1} s{noticed}");
            return Err(Failure::new(FailureReason::SignallingTimeout, detail));
        }
        if self.keepalive_at.is_some_and(|at| now >= at) && self.pending.is_none() {
            self.keepalive_at = Some(now + self.keepalive_every);
            let method = self.keepalive.clone();
            self.request(now, Step::Keepalive, method, self.aggregate.clone(), Vec::new());
        }
        Ok(())
    }

    /// Takes a message of the server.
    ///
    /// # Errors
    /// The session cannot be continued.
    pub(super) fn message(
        &mut self,
        now: Instant,
        message: Message<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        match message {
            Message::Response(response) => self.response(now, &response),
            Message::Request(request) => self.asked(&request),
            Message::Data(_) => Ok(Answer::Nothing),
        }
    }

    fn response(&mut self, now: Instant, response: &Response<Vec<u8>>) -> Result<Answer, Failure> {
        let Some(pending) = self.pending.take() else {
            self.anomalies.push("a response without a request".into());
            return Ok(Answer::Nothing);
        };
        let cseq =
            header(response, &headers::CSEQ).and_then(|cseq| cseq.trim().parse::<u32>().ok());
        match cseq {
            Some(cseq) if cseq == pending.cseq => {}
            Some(cseq) if self.abandoned == Some(cseq) => {
                self.pending = Some(pending);
                return Ok(Answer::Nothing);
            }
            // Only one request is open at a time, so that there is no doubt which one it answers.
            None => {
                self.anomalies.push(format!("{} was answered without CSeq", pending.step.name()));
            }
            Some(cseq) => {
                let (step, expected) = (pending.step.name(), pending.cseq);
                self.anomalies
                    .push(format!("{step} with CSeq {expected} was answered with CSeq {cseq}"));
                self.pending = Some(pending);
                return Ok(Answer::Nothing);
            }
        }
        let status = response.status();
        match status {
            StatusCode::Unauthorized => self.unauthorized(now, response, pending),
            _ if status.is_redirection() => self.redirected(response, pending.step),
            _ if status.is_success() => self.succeeded(now, response, pending.step),
            StatusCode::UnsupportedTransport if matches!(pending.step, Step::SetUp(_)) => {
                Ok(Answer::TransportRefused)
            }
            _ if pending.step == Step::Teardown => Ok(Answer::Gone),
            _ if pending.step == Step::Options => Ok(Answer::Ready),
            // 454 is no refusal of the request: the session is gone.
            StatusCode::SessionNotFound if pending.step == Step::Pause => {
                Err(refused(pending.step, response))
            }
            _ if pending.step == Step::Pause => Ok(Answer::PauseRefused(status)),
            _ if pending.step == Step::Play && self.plays => Ok(Answer::PlayRefused(status)),
            _ => Err(refused(pending.step, response)),
        }
    }

    fn unauthorized(
        &mut self,
        now: Instant,
        response: &Response<Vec<u8>>,
        pending: Pending,
    ) -> Result<Answer, Failure> {
        let unauthorized = |detail: String| Err(Failure::new(FailureReason::Unauthorized, detail));
        let step = pending.step.name();
        if !self.authentication.has_credentials() {
            let write = "write USER:PASSWORD and an @ before the host of the URL";
            return unauthorized(format!(
                "{step}: the server requires a user name and password; {write}"
            ));
        }
        let had_answered = self.authentication.has_answered();
        let challenges = response.headers().filter(|(name, _)| **name == headers::WWW_AUTHENTICATE);
        let challenges: Vec<&str> = challenges.map(|(_, value)| value.as_str()).collect();
        if let Err(why) = self.authentication.challenge(challenges.into_iter()) {
            return unauthorized(format!("{step}: no usable challenge{}", after_colon(&why)));
        }
        let was_sent = pending.extra.iter().any(|(name, _)| *name == headers::AUTHORIZATION);
        if was_sent && !(had_answered && self.authentication.is_stale()) {
            return unauthorized(format!("{step}: the server refused user name and password"));
        }
        let Pending { step, method, uri, mut extra, body, .. } = pending;
        extra.retain(|(name, _)| *name != headers::AUTHORIZATION);
        self.request_with(now, step, method, uri, extra, body);
        Ok(Answer::Nothing)
    }

    fn redirected(&mut self, response: &Response<Vec<u8>>, step: Step) -> Result<Answer, Failure> {
        self.redirects += 1;
        let target =
            header(response, &headers::LOCATION).and_then(|to| self.url.join(to.trim()).ok());
        match target {
            _ if self.redirects > REDIRECTS_MAX => {
                let detail = format!("more than {REDIRECTS_MAX} redirects");
                Err(Failure::new(FailureReason::Protocol, detail))
            }
            Some(url) if matches!(url.scheme(), "rtsp" | "rtsps") => Ok(Answer::Moved(url)),
            _ => {
                let (step, status) = (step.name(), u16::from(response.status()));
                let detail = format!("{step}: {status} without an RTSP URL to go to");
                Err(Failure::new(FailureReason::Protocol, detail))
            }
        }
    }

    fn succeeded(
        &mut self,
        now: Instant,
        response: &Response<Vec<u8>>,
        step: Step,
    ) -> Result<Answer, Failure> {
        match step {
            Step::Options => {
                let public = header(response, &headers::PUBLIC).unwrap_or_default();
                if public
                    .split(',')
                    .any(|method| method.trim().eq_ignore_ascii_case("GET_PARAMETER"))
                {
                    self.keepalive = Method::GetParameter;
                }
                Ok(Answer::Ready)
            }
            Step::Describe => self.described(response),
            Step::SetUp(at) => self.was_set_up(response, at),
            Step::Play => {
                self.plays = true;
                self.keepalive_at = Some(now + self.keepalive_every);
                let range = header(response, &headers::RANGE).map(npt::range);
                let (from, until) = range.unwrap_or_default();
                Ok(Answer::Plays(Played {
                    from,
                    until,
                    scale: speed(response),
                    first: header(response, &headers::RTP_INFO)
                        .map(rtp_info::read)
                        .unwrap_or_default(),
                }))
            }
            Step::Pause => Ok(Answer::Paused),
            Step::Announce => {
                // Darwin Streaming Server begins the session here.
                self.take_session(response);
                Ok(Answer::Announced)
            }
            Step::Record => {
                self.keepalive_at = Some(now + self.keepalive_every);
                Ok(Answer::Records)
            }
            Step::Teardown => Ok(Answer::Gone),
            Step::Keepalive => Ok(Answer::Nothing),
        }
    }

    fn described(&mut self, response: &Response<Vec<u8>>) -> Result<Answer, Failure> {
        let base = [headers::CONTENT_BASE, headers::CONTENT_LOCATION];
        let base = base.iter().find_map(|name| header(response, name)).map(str::trim);
        // Some servers write a path: it is relative to the request.
        let base = base.and_then(|base| self.url.join(base).ok()).filter(Url::has_host);
        self.base = base.map_or_else(|| self.uri(), |base| base.in_clear().to_string());
        let description = Description::read(&String::from_utf8_lossy(response.body()));
        self.aggregate = control_url(&self.base, description.control.as_deref());
        if description.media.is_empty() {
            let what = "the description has no audio or video over RTP";
            return Err(match description.skipped.first() {
                None => Failure::new(FailureReason::Protocol, what),
                // Whatever it is, it was described as it should be.
                Some(line) => Failure::new(
                    FailureReason::Unsupported,
                    format!("{what}; it has m={}", excerpt(line)),
                ),
            });
        }
        Ok(Answer::Described(description))
    }

    fn was_set_up(&mut self, response: &Response<Vec<u8>>, at: usize) -> Result<Answer, Failure> {
        let missing = |what| {
            let detail = format!("SETUP was answered without {what}");
            Failure::new(FailureReason::Protocol, detail)
        };
        self.take_session(response);
        if self.session.is_none() {
            return Err(missing("Session"));
        }
        let transport =
            header(response, &headers::TRANSPORT).ok_or_else(|| missing("Transport"))?;
        Ok(Answer::SetUp(at, Granted::read(transport)))
    }

    fn take_session(&mut self, response: &Response<Vec<u8>>) {
        let Some(session) = header(response, &headers::SESSION) else { return };
        let mut parts = session.split(';').map(str::trim);
        self.session = parts.next().filter(|id| !id.is_empty()).map(str::to_owned);
        let timeout = parts.find_map(|part| part.strip_prefix("timeout=")?.trim().parse().ok());
        // At half of the timeout, so that one keepalive may be late.
        let every = Duration::from_secs(timeout.unwrap_or(SESSION_TIMEOUT_S)) / 2;
        self.keepalive_every = every.max(KEEPALIVE_MIN);
    }

    /// Answers a request of the server.
    fn asked(&mut self, request: &Request<Vec<u8>>) -> Result<Answer, Failure> {
        let (status, answer) = match request.method() {
            Method::Options | Method::GetParameter | Method::SetParameter | Method::Announce => {
                (StatusCode::Ok, Answer::Nothing)
            }
            Method::Redirect => {
                let to =
                    request.header(&headers::LOCATION).and_then(|to| Url::parse(to.as_str()).ok());
                let to = to.filter(|to| matches!(to.scheme(), "rtsp" | "rtsps"));
                (StatusCode::Ok, to.map_or(Answer::Nothing, Answer::Moved))
            }
            _ => (StatusCode::NotImplemented, Answer::Nothing),
        };
        let mut response = Response::builder(Version::V1_0, status).empty();
        if let Some(cseq) = request.header(&headers::CSEQ) {
            response.insert_header(headers::CSEQ, cseq.clone());
        }
        let mut bytes = Vec::new();
        if response.write(&mut bytes).is_ok() {
            self.sends.push_back(bytes);
        }
        Ok(answer)
    }

    fn request(
        &mut self,
        now: Instant,
        step: Step,
        method: Method,
        uri: String,
        extra: Vec<(headers::HeaderName, String)>,
    ) {
        self.request_with(now, step, method, uri, extra, String::new());
    }

    fn request_with(
        &mut self,
        now: Instant,
        step: Step,
        method: Method,
        uri: String,
        mut extra: Vec<(headers::HeaderName, String)>,
        body: String,
    ) {
        self.cseq += 1;
        let name: &str = (&method).into();
        if let Some(authorization) = self.authentication.header(name, &uri, body.as_bytes()) {
            extra.push((headers::AUTHORIZATION, authorization));
        }
        let mut head =
            format!("{name} {uri} RTSP/1.0\r\nCSeq: {}\r\nUser-Agent: throng\r\n", self.cseq);
        if let Some(session) = &self.session {
            head += &format!("Session: {session}\r\n");
        }
        for (name, value) in &extra {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        head += &body;
        self.sends.push_back(head.into_bytes());
        let by = now + self.answer_within;
        self.pending = Some(Pending { step, cseq: self.cseq, by, method, uri, extra, body });
    }
}

/// How fast a position moves by a response to PLAY: gst-rtsp-server answers `Scale: 2` with `Scale:
/// 1` and `Speed: 2`, because it leaves no picture out. A header that is no number, or stands
/// still, counts as absent.
fn speed(response: &Response<Vec<u8>>) -> Option<f64> {
    let number = |name| {
        let value = header(response, name)?.trim().parse().ok();
        value.filter(|scale: &f64| scale.is_finite() && *scale != 0.0)
    };
    match (number(&headers::SCALE), number(&headers::SPEED)) {
        (None, None) => None,
        (scale, speed) => Some(scale.unwrap_or(1.0) * speed.unwrap_or(1.0)),
    }
}

fn header<'a>(response: &'a Response<Vec<u8>>, name: &headers::HeaderName) -> Option<&'a str> {
    response.header(name).map(headers::HeaderValue::as_str)
}

/// The failure of a request that the server refused.
fn refused(step: Step, response: &Response<Vec<u8>>) -> Failure {
    let status = u16::from(response.status());
    let detail = format!("{}: {status}{}", step.name(), after_colon(response.reason_phrase()));
    Failure::new(FailureReason::RtspStatus(status), detail)
}
