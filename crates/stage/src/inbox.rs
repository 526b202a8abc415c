//! The queue of a worker: bursts to send and commands to execute, from other threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use throng_net::Waker;

use crate::config::Card;
use crate::peer::{NegotiatedMedia, Peer, Role};
use crate::source::{Burst, Channel, Codec};

/// How far a worker may lag behind the media clock before frames for it are dropped.
const LAG_MAX: Duration = Duration::from_millis(500);

/// A new session of an answered offer.
pub(crate) struct NewSession {
    pub(crate) id: String,
    pub(crate) role: Role,
    pub(crate) card: Card,
    pub(crate) channel: Channel,
    pub(crate) peer: Peer,
    pub(crate) local_ufrag: String,
    pub(crate) agreed: Vec<NegotiatedMedia>,
    /// Planted memory that it holds while it lasts.
    pub(crate) ballast: Vec<u8>,
}

/// A command to a worker.
pub(crate) enum WorkerCommand {
    Join(Box<NewSession>),
    Leave(String),
    /// A candidate of the session's peer.
    Candidate(String, String),
    /// The video codec of a stream's publisher, and whether it has audio; `None` when it has gone.
    Live(Channel, Option<Live>),
    /// Request a key frame of the stream's publisher, which is on this worker.
    KeyFrame(Channel),
    Stop,
}

/// What a publisher publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) video: Option<Codec>,
    pub(crate) audio: bool,
}

/// A worker's queue.
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    pub(crate) waker: Waker,
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<WorkerCommand>,
    bursts: VecDeque<Arc<Burst>>,
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { queue: Mutex::default(), waker: Waker::new()? })
    }

    pub(crate) fn send(&self, command: WorkerCommand) {
        self.queue().commands.push_back(command);
        self.waker.wake();
    }

    /// False when the worker lags too far behind and the burst is dropped.
    pub(crate) fn play(&self, burst: Arc<Burst>, now: Instant) -> bool {
        let mut queue = self.queue();
        if queue
            .bursts
            .front()
            .is_some_and(|oldest| now.saturating_duration_since(oldest.captured_at) > LAG_MAX)
        {
            return false;
        }
        queue.bursts.push_back(burst);
        drop(queue);
        self.waker.wake();
        true
    }

    pub(crate) fn take_commands(&self) -> VecDeque<WorkerCommand> {
        std::mem::take(&mut self.queue().commands)
    }

    /// One at a time, so that [`Inbox::play`] sees how long the rest has waited.
    pub(crate) fn take_burst(&self) -> Option<Arc<Burst>> {
        self.queue().bursts.pop_front()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use throng_media::rtp::NtpTime;

    #[test]
    fn a_worker_that_lags_loses_the_newest_frames() {
        let (inbox, start) = (Inbox::new().unwrap(), Instant::now());
        let play = |ms| {
            let at = start + Duration::from_millis(ms);
            let burst = Burst {
                source: Source::CardOpus,
                first_packet: ms,
                timestamp: 0,
                key_frame: true,
                marker: false,
                payloads: Vec::new(),
                captured: NtpTime(0),
                captured_at: at,
            };
            inbox.play(Arc::new(burst), at)
        };
        assert!([0, 100, 500].into_iter().all(play));
        assert!(!play(501));
        assert_eq!(inbox.take_burst().unwrap().first_packet, 0);
        assert!(play(600));
        let rest: Vec<_> =
            std::iter::from_fn(|| inbox.take_burst()).map(|burst| burst.first_packet).collect();
        assert_eq!(rest, [100, 500, 600]);
    }
}
