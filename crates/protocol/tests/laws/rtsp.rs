//! RTSP: a viewer and a publisher whose server sends any bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_media::card::{Rung, picture};
use throng_media::quality::WallClock;
use throng_observation::{Codec, Url};
use throng_protocol::PublishedMedia;
use throng_protocol::participant::{Input, Open, Opening, Output, Participant};
use throng_protocol::rtsp::{Config, Publisher, Viewer};
use throng_protocol::signalling::SIGNALLING;
use throng_protocol::webrtc::{ParticipantOptions, StepTimeouts};
use throng_scenario::{
    PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};

/// Outputs of one input beyond which it would flood its driver.
const OUTPUTS_MAX: usize = 2_000;

/// The bytes as the server's side of a session, however it is split: the participant ends at most
/// once, floods neither driver nor server, and its deadlines are never in the past.
pub(crate) fn rtsp(bytes: &[u8]) {
    let Ok(url) = Url::parse("rtsp://127.0.0.1/x") else { return };
    let config = Config { url, credentials: None, transport: RtspTransport::Tcp };
    for piece in [bytes.len().max(1), 1_000, 13] {
        let now = Instant::now();
        session(&mut viewer(config.clone(), now), now, bytes, piece);
        if let Some(mut publisher) = publisher(config.clone(), now) {
            session(&mut publisher, now, bytes, piece);
        }
    }
}

/// A viewer that pauses and seeks while the server says whatever it says.
fn viewer(config: Config, now: Instant) -> Viewer {
    let step = |ms, action| PlaybackStep { at: Duration::from_millis(ms), action };
    let steps = vec![
        step(100, PlaybackAction::Pause(Duration::from_millis(100))),
        step(300, PlaybackAction::Seek(PlaybackPosition::Random)),
        step(500, PlaybackAction::Scale(-2.0)),
    ];
    Viewer::with_playback(
        config,
        PlaybackScript { steps, ..PlaybackScript::default() },
        options(now),
    )
}

fn publisher(config: Config, now: Instant) -> Option<Publisher> {
    let clip = picture(Rung::P144, Codec::H264).ok()?;
    let media = vec![PublishedMedia { clip, offset: Duration::ZERO }];
    Some(Publisher::new(config, media, options(now)))
}

fn options(now: Instant) -> ParticipantOptions {
    ParticipantOptions {
        may_reach: Arc::new(|_, to| to.ip().is_loopback()),
        clock: WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 },
        toward: None,
        seed: 1,
        timeouts: StepTimeouts::default(),
        is_tapped: true,
        relay_only: false,
        stun: None,
        turn: None,
    }
}

fn session(viewer: &mut impl Participant, now: Instant, bytes: &[u8], piece: usize) {
    viewer.handle(now, Input::Start { intended_at: now });
    let mut connections = drain(viewer, now).unwrap_or(0);
    let mut at = now;
    for bytes in bytes.chunks(piece) {
        while connections > 0 {
            connections -= 1;
            let opening = Opening { remote: "127.0.0.1:554".parse().ok(), ..Opening::default() };
            viewer.handle(at, Input::Opened { channel: SIGNALLING, opening });
            match drain(viewer, at) {
                Some(opened) => connections += opened,
                None => return,
            }
        }
        at += Duration::from_millis(50);
        viewer.handle(at, Input::Bytes { channel: SIGNALLING, bytes });
        match drain(viewer, at) {
            Some(opened) => connections += opened,
            None => return,
        }
    }
    viewer.handle(at, Input::Leave { others_follow: false });
    if drain(viewer, at).is_some() {
        at += Duration::from_secs(60);
        viewer.handle(at, Input::Timeout);
        assert!(drain(viewer, at).is_none(), "it does not leave");
    }
}

/// Takes the outputs: how many connections are to be opened, `None` once it has ended.
fn drain(viewer: &mut impl Participant, now: Instant) -> Option<usize> {
    let mut opened = 0;
    for _ in 0..OUTPUTS_MAX {
        match viewer.poll_output(now) {
            Output::Timeout(at, why) => {
                assert!(at > now, "{why} in the past");
                return Some(opened);
            }
            Output::Ended(_) => {
                assert!(
                    matches!(viewer.poll_output(now), Output::Timeout(..)),
                    "output after its end"
                );
                return None;
            }
            Output::Open(_, Open::Stream { .. }) => opened += 1,
            _ => {}
        }
    }
    panic!("more than {OUTPUTS_MAX} outputs of one input");
}
