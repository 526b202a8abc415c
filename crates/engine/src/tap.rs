//! The tap: coded frames of a few participants go through shared memory to another process, which
//! decodes them. The run never waits for that process: a frame without room is dropped, as are all
//! until the next key frame, and the ring counts them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use throng_observation::run::ParticipantId;
use throng_observation::{Codec, CodedFrame, TrackId};
use throng_ring::{Flags, FrameInfo, Policy, Producer, RingError};

/// The socket in the run folder where the decoding process requests the ring.
pub const TAP_SOCKET: &str = "tap.sock";

/// How often the listener checks for connections and for the end of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Why there is no tap.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The socket could not be made.
    #[error("cannot listen at {path}: {error}")]
    Listen {
        /// The path.
        path: String,
        /// The error.
        error: io::Error,
    },
}

/// The stream number of a participant's track in the ring: 20 bits of participant, 12 of track. The
/// ring drops frames until a key frame by this number.
#[must_use]
pub fn stream_number(participant: ParticipantId, track: u16) -> u32 {
    participant.0 << 12 | u32::from(track & 0xfff)
}

/// The counts of frames of tapped participants since a reader first attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Frames that were offered.
    pub offered: u64,
    /// Lost: the ring had no room, or had none for a frame before and no key frame followed.
    pub no_room: u64,
    /// Lost: larger than half the ring.
    pub too_large: u64,
    /// Lost: the reader had ended.
    pub reader_gone: u64,
    /// Lost: their thread found all producer slots of the ring taken.
    pub no_producer_slot: u64,
    /// How many such threads there were.
    pub threads_without_slot: u32,
    /// Lost frames by track, with their codec.
    pub lost: BTreeMap<(ParticipantId, TrackId), (Codec, u64)>,
}

impl TapCounts {
    /// Lost for any reason.
    #[must_use]
    pub fn lost_frames(&self) -> u64 {
        self.no_room + self.too_large + self.reader_gone + self.no_producer_slot
    }

    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.no_room += other.no_room;
        self.too_large += other.too_large;
        self.reader_gone += other.reader_gone;
        self.no_producer_slot += other.no_producer_slot;
        self.threads_without_slot += other.threads_without_slot;
        for (track, (codec, frames)) in &other.lost {
            self.lost.entry(*track).or_insert((*codec, 0)).1 += frames;
        }
    }
}

/// Passes the ring to the decoding process. One reader at a time: a later one replaces it.
#[derive(Debug)]
pub struct Tap {
    current: Mutex<Option<Producer>>,
    counts: Mutex<TapCounts>,
    /// Counts readers, so that threads notice a new one without the lock.
    epoch: AtomicU32,
}

impl Tap {
    /// Listens in `folder` until the tap is dropped.
    ///
    /// # Errors
    /// [`TapError::Listen`].
    pub fn listen(folder: &Path) -> Result<Arc<Self>, TapError> {
        let path = folder.join(TAP_SOCKET);
        let listener = bind(folder)
            .map_err(|error| TapError::Listen { path: path.display().to_string(), error })?;
        let tap = Arc::new(Self {
            current: Mutex::new(None),
            counts: Mutex::default(),
            epoch: AtomicU32::new(0),
        });
        let weak = Arc::downgrade(&tap);
        let accept = move || {
            while let Some(tap) = weak.upgrade() {
                match listener.accept() {
                    Ok((socket, _)) => tap.attach(socket),
                    Err(_) => {
                        drop(tap);
                        thread::sleep(POLL_INTERVAL);
                    }
                }
            }
            let _ = std::fs::remove_file(&path);
        };
        let spawned = thread::Builder::new().name("tap".into()).spawn(accept);
        spawned.map_err(|error| TapError::Listen { path: TAP_SOCKET.into(), error })?;
        Ok(tap)
    }

    /// Whether a reader is attached.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.lock().as_ref().is_some_and(Producer::has_consumer)
    }

    /// The counts of threads that have ended.
    #[must_use]
    pub fn counts(&self) -> TapCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Producer>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(&self, socket: std::os::unix::net::UnixStream) {
        // A connection that sends nothing blocks others for no longer than this.
        let patience = Some(Duration::from_secs(2));
        if socket.set_nonblocking(false).and_then(|()| socket.set_read_timeout(patience)).is_err() {
            return;
        }
        match Producer::join(socket) {
            Ok(mut producer) => {
                producer.set_policy(Policy::DropUntilKeyframe);
                *self.lock() = Some(producer);
                self.epoch.fetch_add(1, Ordering::Release);
            }
            Err(error) => {
                tracing::warn!("a connection to the tap was not a ring's consumer: {error}");
            }
        }
    }
}

