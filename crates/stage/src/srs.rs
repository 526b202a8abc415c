//! What SRS (Simple Realtime Server) does otherwise: where it is asked, what it answers, and what it makes of an offer.
//!
//! Sources: its documentation of WHIP and WHEP, ossrs/srs#4562 for the bodies of refusals (7.0.121 and later) and
//! ossrs/srs#3838 for the connection that is closed without an answer (before).

use http::StatusCode;

use crate::peer::OfferError;
use crate::room::Refusal;

/// Where it is asked to publish; the stream is named by `?app=live&stream=NAME`.
pub(crate) const WHIP: &str = "/rtc/v1/whip/";
/// And to play.
pub(crate) const WHEP: &str = "/rtc/v1/whep/";
/// What a stream is called that the query does not name.
const UNNAMED: &str = "livestream";

/// The stream that a query names.
pub(crate) fn stream(query: &str) -> String {
    let named = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "stream");
    named.map_or_else(|| UNNAMED.to_owned(), |(_, name)| name.into_owned())
}

/// The status and the body of a refusal: an error's number and its short name.
pub(crate) fn refusal(refusal: &Refusal) -> (StatusCode, &'static str) {
    match refusal {
        Refusal::Occupied => (StatusCode::CONFLICT, "1028: StreamBusy"),
        Refusal::Offer(OfferError::Malformed(_)) => (StatusCode::BAD_REQUEST, "5012: RtcSdpDecode"),
        Refusal::Offer(_) => (StatusCode::BAD_REQUEST, "5018: RtcSdpExchange"),
        // Its own bounds are not copied.
        Refusal::Full(_) | Refusal::Streams => (StatusCode::SERVICE_UNAVAILABLE, "the stage is full"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_by_the_query() {
        assert_eq!(stream("app=live&stream=a%20b"), "a b");
        assert_eq!(stream("app=live"), "livestream");
    }
}
