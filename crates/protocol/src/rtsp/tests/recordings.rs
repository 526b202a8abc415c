//! Recordings: how they are told from live streams, and played again.

use std::time::Duration;

use throng_observation::{FailureReason, Observation};

use super::stand::{RECORDING, SDP, Stand, frame};

#[test]
fn a_stream_without_an_end_that_stops_may_have_been_a_recording() {
    for (sdp, expect) in [(SDP, true), (RECORDING, false)] {
        let mut stand = Stand::playing(sdp);
        stand.receives(&frame(0, 1));
        stand.wait(Duration::from_secs(11));
        stand.answers("GET_PARAMETER", "200 OK", "", "");
        stand.answers("TEARDOWN", "200 OK", "", "");
        let (reason, detail) = stand.failed();
        assert_eq!(reason, FailureReason::MediaLost);
        assert_eq!(detail.contains("names no end"), expect, "{detail}");
    }
}

#[test]
fn a_presentation_with_an_end_is_a_recording() {
    for (sdp, expect) in [(SDP, false), (RECORDING, true)] {
        let stand = Stand::playing(sdp);
        let opened = stand.observed.iter().filter_map(|observation| match observation {
            Observation::TrackOpened { is_recording, .. } => Some(*is_recording),
            _ => None,
        });
        assert_eq!(opened.collect::<Vec<_>>(), [expect], "{sdp}");
    }
}

#[test]
fn a_recording_is_played_again_from_its_beginning() {
    let mut stand = Stand::playing(RECORDING);
    for sequence in 0..201 {
        stand.wait(Duration::from_millis(100));
        stand.receives(&frame(0, sequence));
        if stand.requests.first().is_some_and(|request| request.starts_with("GET_PARAMETER")) {
            stand.answers("GET_PARAMETER", "200 OK", "", "");
        }
    }
    stand.wait(Duration::from_millis(1_500));
    let play = stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    stand.receives(&frame(0, 1));
    stand.wait(Duration::from_secs(3));
    assert_eq!(stand.ended, None);
    // A server that cannot play it again is set up anew.
    let mut stand = Stand::playing(RECORDING);
    stand.receives(&frame(0, 1));
    ends(&mut stand);
    stand.answers("PLAY", "457 Invalid Range", "", "");
    is_set_up_anew(&mut stand);
    assert_eq!(stand.ended, None);
}

/// The server says that the recording has ended.
fn ends(stand: &mut Stand) {
    let bye = [0x80, 201, 0, 1, 0, 0, 0, 9, 0x81, 203, 0, 1, 0, 0, 0, 9];
    stand.receives(&[&[b'$', 1, 0, 16][..], &bye].concat());
    stand.wait(Duration::from_millis(300));
}

fn is_set_up_anew(stand: &mut Stand) {
    stand.answers("TEARDOWN", "200 OK", "", "");
    let transport = "Session: 78\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    stand.answers("SETUP", "200 OK", transport, "");
    let play = stand.answers("PLAY", "200 OK", "Session: 78\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
}

/// As Live555 does: PLAY after the end is answered with 200, and nothing follows.
#[test]
fn a_recording_that_stays_silent_when_played_again_is_set_up_anew() {
    let mut stand = Stand::playing(RECORDING);
    stand.receives(&frame(0, 1));
    ends(&mut stand);
    stand.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    stand.wait(Duration::from_millis(1_900));
    assert!(stand.requests.is_empty(), "{:?}", stand.requests);
    stand.wait(Duration::from_millis(200));
    is_set_up_anew(&mut stand);
    stand.receives(&frame(0, 2));
    stand.wait(Duration::from_secs(3));
    assert!(stand.requests.is_empty() && stand.ended.is_none(), "{:?}", stand.requests);
    // That is how this server is: the next end needs no other try.
    ends(&mut stand);
    is_set_up_anew(&mut stand);
    assert_eq!(stand.anomalies().len(), 1, "{:?}", stand.anomalies());
    // A session that cannot be played at all ends as before.
    stand.wait(Duration::from_secs(11));
    stand.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(stand.failed().0, FailureReason::MediaLost);
}