/// Binds through the folder's descriptor: a socket path has at most 107 bytes, and the run folder's
/// may be longer.
fn bind(folder: &Path) -> io::Result<UnixListener> {
    let opened = File::open(folder)?;
    let short = format!("/proc/self/fd/{}/{TAP_SOCKET}", opened.as_raw_fd());
    let listener = UnixListener::bind(short)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A thread's producer for the tap. Its counts are added to the tap's when it is dropped.
#[derive(Debug)]
pub(crate) struct TapSender {
    tap: Arc<Tap>,
    epoch: u32,
    state: TapSenderState,
    counts: TapCounts,
}

#[derive(Debug)]
enum TapSenderState {
    /// No reader has attached yet.
    Unattached,
    Open(Producer),
    /// The reader has ended.
    ReaderGone,
    /// The ring had no slot for another producer.
    NoProducerSlot,
}

impl TapSender {
    pub(crate) fn new(tap: Arc<Tap>) -> Self {
        Self { tap, epoch: 0, state: TapSenderState::Unattached, counts: TapCounts::default() }
    }

    /// Sends a frame of participant `id`, if a reader is attached and the ring has room.
    pub(crate) fn send(&mut self, id: u32, frame: &CodedFrame) {
        let epoch = self.tap.epoch.load(Ordering::Acquire);
        if epoch != self.epoch {
            self.epoch = epoch;
            self.state = self.open();
        }
        let reason = match &mut self.state {
            TapSenderState::Unattached => return,
            TapSenderState::ReaderGone => Some(&mut self.counts.reader_gone),
            TapSenderState::NoProducerSlot => Some(&mut self.counts.no_producer_slot),
            TapSenderState::Open(producer) => match producer.send(&frame.bytes, &info(id, frame)) {
                Ok(true) => None,
                Ok(false) => Some(&mut self.counts.no_room),
                Err(RingError::FrameTooLarge { .. }) => Some(&mut self.counts.too_large),
                // Any other error means that the reader has ended.
                Err(_) => {
                    self.state = TapSenderState::ReaderGone;
                    Some(&mut self.counts.reader_gone)
                }
            },
        };
        self.counts.offered += 1;
        if let Some(reason) = reason {
            *reason += 1;
            let track = (ParticipantId(id), frame.track);
            self.counts.lost.entry(track).or_insert((frame.codec, 0)).1 += 1;
        }
    }

    /// A producer of this thread for the latest reader's ring.
    fn open(&mut self) -> TapSenderState {
        match self.tap.lock().as_ref().map(Producer::try_clone) {
            None => TapSenderState::Unattached,
            Some(Ok(producer)) => TapSenderState::Open(producer),
            Some(Err(error)) => {
                tracing::warn!("frames of this thread's tapped participants are lost: {error}");
                self.counts.threads_without_slot += 1;
                TapSenderState::NoProducerSlot
            }
        }
    }
}

impl Drop for TapSender {
    fn drop(&mut self) {
        self.tap.counts.lock().unwrap_or_else(PoisonError::into_inner).add(&self.counts);
    }
}

fn info(id: u32, frame: &CodedFrame) -> FrameInfo {
    let key = if frame.key_frame { Flags::KEYFRAME } else { Flags::default() };
    let after_break = if frame.after_break { Flags::DISCONTINUITY } else { Flags::default() };
    let (captured_ns, basis) = frame.captured.unzip();
    FrameInfo {
        stream: stream_number(ParticipantId(id), frame.track.0),
        kind: throng_observation::tap_kind(frame.codec, basis),
        flags: Flags(key.0 | after_break.0),
        timestamp_ns: frame.arrived_unix_ns,
        user_data: captured_ns.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use throng_observation::CaptureBasis;
    use throng_ring::{Consumer, DropReason, RingOptions};

    fn attach(folder: &Path, options: &RingOptions) -> Consumer {
        let mut consumer = Consumer::new().unwrap();
        consumer.accept(UnixStream::connect(folder.join(TAP_SOCKET)).unwrap(), options).unwrap();
        consumer
    }

    fn until(what: impl Fn() -> bool) {
        let given_up_at = Instant::now() + Duration::from_secs(5);
        while !what() {
            assert!(Instant::now() < given_up_at);
            thread::yield_now();
        }
    }

    fn frame(number: u64, key_frame: bool) -> CodedFrame {
        CodedFrame {
            track: TrackId(3),
            codec: Codec::Vp8,
            key_frame,
            after_break: false,
            arrived_unix_ns: number,
            captured: Some((number + 1, CaptureBasis::Mark)),
            bytes: vec![number as u8; 9_000],
        }
    }

    #[test]
    fn frames_go_to_whoever_came_last_and_never_wait() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a-run-folder-with-a-long-name".repeat(5));
        std::fs::create_dir(&deep).unwrap();
        let long = Tap::listen(&deep).unwrap();
        assert!(deep.join(TAP_SOCKET).exists());
        drop(long);
        until(|| !deep.join(TAP_SOCKET).exists());

        let tap = Tap::listen(folder.path()).unwrap();
        let mut line = TapSender::new(Arc::clone(&tap));
        line.send(0, &frame(0, true));
        assert!(!tap.is_attached(), "without a reader, which is no error");

        let options = RingOptions::with_size(65_536, 8);
        let mut consumer = attach(folder.path(), &options);
        until(|| tap.is_attached());
        for number in 1..=20 {
            line.send(7, &frame(number, number == 1));
        }
        let mut taken = 0;
        while let Some(got) = consumer.peek() {
            taken += 1;
            assert_eq!(
                (got.info.stream, got.info.timestamp_ns, got.info.user_data),
                (7 << 12 | 3, taken, taken + 1)
            );
            assert_eq!(
                throng_observation::from_tap_kind(got.info.kind),
                (Codec::Vp8, Some(CaptureBasis::Mark))
            );
            consumer.release(got.id).unwrap();
        }
        assert_eq!(taken, 7, "as many as the ring has room for");
        // Room again, but the stream is broken until the next key frame.
        line.send(7, &frame(21, false));
        assert!(consumer.peek().is_none());
        line.send(7, &frame(22, true));
        let got = consumer.peek().unwrap();
        assert!(got.info.flags.contains(Flags::KEYFRAME) && got.info.timestamp_ns == 22);
        let lane = consumer.lanes().next().unwrap();
        let stats = consumer.stats(lane).unwrap();
        let dropped = |reason| stats.producers.iter().map(|row| row.dropped(reason)).sum::<u64>();
        assert_eq!(dropped(DropReason::Full) + dropped(DropReason::UntilKeyframe), 14, "{stats:?}");

        let mut second = attach(folder.path(), &options);
        until(|| tap.epoch.load(Ordering::Acquire) == 2);
        line.send(7, &frame(23, true));
        assert_eq!(second.peek().unwrap().info.timestamp_ns, 23);
    }
    #[test]
    fn lost_frames_are_counted_by_reason_and_track() {
        let folder = tempfile::tempdir().unwrap();
        let tap = Tap::listen(folder.path()).unwrap();
        let mut line = TapSender::new(Arc::clone(&tap));
        line.send(7, &frame(0, true));
        let consumer = attach(folder.path(), &RingOptions::with_size(65_536, 8));
        until(|| tap.is_attached());
        // No reader: seven frames fit, the next does not, and those after it wait for a key frame.
        (1..=10).for_each(|number| line.send(7, &frame(number, number == 1)));
        line.send(7, &CodedFrame { bytes: vec![0; 40_000], ..frame(11, true) });
        drop(consumer);
        // The ring checks for its consumer only now and then.
        (0..100).for_each(|number| line.send(8, &frame(number, true)));
        assert_eq!(tap.counts(), TapCounts::default(), "a thread reports when it ends");
        drop(line);
        let counts = tap.counts();
        assert_eq!(
            (counts.offered, counts.lost_frames(), counts.too_large),
            (111, 104, 1),
            "{counts:?}"
        );
        assert!(counts.no_room >= 3 && counts.reader_gone >= 30, "{counts:?}");
        let lost = |id| counts.lost.get(&(ParticipantId(id), TrackId(3))).copied();
        assert_eq!((lost(7), lost(8)), (Some((Codec::Vp8, 4)), Some((Codec::Vp8, 100))));
    }

    #[test]
    fn a_thread_that_finds_the_ring_s_places_taken_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let tap = Tap::listen(folder.path()).unwrap();
        let _consumer = attach(folder.path(), &RingOptions::with_size(1 << 20, 256));
        until(|| tap.is_attached());
        // The tap itself has one of the 32.
        let mut lines: Vec<_> = (0..33).map(|_| TapSender::new(Arc::clone(&tap))).collect();
        for line in &mut lines {
            (0..2).for_each(|number| line.send(1, &frame(number, true)));
        }
        drop(lines);
        let counts = tap.counts();
        assert_eq!(
            (counts.threads_without_slot, counts.no_producer_slot, counts.offered),
            (2, 4, 66),
            "{counts:?}"
        );
    }
}
