//! A tapped stream: frames wait in a bounded queue for a thread that feeds the decoder and stores
//! them, so that no stream blocks another.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use throng_folder::Folder;
use throng_media::container::matroska;
use throng_observation::run::{DecodedRow, ParticipantId};
use throng_observation::{CodedFrame, TrackId};

use crate::ffmpeg::{DecodeError, Decoder, Feed, Output, Program, SIZE_GUESSED};
use crate::reference::References;
use crate::stream_meter::{FedFrame, StreamMeter};

/// Most frames that wait for the decoder: a few seconds, the time that it takes to start on a busy
/// machine.
const WAITING_MAX: usize = 128;

/// The options of a stream.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Decode with this.
    pub decode: Option<Program>,
    /// Compare the test card's pictures with these.
    pub references: Option<References>,
    /// Store it in this file.
    pub keep: Option<PathBuf>,
}

/// A stream that is decoded or stored, or both.
#[derive(Debug)]
pub struct TappedStream {
    meter: Arc<Mutex<StreamMeter>>,
    frames: Option<SyncSender<CodedFrame>>,
    feeder: Option<JoinHandle<Result<(), DecodeError>>>,
    needs_key_frame: bool,
    next_sequence: Option<u64>,
}

impl TappedStream {
    /// Starts with the first frame of a track.
    ///
    /// # Errors
    /// As [`Decoder::start`], or if the file cannot be created.
    pub fn begin(
        participant: ParticipantId,
        first: &CodedFrame,
        options: &StreamOptions,
    ) -> Result<Self, DecodeError> {
        let meter = Arc::new(Mutex::new(StreamMeter::new(
            participant,
            TrackId(first.track.0),
            first.codec,
        )));
        let decoder = options.decode.as_ref().map(|program| {
            let (seen, references, codec) =
                (Arc::clone(&meter), options.references.clone(), first.codec);
            Decoder::start(program, codec, SIZE_GUESSED, Output::Luma, move |picture| {
                let compare = |number| {
                    references.as_ref().and_then(|known| known.compare(codec, number, &picture))
                };
                lock(&seen).picture(&picture, unix_ns(), compare);
            })
        });
        let decoder = decoder.transpose()?;
        let file = options.keep.as_ref().map(|path| StreamFile::create(path, first)).transpose()?;
        let (give, given) = sync_channel(WAITING_MAX);
        let its_meter = Arc::clone(&meter);
        let feeder = std::thread::Builder::new()
            .name("feeder".into())
            .spawn(move || feed(&given, decoder, file, &its_meter))
            .map_err(|error| DecodeError::Io { program: "a thread".into(), error })?;
        let (frames, feeder) = (Some(give), Some(feeder));
        Ok(Self { meter, frames, feeder, needs_key_frame: true, next_sequence: None })
    }

    /// Frames of the stream were lost before its first.
    pub fn dropped_before(&mut self, frames: u64) {
        lock(&self.meter).dropped(frames);
    }

    /// Adds the next frame; `sequence` counts the stream's frames, including those dropped on the
    /// way. Never waits: without room, frames are dropped up to the next key frame.
    pub fn give(&mut self, sequence: u64, frame: CodedFrame) {
        let mut dropped = self.next_sequence.map_or(0, |next| sequence.saturating_sub(next));
        self.next_sequence = Some(sequence + 1);
        let is_break = frame.after_break;
        self.needs_key_frame |= dropped > 0;
        if self.needs_key_frame && !frame.key_frame {
            dropped += 1;
        } else if let Some(frames) = &self.frames {
            match frames.try_send(frame) {
                Ok(()) => self.needs_key_frame = false,
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    dropped += 1;
                    self.needs_key_frame = true;
                }
            }
        }
        let mut meter = lock(&self.meter);
        meter.dropped(dropped);
        if is_break {
            meter.broke();
        }
    }

    /// The figures since the last call.
    pub fn take(&self, second: i64) -> Option<DecodedRow> {
        lock(&self.meter).take(Instant::now(), second)
    }

    /// Waits until all frames are decoded and stored; then [`Self::take`] has the last figures.
    ///
    /// # Errors
    /// If the decoder failed, or the file could not be written.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        self.frames = None;
        match self.feeder.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

fn lock(meter: &Mutex<StreamMeter>) -> MutexGuard<'_, StreamMeter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn feed(
    frames: &Receiver<CodedFrame>,
    decoder: Option<(Decoder, Feed)>,
    mut file: Option<StreamFile>,
    meter: &Mutex<StreamMeter>,
) -> Result<(), DecodeError> {
    let (decoder, mut input) = decoder.unzip();
    for (index, frame) in (0..).zip(frames) {
        if let Some(file) = &mut file {
            file.frame(&frame)?;
        }
        if let Some(input) = &mut input {
            let (arrived_unix_ns, captured) = (frame.arrived_unix_ns, frame.captured);
            lock(meter).given(FedFrame { index, arrived_unix_ns, captured });
            input.frame(index, frame.key_frame, &frame.bytes)?;
        }
    }
    drop(input);
    if let Some(file) = file {
        file.finish()?;
    }
    decoder.map_or(Ok(()), Decoder::finish)
}

/// Makes a file in the folder of kept streams, which is none that a link leads to.
fn create(path: &Path) -> std::io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    Folder::open_itself(folder)?.create(name)
}

/// A stream's file.
struct StreamFile {
    path: PathBuf,
    file: BufWriter<File>,
    first_unix_ns: u64,
    buffer: Vec<u8>,
}

impl StreamFile {
    fn create(path: &Path, first: &CodedFrame) -> Result<Self, DecodeError> {
        let header =
            matroska::header(first.codec, SIZE_GUESSED).ok_or(DecodeError::Codec(first.codec))?;
        let made = create(path).map(BufWriter::new).and_then(|mut file| {
            file.write_all(&header)?;
            Ok(file)
        });
        let file = made.map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            first_unix_ns: first.arrived_unix_ns,
            buffer: Vec::new(),
        })
    }

    fn frame(&mut self, frame: &CodedFrame) -> Result<(), DecodeError> {
        let at_ms = frame.arrived_unix_ns.saturating_sub(self.first_unix_ns) / 1_000_000;
        self.buffer.clear();
        matroska::frame(at_ms, frame.key_frame, &frame.bytes, &mut self.buffer);
        self.file.write_all(&self.buffer).map_err(|error| failed(&self.path, error))
    }

    fn finish(mut self) -> Result<(), DecodeError> {
        self.file.flush().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &std::path::Path, error: std::io::Error) -> DecodeError {
    DecodeError::Io { program: path.display().to_string(), error }
}
