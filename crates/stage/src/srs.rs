//! How SRS (Simple Realtime Server) differs: its paths, its refusals, and how it reads an offer.
//!
//! Sources: its documentation of WHIP and WHEP, ossrs/srs#4562 for the bodies of refusals (7.0.121
//! and later) and ossrs/srs#3838 for the connection that is closed without an answer (before).

use http::StatusCode;

use crate::peer::OfferError;
use crate::room::OfferRefused;

/// Path for publishing; the stream is named by `?app=live&stream=NAME`.
pub(crate) const WHIP: &str = "/rtc/v1/whip/";
/// Path for playing.
pub(crate) const WHEP: &str = "/rtc/v1/whep/";
/// Stream name if the query has none.
const UNNAMED: &str = "livestream";

/// The stream that a query names.
pub(crate) fn stream(query: &str) -> String {
    let named = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "stream");
    named.map_or_else(|| UNNAMED.to_owned(), |(_, name)| name.into_owned())
}

/// The status and the body of a refusal: an error's number and its short name.
pub(crate) fn refusal(refusal: &OfferRefused) -> (StatusCode, &'static str) {
    match refusal {
        OfferRefused::Occupied => (StatusCode::CONFLICT, "1028: StreamBusy"),
        OfferRefused::Offer(OfferError::Malformed(_)) => {
            (StatusCode::BAD_REQUEST, "5012: RtcSdpDecode")
        }
        OfferRefused::Offer(_) => (StatusCode::BAD_REQUEST, "5018: RtcSdpExchange"),
        // SRS has no such limits.
        OfferRefused::Full(_) | OfferRefused::Streams => {
            (StatusCode::SERVICE_UNAVAILABLE, "the stage is full")
        }
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
