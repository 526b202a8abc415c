//! Relays: their URLs, and the frames of a stream from one.

use throng_protocol::webrtc::relay::{Frames, is_turn_frame};
use throng_scenario::{RelayTransport, TurnHost, TurnUri};

/// TURN: the bytes as a URL, and as a stream whose frames do not depend on how it is split.
pub(crate) fn relay(bytes: &[u8]) {
    if let Ok(place) = TurnUri::parse(&String::from_utf8_lossy(bytes)) {
        url_again(&place);
    }
    let whole = cut(bytes, bytes.len().max(1));
    for piece in [1, 7, 1_200] {
        assert_eq!(cut(bytes, piece), whole, "in pieces of {piece}");
    }
}

fn url_again(place: &TurnUri) {
    let scheme = if matches!(place.transport, RelayTransport::Tls(_)) { "turns" } else { "turn" };
    let host = match &place.host {
        TurnHost::Ip(std::net::IpAddr::V6(v6)) => format!("[{v6}]"),
        TurnHost::Ip(v4) => v4.to_string(),
        TurnHost::Name(name) => name.clone(),
    };
    let transport = if place.transport.is_stream() { "tcp" } else { "udp" };
    let written = format!("{scheme}:{host}:{}?transport={transport}", place.port);
    let again = TurnUri::parse(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!((&again.host, again.port), (&place.host, place.port), "{written}");
}

/// The frames of a stream that arrives in pieces, and whether it turned out not to be TURN.
fn cut(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut cutter, mut frames) = (Frames::default(), Vec::new());
    for bytes in stream.chunks(piece) {
        cutter.push(bytes);
        loop {
            match cutter.next_frame() {
                Ok(Some(frame)) => {
                    assert!(is_turn_frame(frame));
                    frames.push(frame.to_vec());
                }
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    let len: usize = frames.iter().map(Vec::len).sum();
    assert!(len <= stream.len());
    (frames, false)
}
