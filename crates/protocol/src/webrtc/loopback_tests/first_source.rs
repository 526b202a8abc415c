//! A server that keeps to the first source that it hears, as SRS does.

use std::net::IpAddr;

use super::super::session::RemoteCandidate;
use super::*;

const LOOPBACK: &str = "127.0.0.1:6000";
const OWN: &str = "10.0.0.5:6000";
const SERVED: &str = "10.0.0.5:5000";

/// What became of a viewer and such a server.
struct Met {
    /// The source that the server keeps to.
    first: Option<SocketAddr>,
    are_connected: bool,
}

/// A viewer with `locals` meets such a server. `sends` tells from which of them the driver sends.
fn meet(locals: &[&str], sends: impl Fn(IpAddr) -> bool) -> Met {
    let mut now = Instant::now() + Duration::from_secs(1);
    let (mut here, mut there) = (Session::viewer(now).unwrap(), Session::server(now).unwrap());
    locals.iter().for_each(|local| drop(here.add_local_candidate(address(local)).unwrap()));
    let candidate = there.add_local_candidate(address(SERVED)).unwrap();
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
                    if sends(source.ip()) && *first.get_or_insert(source) == source =>
                {
                    let _ = there.datagram(now, source, address(SERVED), &bytes);
                }
                _ => {}
            }
        }
        while let Ok(output) = there.poll_output() {
            match output {
                SessionOutput::Timeout(_) => break,
                SessionOutput::Connected(_) => connected[1] = true,
                SessionOutput::Transmit { to, bytes, .. } => {
                    here.datagram(now, address(SERVED), to, &bytes).unwrap();
                }
                _ => {}
            }
        }
    }
    Met { first, are_connected: connected == [true; 2] }
}

/// The driver sends what routing leads there, and tells the viewer nothing of the rest.
#[test]
fn a_viewer_connects_to_it_by_the_one_pair_that_is_sent() {
    let own = address(OWN);
    for locals in [[LOOPBACK, OWN], [OWN, LOOPBACK]] {
        let met = meet(&locals, |from| from == own.ip());
        assert_eq!((met.first, met.are_connected), (Some(own), true), "{locals:?}");
    }
    // Where there is no other, loopback is the way.
    let met = meet(&[LOOPBACK], |_| true);
    assert_eq!((met.first, met.are_connected), (Some(address(LOOPBACK)), true));
}
