//! The resources of WHEP and WHIP: the endpoint for offers, and the sessions that it creates.

use http::header;
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;

use super::{Answer, body_of, not_allowed, preflight, reply, text, with};
use crate::config::Card;
use crate::peer::{OfferError, Role, is_candidate};
use crate::room::{CreatedSession, OfferRefused, Room, TrickleResult};
use crate::srs;

const SDP: &str = "application/sdp";
const SDP_FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// Most candidates of one PATCH.
const CANDIDATES_MAX: usize = 32;

/// `/whep` and `/whip`.
pub(super) async fn endpoint(room: &Room, role: Role, request: Request<Incoming>) -> Answer {
    match *request.method() {
        Method::OPTIONS => return with(preflight("POST, OPTIONS"), accept_post(), SDP),
        Method::POST => {}
        _ => return not_allowed("POST, OPTIONS"),
    }
    if let Some(refusal) = refuse(room, request.headers(), SDP) {
        return refusal;
    }
    let Some(card) = wanted_card(&request, room.config.card) else {
        return text(StatusCode::BAD_REQUEST, "card is standard or low");
    };
    let stream = parameter(&request, "stream").unwrap_or_default();
    let offer = match body_of(request).await {
        Ok(offer) => offer,
        Err(refusal) => return refusal,
    };
    match room.create_session(role, card, &stream, &offer) {
        Ok(session) => created(role, session),
        Err(refusal) => {
            let status = match &refusal {
                OfferRefused::Offer(OfferError::Malformed(_)) => StatusCode::BAD_REQUEST,
                OfferRefused::Offer(OfferError::NoMedia | OfferError::Section) => {
                    StatusCode::UNPROCESSABLE_ENTITY
                }
                OfferRefused::Full(_) | OfferRefused::Streams => StatusCode::SERVICE_UNAVAILABLE,
                OfferRefused::Occupied => StatusCode::CONFLICT,
            };
            let response = text(status, &refusal);
            if status == StatusCode::SERVICE_UNAVAILABLE {
                with(response, header::RETRY_AFTER, "1")
            } else {
                response
            }
        }
    }
}

/// `/rtc/v1/whip/` and `/rtc/v1/whep/` of SRS: an offer for the stream that the query names, or the
/// end of a session.
pub(super) async fn of_srs(room: &Room, role: Role, request: Request<Incoming>) -> Answer {
    let query = request.uri().query().unwrap_or_default().to_owned();
    match *request.method() {
        Method::DELETE => {
            let session = parameter(&request, "session").unwrap_or_default();
            room.leave(role, &session);
            return reply(StatusCode::OK, SDP, "");
        }
        Method::POST => {}
        _ => return text(StatusCode::BAD_REQUEST, "5043: RtcInvalidSdp"),
    }
    let offer = match body_of(request).await {
        Ok(offer) => offer,
        Err(refusal) => return refusal,
    };
    let stream = srs::stream(&query);
    match room.create_session(role, room.config.card, &stream, &offer) {
        Ok(CreatedSession { id, etag, answer }) => {
            let path = if role == Role::Publisher { srs::WHIP } else { srs::WHEP };
            let token = etag.trim_matches('"');
            let location: String =
                url::form_urlencoded::Serializer::for_suffix(format!("{path}?"), path.len() + 1)
                    .extend_pairs([
                        ("action", "delete"),
                        ("token", token),
                        ("stream", stream.as_str()),
                        ("session", id.as_str()),
                    ])
                    .finish();
            with(reply(StatusCode::CREATED, SDP, answer), header::LOCATION, &location)
        }
        Err(refusal) => {
            let (status, body) = srs::refusal(&refusal);
            reply(status, "text/plain; charset=utf-8", body)
        }
    }
}

/// `/whep/ID` and `/whip/ID`.
pub(super) async fn session(
    room: &Room,
    role: Role,
    id: &str,
    request: Request<Incoming>,
) -> Answer {
    const METHODS: &str = "PATCH, DELETE, OPTIONS";
    if *request.method() == Method::OPTIONS {
        return with(preflight(METHODS), accept_patch(), SDP_FRAGMENT);
    }
    if !room.knows(role, id) {
        return text(StatusCode::NOT_FOUND, "no such session");
    }
    match *request.method() {
        Method::DELETE => match refuse_stranger(room, request.headers()) {
            Some(refusal) => refusal,
            None if room.leave(role, id) => text(StatusCode::OK, "bye"),
            None => text(StatusCode::NOT_FOUND, "no such session"),
        },
        Method::PATCH => match refuse(room, request.headers(), SDP_FRAGMENT) {
            Some(refusal) => refusal,
            None => trickle(room, role, id, request).await,
        },
        _ => not_allowed(METHODS),
    }
}

