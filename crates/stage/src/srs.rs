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

/// An offer as it is read by who does not know RTX (RFC 4588): without its formats.
pub(crate) fn without_rtx(offer: &str) -> String {
    let is_rtx = |line: &&str| line.contains(" rtx/") || line.contains(" RTX/");
    let formats: Vec<&str> = offer
        .lines()
        .filter_map(|line| line.strip_prefix("a=rtpmap:").filter(is_rtx))
        .filter_map(|map| map.split(' ').next())
        .collect();
    let of_rtx = |line: &str| {
        let attribute =
            ["a=rtpmap:", "a=fmtp:", "a=rtcp-fb:"].into_iter().find_map(|name| line.strip_prefix(name));
        let format = attribute.and_then(|value| value.split(' ').next());
        format.is_some_and(|format| formats.contains(&format)) || line.starts_with("a=ssrc-group:FID")
    };
    let kept = offer.lines().filter(|line| !of_rtx(line)).map(|line| match line.strip_prefix("m=") {
        Some(_) => {
            let words = line.trim_end().split(' ').enumerate();
            let kept = words.filter(|(at, word)| *at < 3 || !formats.contains(word)).map(|(_, word)| word);
            kept.collect::<Vec<_>>().join(" ")
        }
        None => line.trim_end().to_owned(),
    });
    kept.fold(String::new(), |offer, line| offer + &line + "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_without_its_repeats() {
        let offer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\n\
                     a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=ssrc-group:FID 7 8\r\na=ssrc:7 cname:c\r\n";
        assert_eq!(
            without_rtx(offer),
            "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 H264/90000\r\na=rtcp-fb:96 nack\r\na=ssrc:7 cname:c\r\n"
        );
    }

    #[test]
    fn streams_are_named_by_the_query() {
        assert_eq!(stream("app=live&stream=a%20b"), "a b");
        assert_eq!(stream("app=live"), "livestream");
    }
}
