//! iceoryx2, publish-subscribe without loss: the producer's copy goes into a loaned sample, the
//! consumer uses it in place. A notification wakes the consumer for each frame; without it the
//! consumer would burn a core by polling.

use core::time::Duration;

use iceoryx2::port::backpressure_strategy::BackpressureStrategy;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};

use super::{End, Outgoing, Received, Receiver, Sender, Side, TransportError, Wiring};

/// Samples that may wait for the consumer.
const QUEUE_FRAMES: usize = 4;
/// Delay before the first frames are offered again to a consumer that has not connected yet, and
/// the number of retries.
const UNCONNECTED_PAUSE: Duration = Duration::from_millis(1);
const OFFERS_MAX: u32 = 15_000;

type Service = ipc_threadsafe::Service;

pub(super) fn wire(wiring: &mut Wiring) -> Result<(), TransportError> {
    // Service names are global on the machine; process id and count make this measurement's name
    // unique.
    static MEASUREMENTS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    let name = match wiring.consumer.first().and_then(|end| end.address.clone()) {
        Some(name) => name,
        None => {
            let count = MEASUREMENTS.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            let name = format!("throng-ipc-{}-{count}", std::process::id());
            wiring.consumer.push(End { fd: None, address: Some(name.clone()) });
            name
        }
    };
    wiring.producers.push(End { fd: None, address: Some(name) });
    Ok(())
}

fn failed(error: impl core::fmt::Display) -> TransportError {
    super::failed("using iceoryx2", error)
}

fn node() -> Result<Node<Service>, TransportError> {
    set_log_level(LogLevel::Error);
    NodeBuilder::new().create::<Service>().map_err(failed)
}

fn name(side: &Side) -> Result<ServiceName, TransportError> {
    ServiceName::new(side.end()?.address()?).map_err(failed)
}

type Frames = publish_subscribe::PortFactory<Service, [u8], ()>;
type Wakeups = event::PortFactory<Service>;

/// What both sides open: the frames, and the notifications of them.
fn open(side: &Side) -> Result<(Node<Service>, Frames, Wakeups), TransportError> {
    let (node, name) = (node()?, name(side)?);
    let frames = node
        .service_builder(&name)
        .publish_subscribe::<[u8]>()
        .enable_safe_overflow(false)
        .subscriber_max_buffer_size(QUEUE_FRAMES)
        .max_publishers(usize::from(side.producers).max(1))
        .open_or_create()
        .map_err(failed)?;
    let wakeups = node.service_builder(&name).event().open_or_create().map_err(failed)?;
    Ok((node, frames, wakeups))
}

struct Loans {
    publisher: Publisher<Service, [u8], ()>,
    notifier: Notifier<Service>,
    _node: Node<Service>,
}

pub(super) fn open_sender(side: &Side) -> Result<Box<dyn Sender>, TransportError> {
    let (node, frames, wakeups) = open(side)?;
    let publisher = frames
        .publisher_builder()
        .initial_max_slice_len(side.frame_bytes_max)
        .max_loaned_samples(1)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()
        .map_err(failed)?;
    let notifier = wakeups.notifier_builder().create().map_err(failed)?;
    Ok(Box::new(Loans { publisher, notifier, _node: node }))
}

impl Loans {
    /// Publishes a copy of `bytes`; returns the number of consumers that get it.
    fn offer(&self, bytes: &[u8]) -> Result<usize, TransportError> {
        let sample = self.publisher.loan_slice_uninit(bytes.len()).map_err(failed)?;
        sample.write_from_slice(bytes).send().map_err(failed)
    }
}

impl Sender for Loans {
    fn send(&mut self, frame: &Outgoing<'_>) -> Result<(), TransportError> {
        // Until the consumer has opened the connection, which it does when it polls for a sample,
        // the queue fills once and later samples are delivered to no consumer, whatever the
        // strategy.
        let mut offers = 1;
        while self.offer(frame.bytes)? == 0 {
            if offers == OFFERS_MAX {
                return Err(failed("no consumer takes the frames"));
            }
            offers += 1;
            std::thread::sleep(UNCONNECTED_PAUSE);
        }
        self.notifier.notify().map_err(failed)?;
        Ok(())
    }
}

struct Samples {
    subscriber: Subscriber<Service, [u8], ()>,
    listener: Listener<Service>,
    _node: Node<Service>,
}

pub(super) fn open_receiver(side: &Side) -> Result<Vec<Box<dyn Receiver>>, TransportError> {
    let (node, frames, wakeups) = open(side)?;
    let subscriber = frames.subscriber_builder().create().map_err(failed)?;
    let listener = wakeups.listener_builder().create().map_err(failed)?;
    Ok(vec![Box::new(Samples { subscriber, listener, _node: node })])
}

impl Receiver for Samples {
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Received, TransportError> {
        loop {
            if let Some(sample) = self.subscriber.receive().map_err(failed)? {
                take(sample.payload());
                return Ok(Received::Frame);
            }
            // A notification that arrived before the wait ends it at once.
            self.listener.timed_wait(|_| {}, Duration::from_millis(50)).map_err(failed)?;
        }
    }
}
