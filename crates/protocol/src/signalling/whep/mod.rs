//! WHEP: playing a stream by WebRTC over HTTP (draft-ietf-wish-whep-03 and later; the rules that it
//! shares with WHIP are in RFC 9725).
//!
//! ```text
//! player                              server
//!   POST offer                 ─────▶
//!                              ◀─────  201 Created, Location, ETag, Link; the answer
//!                              ◀─────  or 406 Not Acceptable, Location; the server's own offer
//!   PATCH answer               ─────▶  204                        (after 406)
//!   PATCH candidates, If-Match ─────▶  204, or 405/501/422: no trickle
//!   DELETE                     ─────▶  200
//! ```
//! WHIP is the same dialogue without the 406; [`super::whip`] wraps it for publishers.

mod config;
mod fragment;
mod link;
mod refusal;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use http::{Method, StatusCode, header};
use throng_observation::{Failure, FailureReason, RefusedDestination, Url};
use url::Host;

use self::config::place;
pub use self::config::{Config, Flow, MayReach};
use self::fragment::IceSection;
use super::response_deadline::{GOODBYE_WITHIN, ResponseDeadline};
use super::server_message::{self, LIST_MAX};
use super::{SignalInput, SignalOutput, Signalling};
use crate::factory::TargetFactory;
use crate::participant::{ChannelError, FetchId, Request, Response, Why};

/// How many redirects are followed; browsers follow twenty, load balancers need one or two.
const REDIRECTS_MAX: u8 = 5;

/// The session resource on the server, once created.
#[derive(Clone, Debug)]
struct Session {
    /// `None` when the server named no URL or a forbidden one: candidates and DELETE cannot be sent
    /// then.
    url: Option<Url>,
    etag: Option<String>,
}

#[derive(Debug)]
enum State {
    Idle,
    /// The participant is making the offer.
    Offering,
    /// The offer is posted to `to`.
    Posted {
        fetch: FetchId,
        to: Url,
        offer: String,
        redirects: u8,
        waiting: ResponseDeadline,
    },
    /// The participant is answering the server's own offer.
    CounterOffered(Session),
    /// The answer to it was sent.
    Answered {
        fetch: FetchId,
        session: Session,
        waiting: ResponseDeadline,
    },
    Playing(Session),
    /// Waits for DELETE, or for the response to POST that names the URL to delete.
    Leaving {
        fetch: FetchId,
        posted_to: Option<Url>,
        waiting: ResponseDeadline,
    },
    Over,
}

/// Candidates that are not sent yet.
#[derive(Debug, Default)]
struct Trickle {
    section: Option<IceSection>,
    /// The server has declined candidates.
    declined: bool,
    gathered: Vec<String>,
    done: bool,
    in_flight: Option<FetchId>,
}

/// The signalling adapter.
#[derive(Debug)]
pub struct Whep {
    config: Config,
    state: State,
    trickle: Trickle,
    fetches: u32,
    outputs: VecDeque<SignalOutput>,
}

impl Whep {
    /// That of a player of the stream at `url`.
    pub(crate) fn of(factory: &TargetFactory, url: &Url) -> Self {
        Self::new(Config::of(factory, url))
    }

    /// Replaces the token of later requests.
    pub(super) fn set_token(&mut self, token: String) {
        self.config.token = Some(token);
    }

