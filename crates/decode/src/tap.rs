//! The reader of a run's tap: takes the frames from its ring and starts a decoder for each stream.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use throng_observation::run::{DecodedRow, ParticipantId};
use throng_observation::{CodedFrame, TrackId, from_tap_kind};
use throng_ring::{Consumer, DropReason, Event, Flags, Frame, LaneStats, RingError, RingOptions};

use crate::ffmpeg::{DecodeError, Program};
use crate::reference::References;
use crate::stream::{StreamOptions, TappedStream};

/// The folder of the stored streams within a run folder.
pub const KEPT_FOLDER: &str = "tap";
/// Size of the ring: more than a second of several streams.
const ARENA_BYTES: usize = 8 << 20;
const DESCRIPTORS: u32 = 2_048;
/// Interval of the checks that do not depend on frames.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

/// The options of a tap's reader.
#[derive(Clone, Debug)]
pub struct TapOptions {
    /// Decode with this; `None` only stores.
    pub decode: Option<Program>,
    /// Store the coded streams in the run folder.
    pub keep: bool,
    /// Compare pictures of the test card with their source.
    pub ssim: bool,
    /// The number of participants, the first ones; `None`: all tapped ones.
    pub participants: Option<usize>,
    /// Most streams; further ones are skipped and counted.
    pub streams_max: usize,
    /// How long to wait for the run to listen.
    pub patience: Duration,
}

