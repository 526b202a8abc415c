//! Unix sockets that preserve records. A record must fit the socket's buffer, so a frame is sent as
//! packets; the first one begins with the frame's length.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{
    End, IoContext, Outgoing, Received, Receiver, Sender, Side, TransportError, Wiring, failed,
};

/// Bytes of a frame in one packet: with the length before them they fit the smallest default buffer
/// (212,992 bytes).
const PACKET_BYTES: usize = 128 << 10;

pub(super) fn pair(wiring: &mut Wiring) -> Result<(), TransportError> {
    let (producer, consumer) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .context("making a pair of seqpacket sockets")?;
    wiring.pair(producer, consumer);
    Ok(())
}

pub(super) struct Writer(OwnedFd);

impl Writer {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        Ok(Self(side.end()?.take_fd()?))
    }
}

impl Sender for Writer {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let length = (frame.bytes.len() as u64).to_le_bytes();
        let mut prefix = &length[..];
        for packet in frame.bytes.chunks(PACKET_BYTES) {
            let parts = [IoSlice::new(prefix), IoSlice::new(packet)];
            // A record is sent whole or not at all.
            rustix::io::retry_on_intr(|| rustix::io::writev(&self.0, &parts))
                .context("sending a packet")?;
            prefix = &[];
        }
        Ok(())
    }
}

pub(super) struct Reader {
    from: OwnedFd,
    frame: Vec<u8>,
}

impl Reader {
    pub(super) fn open(end: &End, side: &Side) -> Result<Self, TransportError> {
        Ok(Self { from: end.take_fd()?, frame: vec![0; side.frame_bytes_max] })
    }

    /// Receives one record into `parts`; `None` when the other side has closed.
    fn record(&self, parts: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, TransportError> {
        loop {
            match rustix::io::readv(&self.from, parts) {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(None),
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("receiving a packet"),
            }
        }
    }
}

impl Receiver for Reader {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        let broken = |reason: String| failed("receiving a packet", reason);
        let mut frame = std::mem::take(&mut self.frame);
        let mut length = [0; 8];
        let first =
            self.record(&mut [IoSliceMut::new(&mut length), IoSliceMut::new(&mut frame)])?;
        let Some(first) = first else { return Ok(Received::Closed) };
        let length = u64::from_le_bytes(length);
        let whole = usize::try_from(length).ok().filter(|length| *length <= frame.len());
        let whole =
            whole.ok_or_else(|| broken(format!("a frame's length field is {length} bytes")))?;
        let mut filled =
            first.checked_sub(8).ok_or_else(|| broken("a packet without a length".into()))?;
        while filled < whole {
            let Some(rest) = frame.get_mut(filled..whole) else { break };
            let record = self.record(&mut [IoSliceMut::new(rest)])?;
            filled += record.ok_or_else(|| {
                broken(format!("it ended {filled} bytes into a frame of {whole}"))
            })?;
        }
        take(frame.get(..whole).unwrap_or_default());
        self.frame = frame;
        Ok(Received::Frame)
    }
}