    /// An adapter in its initial state.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Idle,
            trickle: Trickle::default(),
            fetches: 0,
            outputs: VecDeque::new(),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Failed(failure));
    }

    fn anomaly(&mut self, what: impl std::fmt::Display) {
        self.outputs.push_back(SignalOutput::Anomaly(format!("{}: {what}", self.server())));
    }

    fn server(&self) -> &'static str {
        self.config.flow.server()
    }

    /// Sends a request; a request that is not valid HTTP (a token with control characters) ends the
    /// session.
    fn fetch(
        &mut self,
        method: Method,
        to: &Url,
        body: Option<(&str, String)>,
        if_match: Option<&str>,
    ) -> FetchId {
        let mut request = Request::builder(method, to);
        // Other origins than the endpoint's do not get it, as by browsers.
        let is_own = to.origin() == self.config.url.origin();
        if let Some(token) = self.config.token.as_ref().filter(|_| is_own) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(etag) = if_match {
            request = request.header(header::IF_MATCH, etag);
        }
        let mut bytes = Vec::new();
        if let Some((content_type, body)) = body {
            request = request
                .header(header::CONTENT_TYPE, content_type)
                .header(header::ACCEPT, "application/sdp");
            bytes = body.into_bytes();
        }
        let id = FetchId(self.fetches);
        self.fetches = self.fetches.wrapping_add(1);
        match request.body(()) {
            Ok(request) => {
                let (head, ()) = request.into_parts();
                let request = Request { head, body: bytes, timeout: self.config.answer_within };
                self.outputs.push_back(SignalOutput::Fetch(id, Box::new(request)));
            }
            Err(error) => {
                let detail = format!("cannot write a request to {}: {error}", place(to));
                self.fail(Failure::new(FailureReason::Generator, detail));
            }
        }
        id
    }

    fn post(&mut self, now: Instant, to: Url, offer: String, redirects: u8) {
        let waiting =
            ResponseDeadline::new(now, self.config.answer_within, self.config.flow.awaits_post());
        let fetch = self.fetch(Method::POST, &to, Some(("application/sdp", offer.clone())), None);
        if !matches!(self.state, State::Over) {
            self.state = State::Posted { fetch, to, offer, redirects, waiting };
        }
    }

    fn fetched(&mut self, now: Instant, id: FetchId, result: Result<&Response, ChannelError>) {
        if self.trickle.in_flight == Some(id) {
            self.trickled(result);
            self.tell_candidates();
            return;
        }
        let outcome = match &self.state {
            State::Posted { fetch, to, redirects, .. } if *fetch == id => {
                let (to, redirects) = (to.clone(), *redirects);
                self.posted(now, &to, redirects, result)
            }
            State::Answered { fetch, session, .. } if *fetch == id => {
                let session = session.clone();
                self.answered(session, result)
            }
            State::Leaving { fetch, posted_to, .. } if *fetch == id => {
                let posted_to = posted_to.clone();
                self.left(now, posted_to.as_ref(), result.ok());
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(failure) = outcome {
            self.fail(failure);
        }
    }

    fn posted(
        &mut self,
        now: Instant,
        to: &Url,
        redirects: u8,
        result: Result<&Response, ChannelError>,
    ) -> Result<(), Failure> {
        let response = result.map_err(|error| {
            let is_unanswered = error == ChannelError::Unanswered;
            let failure = named("POST", to, error);
            if is_unanswered { self.with_remedy(failure, None) } else { failure }
        })?;
        if redirects == 0 {
            self.outputs.push_back(SignalOutput::Reached(response.opening.clone()));
        }
        match response.head.status {
            // RFC 9725 §4.5: only these two keep the method; the others would turn POST into GET.
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                self.redirected(now, to, redirects, response)
            }
            StatusCode::CREATED => {
                let session = self.session(to, response);
                let sdp = description(self.server(), to, response)?;
                // Servers of the drafts before 02 answer 201 with their own offer; an answer is
                // never `actpass` (RFC 5763 §5).
                if self.config.flow == Flow::Play && sdp.contains("a=setup:actpass") {
                    return self.counter_offered(session, sdp);
                }
                self.state = State::Playing(session);
                self.outputs.push_back(SignalOutput::RemoteAnswer(sdp));
                self.tell_candidates();
                Ok(())
            }
            StatusCode::NOT_ACCEPTABLE
                if self.config.flow == Flow::Play && response.body.starts_with(b"v=0") =>
            {
                let session = self.session(to, response);
                let sdp = description(self.server(), to, response)?;
                self.counter_offered(session, sdp)
            }
            _ => {
                let failure = refusal::failure(&format!("POST {}", place(to)), response);
                Err(self.with_remedy(failure, Some(response)))
            }
        }
    }

    /// The failure of a POST, with a remedy if the response suggests one.
    fn with_remedy(&self, mut failure: Failure, answer: Option<&Response>) -> Failure {
        if let State::Posted { offer, .. } = &self.state
            && let Some(remedy) = refusal::remedy(self.config.flow, offer, answer)
        {
            failure.detail += format!("; {remedy}").as_str();
        }
        failure
    }

    fn redirected(
        &mut self,
        now: Instant,
        from: &Url,
        redirects: u8,
        response: &Response,
    ) -> Result<(), Failure> {
        let location = refusal::text(&response.head.headers, header::LOCATION)
            .ok_or_else(|| server_message::broken(self.server(), "a redirect without Location"))?;
        let to = from.join(location).map_err(|e| {
            server_message::broken(
                self.server(),
                format!("a redirect to {} ({e})", server_message::excerpt(location)),
            )
        })?;
        if redirects >= REDIRECTS_MAX {
            return Err(server_message::broken(
                self.server(),
                format!("more than {REDIRECTS_MAX} redirects, last to {}", place(&to)),
            ));
        }
        if !self.reachable(from, &to) {
            let detail = format!(
                "{}: redirected to {}, which is not an allowed target",
                self.server(),
                place(&to)
            );
            return Err(Failure::new(FailureReason::NotAllowed, detail));
        }
        if let State::Posted { offer, .. } = &mut self.state {
            let offer = std::mem::take(offer);
            self.post(now, to, offer, redirects + 1);
        }
        Ok(())
    }

    fn counter_offered(&mut self, session: Session, sdp: String) -> Result<(), Failure> {
        if session.url.is_none() {
            return Err(server_message::broken(
                self.server(),
                "an offer of the server without a Location to answer at",
            ));
        }
        self.state = State::CounterOffered(session);
        // Candidates of the withdrawn offer do not belong to the answer.
        self.trickle = Trickle::default();
        self.outputs.push_back(SignalOutput::RemoteOffer(sdp));
        Ok(())
    }

    fn answer(&mut self, now: Instant, sdp: String) {
        let State::CounterOffered(session) = &self.state else { return };
        let session = session.clone();
        let Some(url) = session.url.clone() else { return };
        self.trickle.section = IceSection::of(&sdp);
        let waiting = ResponseDeadline::new(
            now,
            self.config.answer_within,
            "WHEP: the response to PATCH with the answer",
        );
        let fetch = self.fetch(Method::PATCH, &url, Some(("application/sdp", sdp)), None);
        if !matches!(self.state, State::Over) {
            self.state = State::Answered { fetch, session, waiting };
        }
    }

    fn answered(
        &mut self,
        session: Session,
        result: Result<&Response, ChannelError>,
    ) -> Result<(), Failure> {
        let url = session.url.clone().unwrap_or_else(|| self.config.url.clone());
        let response = result.map_err(|e| named("PATCH", &url, e))?;
        if !response.head.status.is_success() {
            return Err(refusal::failure(
                &format!("PATCH {} with the answer", place(&url)),
                response,
            ));
        }
        let etag =
            refusal::text(&response.head.headers, header::ETAG).map(str::to_owned).or(session.etag);
        self.state = State::Playing(Session { url: session.url, etag });
        self.tell_candidates();
        Ok(())
    }

    /// The session that a response to POST names, and the relays that it announces.
    fn session(&mut self, endpoint: &Url, response: &Response) -> Session {
        let headers = &response.head.headers;
        let links = headers.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok());
        let relays: Vec<_> = links.take(LIST_MAX).flat_map(link::relays).take(LIST_MAX).collect();
        // Only the first endpoint's address is known; after a redirect to another host, names are
        // unknown.
        let host = endpoint.host_str().filter(|host| self.config.url.host_str() == Some(*host));
        let relays =
            relays.into_iter().map(|relay| SignalOutput::Relay(relay.with_signalling_host(host)));
        self.outputs.extend(relays);

        let location = refusal::text(headers, header::LOCATION);
        let mut url = location.and_then(|location| endpoint.join(location).ok());
        match (&url, location) {
            (Some(to), _) if !self.reachable(endpoint, to) => {
                let to = place(to);
                self.anomaly(format!("the session's Location {to} is not an allowed target"));
                url = None;
            }
            (None, Some(location)) => {
                self.anomaly(format!(
                    "the session's Location is not a URL: {}",
                    server_message::excerpt(location)
                ));
            }
            (None, None) => self.anomaly(format!("{} without Location", response.head.status)),
            _ => {}
        }
        Session { url, etag: refusal::text(headers, header::ETAG).map(str::to_owned) }
    }

    /// Whether `to` may be requested; a refusal is reported. Leaving TLS is never allowed: it would
    /// expose the token.
    fn reachable(&mut self, from: &Url, to: &Url) -> bool {
        let is_http = matches!(to.scheme(), "http" | "https");
        let keeps_tls = from.scheme() != "https" || to.scheme() == "https";
        if is_http && keeps_tls && (self.config.may_reach)(to) {
            return true;
        }
        let port = to.port_or_known_default().unwrap_or(0);
        let address = match to.host() {
            Some(Host::Ipv4(v4)) => Some(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => Some(IpAddr::V6(v6)),
            // An unresolved name has no address to report; the failure or anomaly that follows
            // names it.
            Some(Host::Domain(_)) | None => None,
        };
        if let Some(address) = address {
            self.outputs.push_back(SignalOutput::Refused(
                RefusedDestination::Redirect,
                SocketAddr::new(address, port),
            ));
        }
        false
    }

    fn candidate(&mut self, candidate: &str) {
        if !self.trickle.declined && self.trickle.gathered.len() < LIST_MAX {
            self.trickle.gathered.push(candidate.to_owned());
        }
        self.tell_candidates();
    }

    /// Sends the gathered candidates, in one request at a time, once there is a session.
    /// End-of-candidates is sent with the last of them; a separate request for it would cost every
    /// viewer a round trip without use.
    fn tell_candidates(&mut self) {
        let State::Playing(session) = &self.state else { return };
        if self.trickle.declined
            || self.trickle.in_flight.is_some()
            || self.trickle.gathered.is_empty()
        {
            return;
        }
        let Session { url: Some(url), etag } = session.clone() else { return };
        let gathered = std::mem::take(&mut self.trickle.gathered);
        let Some(section) = &self.trickle.section else {
            self.trickle.declined = true;
            return self.anomaly(fragment::NO_CREDENTIALS);
        };
        let body = section.fragment(&gathered, self.trickle.done);
        let body = Some(("application/trickle-ice-sdpfrag", body));
        let fetch = self.fetch(Method::PATCH, &url, body, etag.as_deref());
        self.trickle.in_flight = Some(fetch);
    }

    /// A server that declines candidates is no failure: it learns them from the checks.
    fn trickled(&mut self, result: Result<&Response, ChannelError>) {
        self.trickle.in_flight = None;
        let what = match result {
            Ok(response) if response.head.status.is_success() => return,
            Ok(response) => match response.head.status {
                StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_IMPLEMENTED
                | StatusCode::UNPROCESSABLE_ENTITY => {
                    self.trickle.declined = true;
                    return;
                }
                _ => refusal::failure("PATCH with candidates", response).detail.to_string(),
            },
            Err(error) => format!("PATCH with candidates: {error}"),
        };
        self.trickle.declined = true;
        self.anomaly(what);
    }

    fn leave(&mut self, now: Instant) {
        let waiting = ResponseDeadline::new(now, GOODBYE_WITHIN, self.config.flow.awaits_goodbye());
        match std::mem::replace(&mut self.state, State::Over) {
            State::Playing(session)
            | State::CounterOffered(session)
            | State::Answered { session, .. } => {
                self.delete(session.url, waiting);
            }
            // The server may be creating a session at this moment; its response names the URL to
            // delete.
            State::Posted { fetch, to, .. } => {
                self.state = State::Leaving { fetch, posted_to: Some(to), waiting };
            }
            State::Leaving { fetch, posted_to, waiting } => {
                self.state = State::Leaving { fetch, posted_to, waiting };
            }
            State::Idle | State::Offering | State::Over => {
                self.outputs.push_back(SignalOutput::Goodbye);
            }
        }
    }

    fn delete(&mut self, url: Option<Url>, waiting: ResponseDeadline) {
        self.state = State::Over;
        let Some(url) = url else { return self.outputs.push_back(SignalOutput::Goodbye) };
        let fetch = self.fetch(Method::DELETE, &url, None, None);
        self.state = State::Leaving { fetch, posted_to: None, waiting };
    }

    fn left(&mut self, now: Instant, posted_to: Option<&Url>, response: Option<&Response>) {
        if let (Some(endpoint), Some(response)) = (posted_to, response)
            && matches!(response.head.status, StatusCode::CREATED | StatusCode::NOT_ACCEPTABLE)
        {
            let session = self.session(endpoint, response);
            return self.delete(
                session.url,
                ResponseDeadline::new(now, GOODBYE_WITHIN, self.config.flow.awaits_goodbye()),
            );
        }
        // A server that received BYE or DTLS close first has nothing left to delete.
        if let (None, Some(response)) = (posted_to, response)
            && !response.head.status.is_success()
            && !matches!(response.head.status, StatusCode::NOT_FOUND | StatusCode::GONE)
        {
            let what = refusal::failure("DELETE of the session", response).detail;
            self.anomaly(what);
        }
        self.state = State::Over;
        self.outputs.push_back(SignalOutput::Goodbye);
    }

    fn timeout(&mut self, now: Instant) {
        match &self.state {
            State::Posted { waiting, .. } | State::Answered { waiting, .. } => {
                if let Some(failure) = waiting.overdue(now) {
                    self.fail(failure);
                }
            }
            State::Leaving { waiting, .. } if waiting.overdue(now).is_some() => {
                self.state = State::Over;
                self.outputs.push_back(SignalOutput::Goodbye);
            }
            _ => {}
        }
    }
}

