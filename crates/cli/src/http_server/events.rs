//! Server-sent events (HTML standard, 9.2): what one reader gets while it looks.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Most messages that wait for a reader; kernel and connection have more of them.
const WAITING_MAX: usize = 4;

/// A reader of a stream of events, as the site has it; the stream ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    messages: mpsc::Sender<Bytes>,
    /// Tells the connection that the reader was dropped.
    _here: oneshot::Sender<()>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// It waits for the reader.
    Yes,
    /// Too many wait: the reader is slower than the page.
    TooSlow,
    /// The reader has left.
    Left,
}

impl Reader {
    /// Whether nobody reads any more.
    pub(crate) fn has_left(&self) -> bool {
        self.messages.is_closed()
    }

    /// Sends a message, and waits for nobody.
    pub(crate) fn send(&self, message: &Bytes) -> SendOutcome {
        match self.messages.try_send(message.clone()) {
            Ok(()) => SendOutcome::Yes,
            Err(TrySendError::Full(_)) => SendOutcome::TooSlow,
            Err(TrySendError::Closed(_)) => SendOutcome::Left,
        }
    }
}

/// The same as the connection has it: the body of an answer.
#[derive(Debug)]
pub(crate) struct Events(mpsc::Receiver<Bytes>);

/// A stream of events, and when its reader is gone.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(super) events: Events,
    pub(super) gone: oneshot::Receiver<()>,
}

#[cfg(test)]
impl EventStream {
    /// What the connection sends.
    pub(crate) fn into_body(self) -> Events {
        self.events
    }
}

/// A stream and its reader.
pub(crate) fn stream() -> (Reader, EventStream) {
    let (messages, received) = mpsc::channel(WAITING_MAX);
    let (here, gone) = oneshot::channel();
    (Reader { messages, _here: here }, EventStream { events: Events(received), gone })
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let received = self.get_mut().0.poll_recv(context);
        received.map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_does_not_read_is_told_from_one_that_left() {
        let (reader, events) = stream();
        let message = Bytes::from_static(b"data: 1\n\n");
        for _ in 0..WAITING_MAX {
            assert_eq!(reader.send(&message), SendOutcome::Yes);
        }
        assert_eq!(reader.send(&message), SendOutcome::TooSlow);
        assert!(!reader.has_left());
        drop(events);
        assert_eq!(reader.send(&message), SendOutcome::Left);
        assert!(reader.has_left());
    }

    #[test]
    fn a_connection_knows_that_its_reader_was_dropped() {
        let (reader, mut events) = stream();
        assert_eq!(events.gone.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        drop(reader);
        assert_eq!(events.gone.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
