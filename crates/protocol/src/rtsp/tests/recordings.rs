//! Recordings: how they are told from live streams, and played again.

use std::time::Duration;

use throng_observation::{FailureReason, Observation};

use super::fixture::{Fixture, RECORDING, SDP, bye, frame};

#[test]
fn a_stream_without_an_end_that_stops_may_have_been_a_recording() {
    for (sdp, expect) in [(SDP, true), (RECORDING, false)] {
        let mut fixture = Fixture::playing(sdp);
        fixture.receives(&frame(0, 1));
        fixture.wait(Duration::from_secs(11));
        fixture.answers("GET_PARAMETER", "200 OK", "", "");
        fixture.answers("TEARDOWN", "200 OK", "", "");
        let (reason, detail) = fixture.failed();
        assert_eq!(reason, FailureReason::MediaLost);
        assert_eq!(detail.contains("names no end"), expect, "{detail}");
    }
}

#[test]
fn a_presentation_with_an_end_is_a_recording() {
    for (sdp, expect) in [(SDP, false), (RECORDING, true)] {
        let fixture = Fixture::playing(sdp);
        let opened = fixture.observed.iter().filter_map(|observation| match observation {
            Observation::TrackOpened { is_recording, .. } => Some(*is_recording),
            _ => None,
        });
        assert_eq!(opened.collect::<Vec<_>>(), [expect], "{sdp}");
    }
}

#[test]
fn a_recording_is_played_again_from_its_beginning() {
    let mut fixture = Fixture::playing(RECORDING);
    plays_to_its_end(&mut fixture);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    fixture.receives(&frame(0, 1));
    fixture.wait(Duration::from_secs(3));
    assert_eq!(fixture.ended, None);
    // A server that cannot play it again is set up anew.
    let mut fixture = Fixture::playing(RECORDING);
    fixture.receives(&frame(0, 1));
    ends(&mut fixture);
    fixture.answers("PLAY", "457 Invalid Range", "", "");
    is_set_up_anew(&mut fixture);
    assert_eq!(fixture.ended, None);
}

/// All of the recording comes, and nothing says that it was all.
fn plays_to_its_end(fixture: &mut Fixture) {
    for sequence in 0..201 {
        fixture.wait(Duration::from_millis(100));
        fixture.receives(&frame(0, sequence));
        if fixture.requests.first().is_some_and(|request| request.starts_with("GET_PARAMETER")) {
            fixture.answers("GET_PARAMETER", "200 OK", "", "");
        }
    }
    fixture.wait(Duration::from_millis(1_500));
}

/// The server says that the recording has ended.
fn ends(fixture: &mut Fixture) {
    fixture.receives(&bye(1, 9));
    fixture.wait(Duration::from_millis(300));
}

fn is_set_up_anew(fixture: &mut Fixture) {
    fixture.answers("TEARDOWN", "200 OK", "", "");
    let transport = "Session: 78\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n";
    fixture.answers("SETUP", "200 OK", transport, "");
    let play = fixture.answers("PLAY", "200 OK", "Session: 78\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
}

/// As Live555 does: no BYE ends the recording, PLAY after it is answered with 200, and nothing
/// follows.
#[test]
fn a_recording_that_ends_without_bye_and_stays_silent_is_set_up_anew() {
    let mut fixture = Fixture::playing(RECORDING);
    plays_to_its_end(&mut fixture);
    let play = fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    assert!(play.contains("Range: npt=0.000-"), "{play}");
    fixture.wait(Duration::from_millis(1_900));
    assert!(fixture.requests.is_empty(), "{:?}", fixture.requests);
    fixture.wait(Duration::from_millis(200));
    is_set_up_anew(&mut fixture);
    // The next end needs no other try.
    plays_to_its_end(&mut fixture);
    is_set_up_anew(&mut fixture);
    assert_eq!(fixture.ended, None);
    assert_eq!(fixture.anomalies().len(), 1, "{:?}", fixture.anomalies());
}

/// The same of a server that says BYE.
#[test]
fn a_recording_that_stays_silent_when_played_again_is_set_up_anew() {
    let mut fixture = Fixture::playing(RECORDING);
    fixture.receives(&frame(0, 1));
    ends(&mut fixture);
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    fixture.wait(Duration::from_millis(1_900));
    assert!(fixture.requests.is_empty(), "{:?}", fixture.requests);
    fixture.wait(Duration::from_millis(200));
    is_set_up_anew(&mut fixture);
    fixture.receives(&frame(0, 2));
    fixture.wait(Duration::from_secs(3));
    assert!(fixture.requests.is_empty() && fixture.ended.is_none(), "{:?}", fixture.requests);
    // That is how this server is: the next end needs no other try.
    ends(&mut fixture);
    is_set_up_anew(&mut fixture);
    assert_eq!(fixture.anomalies().len(), 1, "{:?}", fixture.anomalies());
    // A session that cannot be played at all ends as before.
    fixture.wait(Duration::from_secs(11));
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.failed().0, FailureReason::MediaLost);
}