async fn trickle(room: &Room, role: Role, id: &str, request: Request<Incoming>) -> Answer {
    let if_match = request
        .headers()
        .get(header::IF_MATCH)
        .and_then(|tag| tag.to_str().ok())
        .map(str::to_owned);
    let fragment = match body_of(request).await {
        Ok(fragment) => fragment,
        Err(refusal) => return refusal,
    };
    // RFC 8840 §9: lines of SDP, candidates as attributes.
    let candidates: Vec<String> = fragment
        .lines()
        .filter_map(|line| line.trim_end().strip_prefix("a="))
        .filter(|attribute| attribute.starts_with("candidate:"))
        .map(str::to_owned)
        .collect();
    // mDNS names are no addresses; ICE-lite learns such peers from their checks.
    let (candidates, bad): (Vec<_>, Vec<_>) =
        candidates.into_iter().take(CANDIDATES_MAX).partition(|candidate| is_candidate(candidate));
    if let Some(bad) = bad.iter().find(|candidate| !candidate.contains(".local ")) {
        return text(StatusCode::BAD_REQUEST, format_args!("no candidate: {bad}"));
    }
    match room.trickle(role, id, if_match.as_deref(), candidates) {
        TrickleResult::Taken => {
            with(text(StatusCode::NO_CONTENT, ""), accept_patch(), SDP_FRAGMENT)
        }
        TrickleResult::UnknownSession => text(StatusCode::NOT_FOUND, "no such session"),
        TrickleResult::OtherSession => {
            text(StatusCode::PRECONDITION_FAILED, "If-Match names another ICE session")
        }
    }
}

fn created(role: Role, welcome: CreatedSession) -> Answer {
    let endpoint = match role {
        Role::Viewer => "/whep",
        Role::Publisher => "/whip",
    };
    let response = reply(StatusCode::CREATED, SDP, welcome.answer);
    let response = with(response, header::LOCATION, &format!("{endpoint}/{}", welcome.id));
    let response = with(response, header::ETAG, &welcome.etag);
    with(response, accept_patch(), SDP_FRAGMENT)
}

/// What `?card=` names, or `unasked` without it; `None` when there is no such card.
fn wanted_card(request: &Request<Incoming>, unasked: Card) -> Option<Card> {
    parameter(request, "card").map_or(Some(unasked), |name| Card::from_name(&name))
}

/// A parameter of the query.
fn parameter(request: &Request<Incoming>, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn refuse(room: &Room, headers: &HeaderMap, content_type: &str) -> Option<Answer> {
    refuse_stranger(room, headers).or_else(|| {
        let given = headers
            .get(header::CONTENT_TYPE)
            .and_then(|given| given.to_str().ok())
            .unwrap_or_default();
        let essence = given.split(';').next().unwrap_or_default().trim();
        (!essence.eq_ignore_ascii_case(content_type)).then(|| {
            text(StatusCode::UNSUPPORTED_MEDIA_TYPE, format_args!("here only {content_type}"))
        })
    })
}

fn refuse_stranger(room: &Room, headers: &HeaderMap) -> Option<Answer> {
    let token = room.config.bearer_token.as_ref()?;
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    let given = given
        .and_then(|given| given.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
    if given.is_some_and(|(_, given)| same(given.trim(), token)) {
        return None;
    }
    let response = text(StatusCode::UNAUTHORIZED, "a bearer token is needed");
    Some(with(response, header::WWW_AUTHENTICATE, "Bearer realm=\"throng stage\""))
}

/// Compares in constant time.
fn same(given: &str, token: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(given.as_bytes(), token.as_bytes()).is_ok()
}

fn accept_post() -> header::HeaderName {
    header::HeaderName::from_static("accept-post")
}

fn accept_patch() -> header::HeaderName {
    header::HeaderName::from_static("accept-patch")
}
