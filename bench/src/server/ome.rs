//! OvenMediaEngine's signalling (`throng_sim::ome`) with sessions like its own: ICE-lite, the
//! candidate beside the description, video and audio sent only. They connect, and send nothing.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::media::{Direction, MediaKind};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Input, Output, Rtc, RtcConfig};
use throng_protocol::webrtc::crypto;
use throng_sim::namespace::Namespace;
use throng_sim::ome::{Behaviour, MediaPeer, Server};

use super::MEDIA;

const STREAM: &str = "/app/stream";
/// The longest wait for a datagram: a session whose viewer has left ends after it.
const IDLE_MAX: Duration = Duration::from_millis(500);

/// The server, on threads of this process; it ends on drop.
#[derive(Debug)]
pub(super) struct OmeServer<'a> {
    namespace: &'a Namespace,
    server: Option<Server>,
    address: SocketAddr,
}

impl<'a> OmeServer<'a> {
    pub(super) fn start(namespace: &'a Namespace) -> Result<Self> {
        let behaviour = Behaviour { stream: STREAM.into(), ..Behaviour::default() };
        // Its threads, and so the sockets of its sessions, are in the namespace of the thread that
        // starts it.
        let server = namespace.enter(|| {
            let session = || -> Box<dyn MediaPeer> { Box::new(Session::new()) };
            Server::start(Ipv4Addr::LOCALHOST, behaviour, Arc::new(session))
        })??;
        let address = server.address();
        Ok(Self { namespace, server: Some(server), address })
    }

    pub(super) fn url(&self) -> String {
        format!("ws://{}{STREAM}", self.address)
    }
}

impl Drop for OmeServer<'_> {
    fn drop(&mut self) {
        let server = self.server.take();
        // It ends by a connection to itself. Without its namespace it cannot be ended, and needs
        // not to be.
        let _ = self.namespace.enter(|| drop(server));
    }
}

/// A viewer's session. One that cannot be made has no offer, so that the viewer does not join,
/// which the table shows.
struct Session {
    socket: Option<UdpSocket>,
    offered: Option<Offered>,
    gone: Arc<AtomicBool>,
}

struct Offered {
    rtc: Rtc,
    pending: SdpPendingOffer,
    socket: UdpSocket,
}

impl Session {
    /// Its port is taken now: the server asks for the candidates before the offer.
    fn new() -> Self {
        Self { socket: UdpSocket::bind((MEDIA, 0)).ok(), offered: None, gone: Arc::default() }
    }
}

impl MediaPeer for Session {
    fn offer(&mut self) -> String {
        let offered = self.socket.as_ref().map(|socket| Offered::new(socket.try_clone()?));
        let Some(Ok((offered, sdp))) = offered else { return String::new() };
        self.offered = Some(offered);
        sdp
    }

    fn candidates(&self) -> Vec<String> {
        // In OvenMediaEngine's format.
        let line = |at: SocketAddr| {
            format!("candidate:0 1 UDP 50 {} {} typ host generation 0", at.ip(), at.port())
        };
        let address = self.socket.as_ref().and_then(|socket| socket.local_addr().ok());
        address.into_iter().map(line).collect()
    }

    fn answer(&mut self, sdp: &str) {
        let (Some(offered), Ok(answer)) = (self.offered.take(), SdpAnswer::from_sdp_string(sdp))
        else {
            return;
        };
        let gone = Arc::clone(&self.gone);
        std::thread::spawn(move || offered.serve(answer, &gone));
    }

    /// ICE-lite learns the viewer's address from its checks.
    fn candidate(&mut self, _candidate: &str) {}
}

impl Drop for Session {
    fn drop(&mut self) {
        self.gone.store(true, Relaxed);
    }
}

impl Offered {
    /// A session on `socket`, and its offer.
    fn new(socket: UdpSocket) -> Result<(Self, String)> {
        let shared = crypto::shared()?;
        let config = RtcConfig::new()
            .clear_codecs()
            .enable_h264(true)
            .enable_opus(true, false)
            .set_ice_lite(true)
            .set_dtls_cert(shared.certificate.clone())
            .set_crypto_provider(Arc::clone(&shared.provider));
        // Nothing is encrypted, so the keys are not wanted.
        let (mut rtc, _) = crypto::with_key_slot(|| config.build(Instant::now()));
        let mut change = rtc.sdp_api();
        for kind in [MediaKind::Video, MediaKind::Audio] {
            change.add_media(kind, Direction::SendOnly, Some("stream".into()), None, None);
        }
        let (offer, pending) = change.apply().context("no change to offer")?;
        // After the offer is written, so that it is not in it.
        rtc.add_local_candidate(Candidate::host(socket.local_addr()?, "udp")?);
        Ok((Self { rtc, pending, socket }, offer.to_sdp_string()))
    }

    /// Serves the viewer until it is gone.
    fn serve(self, answer: SdpAnswer, gone: &AtomicBool) {
        let Self { mut rtc, pending, socket } = self;
        let Ok(local) = socket.local_addr() else { return };
        if rtc.sdp_api().accept_answer(pending, answer).is_err() {
            return;
        }
        let mut buffer = [0; 2_000];
        while !gone.load(Relaxed) && rtc.is_alive() {
            let Some(deadline) = send(&mut rtc, &socket) else { return };
            let wait = deadline.saturating_duration_since(Instant::now());
            // Zero would be no limit.
            let wait = wait.clamp(Duration::from_millis(1), IDLE_MAX);
            if socket.set_read_timeout(Some(wait)).is_err() {
                return;
            }
            let received = socket.recv_from(&mut buffer).ok();
            let now = Instant::now();
            let input = received
                .and_then(|(len, from)| {
                    Receive::new(Protocol::Udp, from, local, buffer.get(..len)?).ok()
                })
                .map_or(Input::Timeout(now), |datagram| Input::Receive(now, datagram));
            if rtc.handle_input(input).is_err() {
                return;
            }
        }
    }
}

/// Sends what is due. Returns when more will be; `None` if the session has ended.
fn send(rtc: &mut Rtc, socket: &UdpSocket) -> Option<Instant> {
    loop {
        match rtc.poll_output().ok()? {
            Output::Timeout(at) => return Some(at),
            Output::Transmit(datagram) => {
                // A viewer that has left refuses it.
                let _ = socket.send_to(&datagram.contents, datagram.destination);
            }
            Output::Event(_) => {}
        }
    }
}
