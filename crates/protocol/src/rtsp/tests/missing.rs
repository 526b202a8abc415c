//! Media that does not come, or stops.

use std::time::Duration;

use throng_observation::FailureReason;
use throng_scenario::RtspTransport;

use super::fixture::{AUDIO, Fixture, SDP, audio, frame};
use crate::participant::{Channel, Input};

#[test]
fn a_session_that_the_server_has_forgotten_is_a_failure() {
    let mut fixture = Fixture::playing(SDP);
    for sequence in 0..120 {
        fixture.wait(Duration::from_millis(100));
        fixture.receives(&frame(0, sequence));
    }
    fixture.answers("GET_PARAMETER", "454 Session Not Found", "", "");
    fixture.answers("TEARDOWN", "454 Session Not Found", "", "");
    assert_eq!(fixture.failed().0, FailureReason::RtspStatus(454));
}

#[test]
fn a_firewall_is_suspected_only_where_nothing_came() {
    for is_reported in [true, false] {
        let mut fixture = Fixture::new(RtspTransport::Auto);
        fixture.described(SDP);
        fixture.ports(50_000);
        let transport = "RTP/AVP;unicast;client_port=50000-50001;server_port=6000-6001";
        let headers = format!("Session: 77;timeout=20\r\nTransport: {transport}\r\n");
        fixture.answers("SETUP", "200 OK", &headers, "");
        fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
        if is_reported {
            fixture.input(Input::Datagram {
                channel: Channel(2),
                source: "127.0.0.1:6001".parse().unwrap(),
                local: None,
                arrived_at: fixture.now,
                bytes: &mut [0x80, 201, 0, 1, 0, 0, 0, 1],
            });
        }
        fixture.wait(Duration::from_secs(11));
        fixture.answers("GET_PARAMETER", "200 OK", "Session: 77\r\n", "");
        fixture.answers("TEARDOWN", "200 OK", "", "");
        let (reason, detail) = fixture.failed();
        assert_eq!(reason, FailureReason::NoMedia);
        assert_eq!(detail.contains("a firewall may drop UDP"), !is_reported, "{detail}");
    }
}

#[test]
fn media_that_never_comes_or_stops_is_missed() {
    let mut fixture = Fixture::playing(SDP);
    fixture.wait(Duration::from_secs(11));
    fixture.answers("GET_PARAMETER", "200 OK", "", "");
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.failed().0, FailureReason::NoMedia);
    let mut fixture = Fixture::playing(SDP);
    fixture.receives(&frame(0, 1));
    fixture.wait(Duration::from_secs(11));
    fixture.answers("GET_PARAMETER", "200 OK", "", "");
    fixture.answers("TEARDOWN", "200 OK", "", "");
    assert_eq!(fixture.failed().0, FailureReason::MediaLost);
}

/// Plays video and audio for fourteen seconds; audio until `audio_s`. How many seconds each missed,
/// and since when as of PLAY.
fn missed(audio_s: u64) -> [Vec<Duration>; 2] {
    let mut fixture = Fixture::new(RtspTransport::Tcp);
    fixture.described(&format!("{SDP}{AUDIO}"));
    for channels in ["0-1", "2-3"] {
        let transport = format!(
            "Session: 77;timeout=200\r\nTransport: RTP/AVP/TCP;unicast;interleaved={channels}\r\n"
        );
        fixture.answers("SETUP", "200 OK", &transport, "");
    }
    fixture.answers("PLAY", "200 OK", "Session: 77\r\n", "");
    let plays_since = fixture.now;
    for at in 0..350 {
        fixture.now += Duration::from_millis(40);
        fixture.receives(&frame(0, at));
        if u64::from(at) < audio_s * 25 {
            fixture.receives(&audio(2, 0, at));
        }
    }
    let of = |track: u16| {
        let mine = fixture.intervals().into_iter().filter(|it| it.track.0 == track);
        mine.filter_map(|it| Some(it.missing?.since - plays_since)).collect()
    };
    [of(0), of(1)]
}

/// One picture may be all that there is for a while; of six the pace is known.
#[test]
fn media_that_began_has_stopped_and_is_not_awaited() {
    for (came, has_stopped) in [(0, false), (1, false), (8, true)] {
        let mut fixture = Fixture::playing(SDP);
        for sequence in 0..came {
            fixture.now += Duration::from_millis(40);
            fixture.receives(&frame(0, sequence));
        }
        fixture.wait(Duration::from_millis(2_500));
        let missing: Vec<_> = fixture.intervals().into_iter().filter_map(|it| it.missing).collect();
        assert!(!missing.is_empty());
        assert!(missing.iter().all(|it| it.has_stopped == has_stopped), "{missing:?}");
    }
}

/// A camera that sends a picture each two seconds.
#[test]
fn of_a_source_with_few_pictures_none_is_missing_before_its_pace_is_known() {
    let mut fixture = Fixture::playing(SDP);
    let plays_since = fixture.now;
    for sequence in 0..5 {
        fixture.receives(&frame(0, sequence));
        fixture.wait(Duration::from_secs(2));
    }
    let missing = fixture.intervals().into_iter().filter(|it| it.missing.is_some());
    let after: Vec<_> = missing.map(|it| it.ended_at - plays_since).collect();
    // The second one tells how far apart they are.
    assert!(after.iter().all(|after| *after <= Duration::from_secs(4)), "{after:?}");
    // A sixth that does not come is missed.
    fixture.wait(Duration::from_secs(6));
    assert!(fixture.intervals().last().unwrap().missing.is_some());
}

#[test]
fn a_track_that_was_set_up_and_never_comes_or_stops_is_missing() {
    let [video, audio] = missed(14);
    assert!(video.is_empty() && audio.is_empty(), "{audio:?}");
    let [video, audio] = missed(0);
    assert!(video.is_empty(), "{video:?}");
    assert_eq!(audio, vec![Duration::ZERO; audio.len()]);
    assert!((13..=14).contains(&audio.len()), "{audio:?}");
    let [video, audio] = missed(5);
    assert!(video.is_empty() && (8..=9).contains(&audio.len()), "{audio:?}");
}
