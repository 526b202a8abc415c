//! Byte streams: TCP, Unix stream sockets, pipes. A frame is sent as its length (u64,
//! little-endian) and its bytes, by one `writev`; the consumer reads through a small buffer, and
//! most of a large frame directly into its destination.

use std::fs::File;
use std::io::{BufReader, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::{
    End, IoContext, Outgoing, Received, Receiver, Sender, Side, TransportError, Wiring, failed,
};

/// One read returns many small frames; of a large frame at most this much is copied once more, out
/// of this buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// Requested capacity of a pipe: the largest that the system allows without privilege by default.
pub(super) const PIPE_BYTES: usize = 1 << 20;

pub(super) fn tcp(wiring: &mut Wiring) -> Result<(), TransportError> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listening on loopback")?;
    let address = listener.local_addr().context("listening on loopback")?;
    let producer = TcpStream::connect(address).context("connecting over loopback")?;
    let from = producer.local_addr().context("connecting over loopback")?;
    let consumer = loop {
        // Another process on this machine may connect to the port first.
        let (stream, peer) = listener.accept().context("accepting over loopback")?;
        if peer == from {
            break stream;
        }
    };
    for stream in [&producer, &consumer] {
        stream.set_nodelay(true).context("setting TCP_NODELAY")?;
    }
    wiring.pair(producer.into(), consumer.into());
    Ok(())
}

pub(super) fn unix(wiring: &mut Wiring) -> Result<(), TransportError> {
    let (producer, consumer) = UnixStream::pair().context("making a Unix socket pair")?;
    wiring.pair(producer.into(), consumer.into());
    Ok(())
}

pub(super) fn pipe(wiring: &mut Wiring) -> Result<(), TransportError> {
    use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
    let (consumer, producer) = pipe_with(PipeFlags::CLOEXEC).context("making a pipe")?;
    // For a user beyond the quota for pipes the pipe keeps its 64 KiB: slower, but still correct.
    let _ = fcntl_setpipe_size(&producer, PIPE_BYTES);
    wiring.pair(producer, consumer);
    Ok(())
}

/// Writes frames to a descriptor.
pub(super) struct Writer(File);

impl Writer {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        Ok(Self(File::from(side.end()?.take_fd()?)))
    }
}

impl Sender for Writer {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let length = (frame.bytes.len() as u64).to_le_bytes();
        let mut parts = [IoSlice::new(&length), IoSlice::new(frame.bytes)];
        let mut parts = &mut parts[..];
        while !parts.is_empty() {
            match self.0.write_vectored(parts) {
                Ok(0) => {
                    return Err(std::io::Error::from(std::io::ErrorKind::WriteZero))
                        .context("writing a frame");
                }
                Ok(written) => IoSlice::advance_slices(&mut parts, written),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("writing a frame"),
            }
        }
        Ok(())
    }
}

/// Reads frames from a descriptor.
pub(super) struct Reader {
    from: BufReader<File>,
    frame: Vec<u8>,
}

impl Reader {
    pub(super) fn open(end: &End, side: &Side) -> Result<Self, TransportError> {
        Ok(Self::new(end.take_fd()?, side.frame_bytes_max))
    }

    fn new(fd: OwnedFd, frame_bytes_max: usize) -> Self {
        Self {
            from: BufReader::with_capacity(BUFFER_BYTES, File::from(fd)),
            frame: vec![0; frame_bytes_max],
        }
    }
}

impl Receiver for Reader {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        let mut length = [0; 8];
        match self.from.read_exact(&mut length) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Ok(Received::Closed);
            }
            result => result.context("reading a frame's length")?,
        }
        let length = u64::from_le_bytes(length);
        let most = self.frame.len();
        let frame = usize::try_from(length)
            .ok()
            .and_then(|length| self.frame.get_mut(..length))
            .ok_or_else(|| {
                let why =
                    format!("its length field is {length} bytes, the largest frame has {most}");
                failed("reading a frame", why)
            })?;
        self.from.read_exact(frame).context("reading a frame")?;
        take(frame);
        Ok(Received::Frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_largest_frame_is_refused() {
        let (mut producer, consumer) = UnixStream::pair().unwrap();
        producer.write_all(&u64::MAX.to_le_bytes()).unwrap();
        let mut reader = Reader::new(consumer.into(), 100);
        let error = reader.receive(&mut |_| unreachable!("there is no frame")).unwrap_err();
        assert!(error.to_string().contains("the largest frame has 100"), "{error}");
    }

    #[test]
    fn a_stream_that_ends_between_frames_is_closed_and_within_one_is_an_error() {
        for (sent, expect) in [(0, Some(Received::Closed)), (8 + 5, None)] {
            let (mut producer, consumer) = UnixStream::pair().unwrap();
            let mut frame = 10u64.to_le_bytes().to_vec();
            frame.extend([7; 10]);
            producer.write_all(&frame[..sent]).unwrap();
            drop(producer);
            let got = Reader::new(consumer.into(), 100).receive(&mut |_| {}).ok();
            assert_eq!(got, expect, "{sent} bytes");
        }
    }
}