/// Why a tap could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// No run listens there.
    #[error(
        "no run with a tap is in progress in {folder}: start one with `throng run … --tap 3 {}`, \
         with --set tap.decode=false if it is to start no reader of its own ({error})",
        throng_observation::shell::flag("--output", .folder)
    )]
    NoRun {
        /// The run folder.
        folder: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// An error of the ring.
    #[error("the tap's ring: {0}")]
    Ring(#[from] RingError),
    /// An error of the decoder.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// The result of reading a tap.
#[derive(Debug, Default)]
pub struct TapResult {
    /// Rows with the start of their second, microseconds since the Unix epoch; their `second` is
    /// not set yet.
    pub rows: Vec<(i64, DecodedRow)>,
    /// Errors of single streams.
    pub problems: Vec<String>,
    /// Streams that were decoded or stored.
    pub streams: usize,
    /// Streams beyond the limits, which were skipped.
    pub streams_skipped: usize,
    /// The ring's own counts at the end.
    pub ring: Option<LaneStats>,
}

/// Reads frames until the run is over or `is_stopped`.
///
/// # Errors
/// See [`TapError`]. Errors of single streams are in the result.
pub fn read(
    folder: &Path,
    options: &TapOptions,
    is_stopped: &dyn Fn() -> bool,
) -> Result<TapResult, TapError> {
    if let Some(program) = &options.decode {
        program.version()?;
    }
    let socket = connect(folder, options.patience)?;
    let mut consumer = Consumer::new()?;
    consumer.accept(socket, &RingOptions::with_size(ARENA_BYTES, DESCRIPTORS))?;
    let mut reader = Reader::new(folder, options);
    while !is_stopped() && !reader.is_over {
        consumer.wait(LOOK_EVERY)?;
        while let Some(frame) = consumer.peek() {
            let bytes = consumer.payload(frame.id)?.to_vec();
            consumer.release(frame.id)?;
            reader.frame(&frame, bytes);
        }
        while let Some(event) = consumer.next_event() {
            reader.happened(event)?;
        }
        if reader.second_began.elapsed() >= SECOND {
            reader.take_rows();
        }
    }
    if reader.tapped.ring.is_none()
        && let Some(lane) = consumer.lanes().next()
    {
        reader.tapped.ring = consumer.stats(lane).ok();
    }
    Ok(reader.finish())
}

fn connect(folder: &Path, patience: Duration) -> Result<UnixStream, TapError> {
    let given_up_at = Instant::now() + patience;
    let attempt = || {
        let opened = File::open(folder)?;
        // The path to a socket may have at most 107 bytes; a run folder's may be longer.
        UnixStream::connect(format!("/proc/self/fd/{}/tap.sock", opened.as_raw_fd()))
    };
    loop {
        match attempt() {
            Ok(socket) => return Ok(socket),
            Err(_) if Instant::now() < given_up_at => std::thread::sleep(LOOK_EVERY),
            Err(error) => {
                return Err(TapError::NoRun { folder: folder.display().to_string(), error });
            }
        }
    }
}

struct Reader<'a> {
    folder: &'a Path,
    options: &'a TapOptions,
    references: Option<References>,
    /// By stream number; `None` for skipped streams.
    streams: BTreeMap<u32, Option<TappedStream>>,
    /// Frames before a stream's first key frame, which a decoder cannot use: not counted as lost.
    early: BTreeMap<u32, u64>,
    participants: Vec<u32>,
    second_began: Instant,
    second_began_unix_us: i64,
    tapped: TapResult,
    is_over: bool,
}

impl<'a> Reader<'a> {
    fn new(folder: &'a Path, options: &'a TapOptions) -> Self {
        let references = options.decode.as_ref().filter(|_| options.ssim).map(References::new);
        Self {
            folder,
            options,
            references,
            streams: BTreeMap::new(),
            early: BTreeMap::new(),
            participants: Vec::new(),
            second_began: Instant::now(),
            second_began_unix_us: unix_us(),
            tapped: TapResult::default(),
            is_over: false,
        }
    }

    fn frame(&mut self, frame: &Frame, bytes: Vec<u8>) {
        let (codec, basis) = from_tap_kind(frame.info.kind);
        let coded = CodedFrame {
            track: TrackId((frame.info.stream & 0xfff) as u16),
            codec,
            key_frame: frame.info.flags.contains(Flags::KEYFRAME),
            after_break: frame.info.flags.contains(Flags::DISCONTINUITY),
            arrived_unix_ns: frame.info.timestamp_ns,
            captured: basis.map(|basis| (frame.info.user_data, basis)),
            bytes,
        };
        if !self.streams.contains_key(&frame.info.stream) {
            // A decoder can only start with a key frame.
            if !coded.key_frame {
                *self.early.entry(frame.info.stream).or_default() += 1;
                return;
            }
            let mut stream = self.begin(frame.info.stream, &coded);
            if let Some(stream) = &mut stream {
                let early = self.early.remove(&frame.info.stream).unwrap_or(0);
                stream.dropped_before(frame.sequence.saturating_sub(early));
            }
            self.streams.insert(frame.info.stream, stream);
        }
        if let Some(Some(stream)) = self.streams.get_mut(&frame.info.stream) {
            stream.give(frame.sequence, coded);
        }
    }

    fn begin(&mut self, number: u32, first: &CodedFrame) -> Option<TappedStream> {
        let participant = number >> 12;
        if !self.participants.contains(&participant) {
            self.participants.push(participant);
        }
        let place = self.participants.iter().position(|known| *known == participant);
        let is_chosen =
            self.options.participants.is_none_or(|most| place.is_some_and(|place| place < most));
        if !is_chosen || self.tapped.streams >= self.options.streams_max {
            self.tapped.streams_skipped += 1;
            return None;
        }
        let keep = self.options.keep.then(|| {
            let folder = self.folder.join(KEPT_FOLDER);
            // If this fails, creating the file fails too and reports why.
            let _ = std::fs::create_dir_all(&folder);
            folder.join(format!("{participant}-{}.mkv", first.track.0))
        });
        let (decode, references) = (self.options.decode.clone(), self.references.clone());
        let options = StreamOptions { decode, references, keep };
        match TappedStream::begin(ParticipantId(participant), first, &options) {
            Ok(stream) => {
                self.tapped.streams += 1;
                Some(stream)
            }
            Err(error) => {
                self.note_error(number, &error);
                None
            }
        }
    }

    fn note_error(&mut self, number: u32, error: &DecodeError) {
        if self.tapped.problems.len() < 16 {
            let problem =
                format!("participant {}, track {}: {error}", number >> 12, number & 0xfff);
            self.tapped.problems.push(problem);
        }
    }

    fn happened(&mut self, event: Event) -> Result<(), TapError> {
        match event {
            Event::LaneCorrupt { error, .. } => return Err(error.into()),
            Event::LaneEnded { stats, .. } => {
                self.tapped.ring = Some(stats);
                self.is_over = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_rows(&mut self) {
        let began = self.second_began_unix_us;
        // Relative to the previous second, so that lateness does not accumulate.
        self.second_began += SECOND;
        if self.second_began.elapsed() > SECOND {
            self.second_began = Instant::now();
        }
        let since_us = i64::try_from(self.second_began.elapsed().as_micros()).unwrap_or(0);
        self.second_began_unix_us = unix_us() - since_us;
        let rows = self.streams.values().flatten().filter_map(|stream| stream.take(0));
        self.tapped.rows.extend(rows.map(|row| (began, row)));
    }

    fn finish(mut self) -> TapResult {
        let mut failed = Vec::new();
        for (number, stream) in &mut self.streams {
            if let Some(stream) = stream
                && let Err(error) = stream.finish()
            {
                failed.push((*number, error));
            }
        }
        failed.iter().for_each(|(number, error)| self.note_error(*number, error));
        self.take_rows();
        self.tapped
    }
}

impl TapResult {
    /// The ring's drops by reason, as a sentence; `None` if there were none.
    #[must_use]
    pub fn ring_drops(&self) -> Option<String> {
        let ring = self.ring.as_ref()?;
        let dropped: Vec<(u64, &str)> = DropReason::ALL
            .into_iter()
            .map(|reason| (ring.dropped(reason), reason.name()))
            .filter(|(frames, _)| *frames > 0)
            .collect();
        let all: u64 = dropped.iter().map(|(frames, _)| frames).sum();
        let of = all + ring.committed_frames();
        let reasons: Vec<String> =
            dropped.iter().map(|(frames, reason)| format!("{frames} {reason}")).collect();
        (all > 0).then(|| format!("the ring dropped {all} of {of} frames ({})", reasons.join(", ")))
    }
}

fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
