//! Limits planted on purpose, each a real one, for tests that need to know which limit a server
//! reaches.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::config::within;
use crate::error::StageError;
use crate::source::Codec;

/// Backlog of the listener by default, as in the standard library.
const BACKLOG: u32 = 4_096;

/// Room for a burst to a thousand viewers.
const SEND_BUFFER_KB: u32 = 8 * 1024;

/// Room for a burst from a thousand viewers.
const RECEIVE_BUFFER_KB: u32 = 8 * 1024;

/// Limits planted in a stage. All are off by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    /// Further AES-GCM passes over each media packet sent: a worker is full at a lower load.
    pub work_per_packet: u32,
    /// Memory copied for each media packet sent, kilobytes (1,000 bytes): a worker that mostly
    /// copies.
    pub copy_per_packet_kb: u32,
    /// All workers take one mutex around the work and the copying for each packet: many threads
    /// together use one core.
    pub shared_lock: bool,
    /// Memory that each viewer holds while its session lasts, every page of it written, megabytes
    /// (1,000,000 bytes).
    pub memory_per_viewer_mb: u32,
    /// The process aborts when this many viewers are connected at a time.
    pub crash_at: Option<usize>,
    /// Connections that may wait to be accepted (`listen(2)`).
    pub backlog: Option<u32>,
    /// Sleep after each accepted connection, milliseconds.
    pub accept_pause_ms: u32,
    /// Send buffer of each worker's socket, kilobytes (1,024 bytes, `SO_SNDBUF`): what does not fit
    /// is not sent.
    pub send_buffer_kb: Option<u32>,
    /// Receive buffer of each worker's socket, kilobytes (1,024 bytes, `SO_RCVBUF`).
    pub receive_buffer_kb: Option<u32>,
    /// Cap on datagrams that each worker receives per second; it sleeps in between.
    pub receive_rate: Option<u32>,
    /// A folder with a file for each viewer, read past the page cache at the rate of the viewer's
    /// media: what has not been read is not sent.
    pub media_folder: Option<PathBuf>,
    /// Most viewers that are sent video at a time; further ones are sent only audio, though video
    /// was negotiated.
    pub pictures_max: Option<usize>,
    /// How long each viewer is sent audio, seconds.
    pub sound_ends_after_s: Option<u32>,
    /// Most viewers that are served well at a time; further ones get stuttering video: none in one
    /// second of each three, then again from the next key frame.
    pub stutters_beyond: Option<usize>,
    /// RTX (RFC 4588) is not negotiated: retransmissions come on the stream's own SSRC.
    pub no_rtx: bool,
}

impl Planted {
    pub(crate) fn validate(&self) -> Result<(), StageError> {
        // What is not planted has any value that is allowed.
        let figures = [
            ("work_per_packet", self.work_per_packet.into(), 0..=100_000),
            ("copy_per_packet_kb", self.copy_per_packet_kb.into(), 0..=100_000),
            ("memory_per_viewer_mb", self.memory_per_viewer_mb.into(), 0..=10_000),
            ("crash_at", self.crash_at.unwrap_or(1) as u64, 1..=100_000),
            ("backlog", self.backlog.unwrap_or(1).into(), 1..=65_535),
            ("accept_pause_ms", self.accept_pause_ms.into(), 0..=60_000),
            ("send_buffer_kb", self.send_buffer_kb.unwrap_or(1).into(), 1..=1_000_000),
            ("receive_buffer_kb", self.receive_buffer_kb.unwrap_or(1).into(), 1..=1_000_000),
            ("pictures_max", self.pictures_max.unwrap_or(0) as u64, 0..=100_000),
            ("stutters_beyond", self.stutters_beyond.unwrap_or(0) as u64, 0..=100_000),
            ("sound_ends_after_s", self.sound_ends_after_s.unwrap_or(0).into(), 0..=86_400),
            ("receive_rate", self.receive_rate.unwrap_or(1).into(), 1..=10_000_000),
        ];
        figures.into_iter().try_for_each(|(field, value, range)| within(field, value, range))
    }

    /// Aborts the process if a crash is planted at this number of viewers.
    pub(crate) fn crash_if_due(&self, viewers: usize) {
        if self.crash_at.is_some_and(|limit| viewers >= limit) {
            tracing::error!(viewers, "the planted crash is due");
            std::process::abort();
        }
    }

    /// The memory that a viewer holds; all of it is written, so that its pages are resident.
    pub(crate) fn memory_of_viewer(&self) -> Vec<u8> {
        vec![0xa5; self.memory_per_viewer_mb as usize * 1_000_000]
    }

    /// When a viewer's stream that begins at `now` ends, if that is planted.
    pub(crate) fn ends_at(&self, codec: Codec, now: Instant) -> Option<Instant> {
        let after_s = self.sound_ends_after_s.filter(|_| codec.is_audio())?;
        Some(now + Duration::from_secs(after_s.into()))
    }

    /// The size of the workers' send buffers, bytes.
    pub(crate) fn send_buffer(&self) -> usize {
        self.send_buffer_kb.unwrap_or(SEND_BUFFER_KB) as usize * 1024
    }

    /// The size of the workers' receive buffers, bytes.
    pub(crate) fn receive_buffer(&self) -> usize {
        self.receive_buffer_kb.unwrap_or(RECEIVE_BUFFER_KB) as usize * 1024
    }

    /// A listener at `address` with the planted backlog.
    pub(crate) fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        // The address of a restarted stage may be in TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(self.backlog.unwrap_or(BACKLOG)).unwrap_or(i32::MAX))?;
        Ok(socket.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpStream};

    #[test]
    fn a_viewer_holds_as_much_as_was_planted() {
        assert!(Planted::default().memory_of_viewer().is_empty());
        let planted = Planted { memory_per_viewer_mb: 2, ..Planted::default() };
        let held = planted.memory_of_viewer();
        assert!(held.len() == 2_000_000 && held.iter().all(|byte| *byte == 0xa5));
    }

    #[test]
    fn a_connection_beyond_the_backlog_fails() {
        let planted = Planted { backlog: Some(1), ..Planted::default() };
        let listener = planted.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let reach = || TcpStream::connect_timeout(&address, Duration::from_millis(100));
        // The kernel takes one more than the backlog (net/sock.h, sk_acceptq_is_full).
        let waiting = [reach(), reach()];
        assert!(waiting.iter().all(Result::is_ok) && reach().is_err());
    }

    #[test]
    fn a_crash_is_due_at_its_size_and_not_before() {
        Planted::default().crash_if_due(1_000_000);
        Planted { crash_at: Some(3), ..Planted::default() }.crash_if_due(2);
    }

    #[test]
    fn figures_out_of_range_name_their_field() {
        let said = |planted: Planted| planted.validate().unwrap_err().to_string();
        assert_eq!(
            said(Planted { backlog: Some(0), ..Planted::default() }),
            "backlog = 0 is outside 1 to 65535"
        );
        assert!(
            said(Planted { crash_at: Some(0), ..Planted::default() }).starts_with("crash_at = 0")
        );
        assert!(Planted::default().validate().is_ok());
    }
}
