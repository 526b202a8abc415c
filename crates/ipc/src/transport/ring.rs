//! throng's ring in shared memory, one lane per producer: the frame is copied into it, or written
//! where it will be read. The consumer uses every frame in place.

use std::time::Duration;

use throng_ring::{Consumer, Event, FrameInfo, Policy, Producer, RingError, RingOptions};

use super::{
    IoContext, Outgoing, Received, Receiver, Sender, Side, Transport, TransportError, Wiring,
};
use crate::frame::{body_mut, fill};

/// Fewest frames that a ring has room for, one to write and one to read: more would only use more
/// memory and cache. Lanes of 8 MiB for pictures of 3.1 MB took 0.83 of the CPU of lanes of 16 MiB,
/// with room for five.
const FRAMES: usize = 2;
/// A ring of small frames is as large as a pipe, so that wake-ups are as rare.
const BYTES_MIN: usize = 1 << 20;
const DESCRIPTORS: u32 = 4096;
/// Longer than any other part of a measurement may take: nothing is ever dropped.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Options of a lane for frames of at most `frame_bytes`.
fn options(frame_bytes: usize) -> RingOptions {
    RingOptions::with_size(frame_bytes.saturating_mul(FRAMES).max(BYTES_MIN), DESCRIPTORS)
}

/// Size of a lane's arena, bytes.
pub(crate) fn bytes(frame_bytes: usize) -> usize {
    options(frame_bytes).arena_bytes()
}

pub(super) fn wire(wiring: &mut Wiring) -> Result<(), TransportError> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (producer, consumer) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .context("making a handshake socket")?;
    wiring.pair(producer, consumer);
    Ok(())
}

fn failed(operation: &'static str) -> impl FnOnce(RingError) -> TransportError {
    move |error| super::failed(operation, error)
}

pub(super) struct Writer {
    producer: Producer,
    in_place: bool,
}

impl Writer {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        let mut producer =
            Producer::join(side.end()?.take_fd()?).map_err(failed("joining the ring"))?;
        producer.set_policy(Policy::Wait { timeout: TIMEOUT });
        Ok(Self { producer, in_place: side.transport == Transport::RingInPlace })
    }
}

impl Sender for Writer {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        let info = FrameInfo { timestamp_ns: frame.header.due_ns, ..FrameInfo::default() };
        let is_sent = if self.in_place {
            match self.producer.claim(frame.bytes.len(), &info).map_err(failed("claiming room"))? {
                Some(mut claim) => {
                    let bytes = claim.bytes_mut();
                    fill(body_mut(bytes), frame.header.seed);
                    frame.header.write(bytes);
                    claim.commit().map_err(failed("committing a frame"))?;
                    true
                }
                None => false,
            }
        } else {
            self.producer.send(frame.bytes, &info).map_err(failed("sending a frame"))?
        };
        let late = || super::failed("sending a frame", "the ring stayed full");
        is_sent.then_some(()).ok_or_else(late)
    }
}

pub(super) struct Reader {
    consumer: Consumer,
    left: u8,
    producers: u8,
}

impl Reader {
    pub(super) fn open(side: &Side) -> Result<Self, TransportError> {
        let mut consumer = Consumer::new().map_err(failed("making a ring's consumer"))?;
        let options = options(side.frame_bytes_max).prefault(true);
        for end in &side.ends {
            consumer.accept(end.take_fd()?, &options).map_err(failed("making a ring"))?;
        }
        Ok(Self { consumer, left: 0, producers: side.producers })
    }
}

impl Receiver for Reader {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        loop {
            if let Some(frame) = self.consumer.peek() {
                let payload = self.consumer.payload(frame.id).map_err(failed("reading a frame"))?;
                // SAFETY: the producers are processes of this program, and they write nothing that
                // they have committed.
                take(unsafe { payload.as_slice() });
                self.consumer.release(frame.id).map_err(failed("releasing a frame"))?;
                return Ok(Received::Frame);
            }
            match self.consumer.next_event() {
                Some(Event::LaneCorrupt { error, .. }) => {
                    return Err(failed("reading the ring")(error));
                }
                Some(Event::ProducerLeft { .. }) => self.left += 1,
                Some(_) => {}
                None if self.left >= self.producers => return Ok(Received::Closed),
                None => {
                    self.consumer
                        .wait(Duration::from_millis(200))
                        .map_err(failed("waiting for a frame"))?;
                }
            }
        }
    }
}
