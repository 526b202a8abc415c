//! RTSP: a viewer whose server sends any bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_protocol::participant::{Input, Open, Opening, Output, Participant};
use throng_protocol::rtsp::{Config, Viewer};
use throng_protocol::signalling::SIGNALLING;
use throng_protocol::webrtc::{ParticipantOptions, StepTimeouts};
use throng_scenario::RtspTransport;
use url::Url;

/// Outputs of one input beyond which it would flood its driver.
const OUTPUTS_MAX: usize = 2_000;

/// The bytes as the server's side of a session, however it is split: the viewer ends at most once, floods neither
/// driver nor server, and its deadlines are never in the past.
pub(crate) fn rtsp(bytes: &[u8]) {
    for piece in [bytes.len().max(1), 1_000, 13] {
        session(bytes, piece);
    }
}

fn session(bytes: &[u8], piece: usize) {
    let now = Instant::now();
    let options = ParticipantOptions {
        may_reach: Arc::new(|ip| ip.is_loopback()),
        clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
        toward: None,
        seed: 1,
        timeouts: StepTimeouts::default(),
        is_tapped: true,
        relay_only: false,
        stun: None,
        turn: None,
    };
    let Ok(url) = Url::parse("rtsp://127.0.0.1/x") else { return };
    let mut viewer = Viewer::new(Config { url, credentials: None, transport: RtspTransport::Tcp }, options);
    viewer.handle(now, Input::Start { intended_at: now });
    let mut connections = drain(&mut viewer, now).unwrap_or(0);
    let mut at = now;
    for bytes in bytes.chunks(piece) {
        while connections > 0 {
            connections -= 1;
            let opening = Opening { remote: "127.0.0.1:554".parse().ok(), ..Opening::default() };
            viewer.handle(at, Input::Opened { channel: SIGNALLING, opening });
            match drain(&mut viewer, at) {
                Some(opened) => connections += opened,
                None => return,
            }
        }
        at += Duration::from_millis(50);
        viewer.handle(at, Input::Bytes { channel: SIGNALLING, bytes });
        match drain(&mut viewer, at) {
            Some(opened) => connections += opened,
            None => return,
        }
    }
    viewer.handle(at, Input::Leave { others_follow: false });
    if drain(&mut viewer, at).is_some() {
        at += Duration::from_secs(60);
        viewer.handle(at, Input::Timeout);
        assert!(drain(&mut viewer, at).is_none(), "it does not leave");
    }
}

/// Takes the outputs: how many connections are to be opened, `None` once it has ended.
fn drain(viewer: &mut Viewer, now: Instant) -> Option<usize> {
    let mut opened = 0;
    for _ in 0..OUTPUTS_MAX {
        match viewer.poll_output(now) {
            Output::Timeout(at, why) => {
                assert!(at > now, "{why} in the past");
                return Some(opened);
            }
            Output::Ended(_) => {
                assert!(matches!(viewer.poll_output(now), Output::Timeout(..)), "output after its end");
                return None;
            }
            Output::Open(_, Open::Stream { .. }) => opened += 1,
            _ => {}
        }
    }
    panic!("more than {OUTPUTS_MAX} outputs of one input");
}
