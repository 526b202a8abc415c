//! What waits to be sent on one channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

// An empty queue takes little memory; tokio's takes 1.5 kB as long as the channel is open.
use futures_channel::mpsc as queue;
use futures_util::StreamExt;

use super::Outgoing;

/// Most bytes waiting for a server that does not read. In bytes, since a participant may send
/// thousands of short messages at once: who joins a room of a chat asks for the vCard of each
/// occupant before the channel's task runs again.
const UNSENT_BYTES_MAX: usize = 8 << 20;

/// What a message takes besides its payload, bytes: those without one are bounded too.
const OVERHEAD_BYTES: usize = 64;

/// The server does not read.
#[derive(Debug, thiserror::Error)]
#[error("the server left more than {} MiB unread", UNSENT_BYTES_MAX >> 20)]
pub(super) struct QueueFull;

/// The participant's end.
pub(super) struct SendQueue {
    sender: queue::UnboundedSender<Outgoing>,
    bytes: Arc<AtomicUsize>,
}

/// The end of the channel's task.
pub(super) struct Unsent {
    receiver: queue::UnboundedReceiver<Outgoing>,
    bytes: Arc<AtomicUsize>,
}

/// An empty queue.
pub(super) fn send_queue() -> (SendQueue, Unsent) {
    let (sender, receiver) = queue::unbounded();
    let bytes = Arc::new(AtomicUsize::new(0));
    (SendQueue { sender, bytes: Arc::clone(&bytes) }, Unsent { receiver, bytes })
}

impl SendQueue {
    /// Appends `outgoing`; a channel whose task has ended takes nothing, and says so itself.
    pub(super) fn push(&self, outgoing: Outgoing) -> Result<(), QueueFull> {
        let len = outgoing.len() + OVERHEAD_BYTES;
        if self.bytes.fetch_add(len, Ordering::Relaxed) + len > UNSENT_BYTES_MAX {
            return Err(QueueFull);
        }
        let _ = self.sender.unbounded_send(outgoing);
        Ok(())
    }
}

impl Unsent {
    /// The next message; `None` once the participant has closed the channel.
    pub(super) async fn next(&mut self) -> Option<Outgoing> {
        let outgoing = self.receiver.next().await?;
        self.taken(&outgoing);
        Some(outgoing)
    }

    /// The next message, if there is one now.
    pub(super) fn try_next(&mut self) -> Option<Outgoing> {
        let outgoing = self.receiver.try_recv().ok()?;
        self.taken(&outgoing);
        Some(outgoing)
    }

    fn taken(&self, outgoing: &Outgoing) {
        self.bytes.fetch_sub(outgoing.len() + OVERHEAD_BYTES, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use throng_protocol::participant::Message;

    use super::*;

    #[test]
    fn thousands_of_short_messages_wait_and_a_server_that_never_reads_is_noticed() {
        let (sender, mut unsent) = send_queue();
        let asks = || Outgoing::Message(Message::Text("<iq/>".repeat(40)));
        (0..3_000).for_each(|_| sender.push(asks()).unwrap());
        assert_eq!(std::iter::from_fn(|| unsent.try_next()).count(), 3_000);
        let pieces =
            (0..100).take_while(|_| sender.push(Outgoing::Bytes(vec![0; 1 << 20])).is_ok());
        assert_eq!(
            pieces.count(),
            7,
            "eight of them with what they take besides are more than 8 MiB"
        );
        assert_eq!(QueueFull.to_string(), "the server left more than 8 MiB unread");
    }

    #[test]
    fn empty_messages_are_bounded_too() {
        let (sender, _unsent) = send_queue();
        assert!((0..1_000_000).any(|_| sender.push(Outgoing::Bytes(Vec::new())).is_err()));
    }
}