impl Signalling for Whep {
    fn handle(&mut self, now: Instant, input: SignalInput<'_>) {
        match input {
            SignalInput::Start => {
                self.state = State::Offering;
                self.outputs.push_back(SignalOutput::WantOffer);
            }
            SignalInput::Offer(offer) => {
                if matches!(self.state, State::Offering) {
                    self.trickle.section = IceSection::of(&offer);
                    self.post(now, self.config.url.clone(), offer, 0);
                }
            }
            SignalInput::Answer(sdp) => self.answer(now, sdp),
            SignalInput::Fetched(id, result) => self.fetched(now, id, result),
            SignalInput::Candidate(candidate) => self.candidate(candidate),
            SignalInput::CandidatesDone => {
                self.trickle.done = true;
                self.tell_candidates();
            }
            SignalInput::Timeout => self.timeout(now),
            SignalInput::Leave => self.leave(now),
            // WHEP has no signalling channel.
            SignalInput::Connected
            | SignalInput::Opened(_)
            | SignalInput::Message(_)
            | SignalInput::Closed(_) => {}
        }
    }

    fn poll_output(&mut self) -> Option<SignalOutput> {
        self.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, Why)> {
        match &self.state {
            State::Posted { waiting, .. }
            | State::Answered { waiting, .. }
            | State::Leaving { waiting, .. } => Some(waiting.deadline()),
            _ => None,
        }
    }
}

fn named(method: &str, to: &Url, error: ChannelError) -> Failure {
    let mut failure = Failure::from(error);
    failure.detail = format!("{method} {}: {}", place(to), failure.detail).into();
    failure
}

/// The session description in a body.
fn description(server: &str, from: &Url, response: &Response) -> Result<String, Failure> {
    let body = response.body.get(..=server_message::MESSAGE_BYTES_MAX).unwrap_or(&response.body);
    let sdp = String::from_utf8_lossy(body).into_owned();
    server_message::session_description(server, &format!("the body from {}", place(from)), sdp)
}
