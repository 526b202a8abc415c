//! A source that sends its sound in bursts, to one viewer as to all, as a recording that is packed
//! in large blocks: no limit of the load.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_sim::janus::{Janus, SOUND_PORT};
use throng_sim::namespace::Namespace;

use super::{AS_WITHOUT_LOAD, Planted};
use crate::search::{Lab, Outcome};

const URL: &str = "janus+ws://127.0.0.1:8188/streaming/1";
/// Where the sound comes in that goes to Janus in bursts.
const HELD_PORT: u16 = 5102;
/// Half of the packets come at least 290 ms late.
const EVERY: Duration = Duration::from_millis(580);

pub(super) const PLANTED: Planted = Planted {
    name: "source in bursts",
    what: "Janus, whose sound comes in bursts of 580 ms at any load, up to 15 viewers",
    expects: &[],
    verdict: "at_least",
    is_short: false,
    plant,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let address = Ipv4Addr::new(10, 78, 9, 1);
    let namespace = Namespace::with_veth("lab", address)?;
    let janus = Janus::start(&namespace, address)?;
    let _relay = Relay::start(&namespace)?;
    let _feed = janus.feed_with_sound_to(HELD_PORT)?;
    let watch = format!("pid={}", janus.pid());
    let answer = lab.find(Some(&namespace), "bursts", URL, &watch, &["--ceiling", "15"])?;
    let answer = answer.saying("", &[AS_WITHOUT_LOAD, "delay"]);
    Ok(Outcome { answer, truth: Some(15.0) })
}

/// Takes packets and passes them on in bursts, until it is dropped.
struct Relay(Arc<AtomicBool>);

impl Relay {
    fn start(namespace: &Namespace) -> anyhow::Result<Self> {
        let socket = namespace.enter(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, HELD_PORT)))??;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        std::thread::spawn(move || pass_on(&socket, &ended));
        Ok(Self(has_ended))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn pass_on(socket: &UdpSocket, has_ended: &AtomicBool) {
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut packet = [0; 2048];
    let mut due = Instant::now() + EVERY;
    while !has_ended.load(Ordering::Relaxed) {
        let wait = due.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            for packet in held.drain(..) {
                // What is lost here is lost for all viewers.
                let _ = socket.send_to(&packet, (Ipv4Addr::LOCALHOST, SOUND_PORT));
            }
            due += EVERY;
            continue;
        }
        // A time-out is the end of the burst.
        let _ = socket.set_read_timeout(Some(wait));
        if let Ok(len) = socket.recv(&mut packet) {
            held.extend(packet.get(..len).map(<[u8]>::to_vec));
        }
    }
}
