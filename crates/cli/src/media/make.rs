//! `throng media make`: the files of a catalogue, encoded in parallel.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use throng_observation::units;

use super::catalogue::{self, Entry};
use super::encoder::{self, Ffmpeg};
use super::encoding::Encoding;
use crate::args::MediaMake;
use crate::console::{CliError, Exit, Interrupt, print, say};

/// How far a bitrate may be from what was asked for, as a ratio.
const TOLERANCE: f64 = 0.02;
/// How often a file is encoded until its bitrate is right.
const TRIES: u32 = 4;

pub(crate) fn make(command: &MediaMake) -> Result<Exit, CliError> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let encoding = Encoding::of(command, cores)?;
    let ffmpeg =
        Ffmpeg::with_encoders(&command.ffmpeg, [encoding.encoder(), encoding.audio_encoder()])?;
    let folder = command.output.as_path();
    let refused = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("--output {}: {why}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| refused(&error))?;
    if folder.join(catalogue::NAME).exists() {
        return Err(refused(&"there is a catalogue already: name another folder, or remove it"));
    }
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    let workers = cores.min(command.count);
    let made = Making {
        encoding: &encoding,
        ffmpeg,
        folder,
        interrupt,
        count: command.count,
        next: AtomicU32::new(1),
        video_bits_per_s: AtomicU64::new(encoding.video_bits_per_s()),
        done: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(|| made.work())).collect();
        let ended = running
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<_>>().into_iter().collect::<anyhow::Result<()>>()
    })
    .map_err(CliError::invalid)?;
    if made.interrupt.is_set() {
        say(&format!("interrupted: there is no {} in {}", catalogue::NAME, folder.display()));
        return Ok(Exit::Interrupted);
    }
    let mut files = made.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort_by(|a, b| a.file.cmp(&b.file));
    catalogue::write(folder, &encoding, &files)
        .with_context(|| folder.join(catalogue::NAME).display().to_string())
        .map_err(CliError::invalid)?;
    Ok(conclude(&files, &encoding, folder))
}

/// Prints what was made; a bitrate that could not be reached is a miss.
fn conclude(files: &[Entry], encoding: &Encoding, folder: &Path) -> Exit {
    let off = files.iter().map(|file| file.off(encoding.bits_per_s));
    let worst = off.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    print(&format!(
        "{}, {}, in {}; the bitrate farthest from {} is off by {:+.1} %\n",
        units::count(files.len() as u64, "files"),
        units::bytes(bytes as f64),
        folder.join(catalogue::NAME).display(),
        units::bit_rate(encoding.bits_per_s as f64),
        worst * 1e2,
    ));
    if worst.abs() <= TOLERANCE {
        return Exit::Met;
    }
    let (width, height) = encoding.size;
    say(&format!(
        "{} cannot be held to that bitrate at {width}x{height} and {} fps; choose another --size \
         or --fps",
        encoding.codec.key(),
        encoding.fps
    ));
    Exit::Missed
}

/// What the workers share.
struct Making<'a> {
    encoding: &'a Encoding,
    ffmpeg: Ffmpeg,
    folder: &'a Path,
    interrupt: Interrupt,
    count: u32,
    /// The number of the file that is made next.
    next: AtomicU32,
    /// The video's bitrate with which the last file came out right.
    video_bits_per_s: AtomicU64,
    done: Mutex<Vec<Entry>>,
}

impl Making<'_> {
    /// Makes files until there are enough, or until a signal. After an error of one worker no
    /// further file is begun.
    fn work(&self) -> anyhow::Result<()> {
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number > self.count || self.interrupt.is_set() {
                return Ok(());
            }
            let name = encoder::name(self.encoding, number);
            let partial = encoder::partial(self.folder, &name);
            let made = self.file(number, &name, &partial);
            if !matches!(made, Ok(Some(_))) {
                // It was perhaps never begun.
                let _ = std::fs::remove_file(&partial);
            }
            match made
                .inspect_err(|_| self.next.store(self.count + 1, Relaxed))
                .with_context(|| name.clone())?
            {
                None => return Ok(()),
                Some(entry) => {
                    print(&line(&entry));
                    self.done.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
                }
            }
        }
    }

    /// One whole file; `None` when a signal came first. Encoders miss a bitrate by a few percent,
    /// so the file is encoded again with the difference made up for; the next files begin with what
    /// was right.
    fn file(&self, number: u32, name: &str, partial: &Path) -> anyhow::Result<Option<Entry>> {
        // FFmpeg writes into what has this name: it must be no link to somebody's file.
        throng_folder::create(partial)?;
        let wanted = self.encoding.bits_per_s as f64;
        let mut rate = self.video_bits_per_s.load(Relaxed);
        for attempt in 1.. {
            let arguments = self.encoding.arguments(number, rate);
            if !self.ffmpeg.encode(&arguments, partial, &self.interrupt)? {
                return Ok(None);
            }
            let entry = self.ffmpeg.measure(partial, name)?;
            if entry.frames != self.encoding.frames() {
                bail!("{} frames instead of {}", entry.frames, self.encoding.frames());
            }
            let is_right = entry.off(self.encoding.bits_per_s).abs() <= TOLERANCE;
            if is_right || attempt == TRIES {
                std::fs::rename(partial, self.folder.join(name))?;
                if is_right {
                    self.video_bits_per_s.store(rate, Relaxed);
                }
                return Ok(Some(entry));
            }
            // Audio and container take the same whatever the video takes.
            rate = (rate as f64 + wanted - entry.bitrate).max(10_000.0) as u64;
        }
        Ok(None)
    }
}

fn line(entry: &Entry) -> String {
    format!(
        "{}  {}  {}  {:.2} s  {} frames\n",
        entry.file,
        units::bytes(entry.bytes as f64),
        units::bit_rate(entry.bitrate),
        entry.seconds,
        entry.frames
    )
}
