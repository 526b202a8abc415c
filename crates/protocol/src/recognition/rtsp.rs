//! RTSP: `OPTIONS`, with which its clients begin (RFC 2326 section 10.1).

use rtsp_types::{Message, headers};
use throng_scenario::Protocol;

use super::{Access, Answer, Found, Given, Kind, ProbeRequest, refines_nothing};
use crate::excerpt::excerpt;

pub(super) static KIND: Kind = Kind {
    name: "RTSP",
    protocols: &[Protocol::Rtsp],
    is_asked: Given::is_bare,
    ask: |given| ProbeRequest::Rtsp {
        url: address(given),
        place: given.host_and_port(),
        is_secure: given.is_secure(),
    },
    read,
    refine: refines_nothing,
};

/// The URL of the presentation, without user info.
fn address(given: &Given) -> String {
    let ((host, port), place) = (given.host_and_port(), given.path_and_query());
    let scheme = if given.is_secure() { "rtsps" } else { "rtsp" };
    format!("{scheme}://{host}:{port}{place}")
}

/// The request for it.
pub(super) fn request(url: &str) -> Vec<u8> {
    format!("OPTIONS {url} RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: throng\r\n\r\n").into_bytes()
}

/// The answer that these bytes are; `None` while it is not complete.
///
/// # Errors
/// When they are none of RTSP.
pub(super) fn answer(bytes: &[u8]) -> Result<Option<Answer>, ()> {
    match Message::<Vec<u8>>::parse(bytes) {
        Ok((Message::Response(response), _)) => {
            let text = |name| response.header(name).map(|value| excerpt(value.as_str()));
            let (server, methods) = (text(&headers::SERVER), text(&headers::PUBLIC));
            Ok(Some(Answer::Rtsp { status: u16::from(response.status()), server, methods }))
        }
        Ok((Message::Request(_) | Message::Data(_), _)) => Err(()),
        Err(rtsp_types::ParseError::Incomplete(_)) => Ok(None),
        Err(rtsp_types::ParseError::Error) => Err(()),
    }
}

fn read(given: &Given, answer: &Answer) -> Option<(Found, Option<ProbeRequest>)> {
    let Answer::Rtsp { status, server, methods } = answer else { return None };
    let url = given.complete().map_or_else(|| given.with("rtsp"), |(_, url)| url);
    let mut found = Found::new(Protocol::Rtsp, url);
    found.server.clone_from(server);
    found.offers.extend(methods.as_ref().map(|methods| format!("knows {methods}")));
    if *status == 401 {
        found.access = Access::Account;
    }
    Some((found, None))
}

#[cfg(test)]
mod tests {
    use super::super::tests::read_by;
    use super::*;

    /// What gst-rtsp-server 1.22 answers.
    const OPTIONS: &str = "RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: OPTIONS, DESCRIBE, GET_PARAMETER, PAUSE, PLAY, SETUP, SET_PARAMETER, TEARDOWN\r\nServer: GStreamer RTSP server\r\nDate: Thu, 19 Nov 2026 10:00:00 GMT\r\n\r\n";

    #[test]
    fn a_server_of_rtsp_is_told_by_its_answer_to_options() {
        assert_eq!(answer(&OPTIONS.as_bytes()[..40]).map(|answer| answer.is_none()), Ok(true));
        let complete = answer(OPTIONS.as_bytes()).unwrap().unwrap();
        let found = read_by(&KIND, "rtsp://u:p@h:8554/cam", &complete).unwrap();
        assert_eq!(found.url, "rtsp://u:p@h:8554/cam");
        assert_eq!(found.server.as_deref(), Some("GStreamer RTSP server"));
        assert!(found.offers[0].contains("DESCRIBE"), "{:?}", found.offers);
        let bare = read_by(&KIND, "h:8554/cam", &complete).unwrap();
        assert_eq!(bare.url, "rtsp://h:8554/cam");
        let locked = answer(b"RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\n\r\n").unwrap().unwrap();
        assert_eq!(read_by(&KIND, "h:554", &locked).unwrap().access, Access::Account);
        assert!(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n").is_err());
    }

    #[test]
    fn no_request_has_the_password_of_the_url() {
        let given = Given::parse("rtsp://u:p@h/cam?x=1").unwrap();
        let ProbeRequest::Rtsp { url, place, .. } = (KIND.ask)(&given) else { panic!("no RTSP") };
        assert_eq!((url.as_str(), place), ("rtsp://h:554/cam?x=1", ("h".to_owned(), 554)));
        assert!(String::from_utf8(request(&url)).unwrap().starts_with("OPTIONS rtsp://h:554/"));
    }
}
