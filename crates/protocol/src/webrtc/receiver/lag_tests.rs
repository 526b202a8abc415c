//! Packets that are passed on a while after they arrived.

use std::time::{Duration, Instant};

use throng_media::rtcp::{Compound, Rtcp};
use throng_observation::Observation;

use super::fixture::Fixture;

const SDP: &str = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack\r\n\
    a=sendonly\r\n";
const VP8: (u8, u32) = (96, 8);
const LAG: Duration = Duration::from_millis(12);

impl Fixture {
    /// The packets that it requests now.
    fn requested(&mut self) -> Vec<u16> {
        let mut requested = Vec::new();
        while let Some(mut datagram) = self.receiver.poll_feedback(self.now) {
            let length = self.opener.open_rtcp(&mut datagram).expect("authentic");
            for packet in Compound::new(&datagram[..length]) {
                if let Ok(Rtcp::Nack(nack)) = packet {
                    requested.extend(nack.sequences());
                }
            }
        }
        requested
    }

    fn wait_until(&mut self, at: Instant) {
        self.now = at;
        self.receiver.timeout(at);
    }
}

#[test]
fn what_arrived_and_is_still_to_come_is_not_requested() {
    let mut fixture = Fixture::new(SDP, false);
    let start = fixture.now;
    let ms = |ms| start + Duration::from_millis(ms);
    fixture.receiver.receive_lag(LAG);
    // 3 arrived 4 ms after 4, and comes 11 ms after that; 6 never comes.
    for (index, arrived_ms, passed_ms) in
        [(1, 0, 5), (2, 1, 5), (4, 2, 10), (5, 3, 10), (3, 6, 17), (7, 7, 17)]
    {
        fixture.wait_until(ms(passed_ms));
        assert_eq!(fixture.requested(), [0_u16; 0]);
        fixture.arrives(VP8, index, ms(arrived_ms));
    }
    let due = fixture.receiver.next_timeout();
    assert_eq!(due, ms(7 + 10) + LAG, "a packet may be out of order for 10 ms");
    fixture.wait_until(due - Duration::from_millis(1));
    assert_eq!(fixture.requested(), [0_u16; 0]);
    fixture.wait_until(due);
    assert_eq!(fixture.requested(), [6]);
    // The answer takes a round trip from the request, not from the arrivals that are known.
    fixture.wait_until(due + Duration::from_millis(99));
    assert_eq!(fixture.requested(), [0_u16; 0]);
}

#[test]
fn who_leaves_is_judged_as_of_the_time_until_which_all_that_arrived_is_known() {
    let mut fixture = Fixture::new(SDP, false);
    fixture.receiver.receive_lag(LAG);
    fixture.arrives(VP8, 1, fixture.now);
    let left_at = fixture.now + Duration::from_millis(400);
    fixture.receiver.finish(left_at);
    let ended_at = fixture.receiver.take_observed().find_map(|observation| match observation {
        Observation::Interval(interval) => Some(interval.ended_at),
        _ => None,
    });
    assert_eq!(ended_at, Some(left_at - LAG));
}
