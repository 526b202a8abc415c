//! A server that keeps to the first source that it hears, as SRS does.

use super::super::session::RemoteCandidate;
use super::*;

const LOOPBACK: &str = "127.0.0.1:6000";
const OWN: &str = "10.0.0.5:6000";
const LAN_SERVER: &str = "10.0.0.5:5000";
const LOOPBACK_SERVER: &str = "127.0.0.1:5000";

/// Connects a viewer with `locals` to such a server at `served`; returns the source that the server
/// keeps to.
fn kept_to(locals: &[&str], served: &str) -> SocketAddr {
    let mut now = Instant::now() + Duration::from_secs(1);
    let (mut here, mut there) = (Session::viewer(now).unwrap(), Session::server(now).unwrap());
    locals.iter().for_each(|local| drop(here.add_local_candidate(address(local)).unwrap()));
    let candidate = there.add_local_candidate(address(served)).unwrap();
    let (answer, _) = there.accept_offer(&here.create_offer().unwrap()).unwrap();
    here.accept_answer(&answer).unwrap();
    here.add_remote_candidate(RemoteCandidate::parse(&candidate).unwrap());
    let (mut first, mut connected) = (None, [false; 2]);
    for _ in 0..5_000 {
        now += Duration::from_millis(1);
        here.timeout(now).unwrap();
        let _ = there.timeout(now);
        while let Ok(output) = here.poll_output() {
            match output {
                SessionOutput::Timeout(_) => break,
                SessionOutput::Connected(_) => connected[0] = true,
                SessionOutput::Transmit { source, bytes, .. }
                    if *first.get_or_insert(source) == source =>
                {
                    let _ = there.datagram(now, source, address(served), &bytes);
                }
                _ => {}
            }
        }
        while let Ok(output) = there.poll_output() {
            match output {
                SessionOutput::Timeout(_) => break,
                SessionOutput::Connected(_) => connected[1] = true,
                SessionOutput::Transmit { to, bytes, .. } => {
                    here.datagram(now, address(served), to, &bytes).unwrap();
                }
                _ => {}
            }
        }
    }
    assert_eq!(connected, [true; 2], "{locals:?} to {served}");
    first.unwrap()
}

#[test]
fn loopback_is_no_way_to_another_address_of_the_host() {
    for locals in [[LOOPBACK, OWN], [OWN, LOOPBACK]] {
        assert_eq!(kept_to(&locals, LAN_SERVER), address(OWN));
    }
    // Where there is no other, it is one.
    assert_eq!(kept_to(&[LOOPBACK], LAN_SERVER), address(LOOPBACK));
    assert_eq!(kept_to(&[LOOPBACK], LOOPBACK_SERVER), address(LOOPBACK));
}
