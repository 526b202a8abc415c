//! `throngringsrc`: listens at a socket path for one producer; each frame becomes a buffer over
//! shared memory, which is released when GStreamer frees the buffer.

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gst::glib;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_src::CreateSuccess;
use gst_base::subclass::prelude::*;
use throng_ring::{Consumer, Event, Flags, Frame, FrameId, RingOptions};

use crate::wire;

/// How often a waiting source checks whether it must stop.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Settings {
    path: Option<String>,
    frame_bytes: u32,
    frames: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { path: None, frame_bytes: 3_110_400, frames: 4 }
    }
}

#[derive(Default)]
pub struct Source {
    settings: Mutex<Settings>,
    open: Mutex<Option<Open>>,
    stopping: AtomicBool,
}

type Shared = Arc<Mutex<Consumer>>;

struct Open {
    listener: UnixListener,
    path: String,
    consumer: Shared,
    /// A producer connected.
    joined: bool,
    /// It has left.
    left: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A frame's bytes, held until GStreamer drops the buffer.
struct Held {
    consumer: Shared,
    id: FrameId,
    start: *const u8,
    len: usize,
}

// SAFETY: an address of shared memory that is only read; the frame stays held meanwhile.
unsafe impl Send for Held {}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: mapped for `len` bytes until the frame is released, which is when this is
        // dropped. The path's owner chose the producer and trusts it not to write after a commit.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Cannot be unknown: it was peeked, and is released once.
        let _ = lock(&self.consumer).release(self.id);
    }
}

/// Result of reading the ring.
enum Next {
    Frame(Frame, Held),
    Nothing,
    Ended,
}

fn failed(error: impl std::fmt::Display) -> gst::ErrorMessage {
    gst::error_msg!(gst::ResourceError::Read, ["{error}"])
}

impl Source {
    fn next(&self) -> Result<Next, gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let mut open = lock(&self.open);
        let open = open.as_mut().ok_or_else(|| failed("not started"))?;
        if !open.joined {
            let mut fds =
                [rustix::event::PollFd::new(&open.listener, rustix::event::PollFlags::IN)];
            if poll(&mut fds) {
                let (socket, _) = open.listener.accept().map_err(failed)?;
                let size = RingOptions::for_frames(settings.frame_bytes as usize, settings.frames);
                lock(&open.consumer).accept(socket, &size).map_err(failed)?;
                open.joined = true;
            }
            return Ok(Next::Nothing);
        }
        let mut consumer = lock(&open.consumer);
        if let Some(frame) = consumer.peek() {
            let start = consumer.payload(frame.id).map_err(failed)?.as_ptr();
            let held =
                Held { consumer: Arc::clone(&open.consumer), id: frame.id, start, len: frame.len };
            return Ok(Next::Frame(frame, held));
        }
        if open.left {
            // All committed frames are read. The lane itself ends later, when sinks free their last
            // buffers.
            return Ok(Next::Ended);
        }
        while let Some(event) = consumer.next_event() {
            match event {
                Event::LaneCorrupt { error, .. } => return Err(failed(error)),
                Event::ProducerLeft { .. } | Event::LaneEnded { .. } => open.left = true,
                _ => {}
            }
        }
        if open.left {
            // Frames committed before it left may have arrived since the peek: peek again.
            return Ok(Next::Nothing);
        }
        if consumer.arm() {
            // Downstream threads release frames meanwhile.
            let fd = consumer.event_fd().try_clone_to_owned().map_err(failed)?;
            drop(consumer);
            poll(&mut [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)]);
            lock(&open.consumer).process_events().map_err(failed)?;
        }
        Ok(Next::Nothing)
    }
}

fn poll(fds: &mut [rustix::event::PollFd<'_>]) -> bool {
    let period = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK_PERIOD.subsec_nanos().into() };
    matches!(rustix::event::poll(fds, Some(&period)), Ok(ready) if ready > 0)
}

fn caps_of(held: &Held) -> Result<gst::Caps, gst::ErrorMessage> {
    // A copy, so that the checked bytes are the parsed ones.
    let bytes =
        held.as_ref().get(..held.len.min(wire::CAPS_BYTES_MAX)).unwrap_or_default().to_vec();
    let text = String::from_utf8(bytes).map_err(|_| failed("the producer's caps are no text"))?;
    text.parse().map_err(|_| failed(format!("the producer's caps cannot be read: {text}")))
}

fn buffer_of(frame: &Frame, held: Held) -> gst::Buffer {
    let mut buffer = gst::Buffer::from_slice(held);
    if let Some(buffer) = buffer.get_mut() {
        buffer.set_pts(wire::from_ns(frame.info.timestamp_ns));
        buffer.set_duration(wire::from_ns(frame.info.user_data));
        let flags = frame.info.flags;
        for (ours, theirs) in [
            (Flags::DISCONTINUITY, gst::BufferFlags::DISCONT),
            (Flags::DAMAGED, gst::BufferFlags::CORRUPTED),
            (Flags::DISPOSABLE, gst::BufferFlags::DROPPABLE),
        ] {
            if flags.contains(ours) {
                buffer.set_flags(theirs);
            }
        }
        if !flags.contains(Flags::KEYFRAME) {
            buffer.set_flags(gst::BufferFlags::DELTA_UNIT);
        }
    }
    buffer
}

#[glib::object_subclass]
impl ObjectSubclass for Source {
    const NAME: &'static str = "ThrongRingSrc";
    type Type = crate::Source;
    type ParentType = gst_base::PushSrc;
}

impl ObjectImpl for Source {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let size = Settings::default();
            vec![
                glib::ParamSpecString::builder("path")
                    .nick("Path")
                    .blurb("Socket path to listen at")
                    .build(),
                glib::ParamSpecUInt::builder("frame-bytes")
                    .nick("Frame bytes")
                    .blurb("Bytes of a large frame")
                    .default_value(size.frame_bytes)
                    .build(),
                glib::ParamSpecUInt::builder("frames")
                    .nick("Frames")
                    .blurb("How many of those the ring holds")
                    .default_value(size.frames)
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn constructed(&self) {
        self.parent_constructed();
        self.obj().set_format(gst::Format::Time);
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let mut settings = lock(&self.settings);
        match spec.name() {
            "path" => settings.path = value.get().ok().flatten(),
            "frame-bytes" => settings.frame_bytes = value.get().unwrap_or(settings.frame_bytes),
            _ => settings.frames = value.get().unwrap_or(settings.frames),
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let settings = lock(&self.settings);
        match spec.name() {
            "path" => settings.path.to_value(),
            "frame-bytes" => settings.frame_bytes.to_value(),
            _ => settings.frames.to_value(),
        }
    }
}

impl GstObjectImpl for Source {}

impl ElementImpl for Source {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Ring source",
                "Source",
                "Takes buffers out of a throng-ring without a copy",
                env!("CARGO_PKG_NAME"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst::Caps::new_any();
            gst::PadTemplate::new("src", gst::PadDirection::Src, gst::PadPresence::Always, &caps)
                .into_iter()
                .collect()
        });
        &TEMPLATES
    }
}

impl BaseSrcImpl for Source {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let path = lock(&self.settings).path.clone();
        let path = path.ok_or_else(|| {
            gst::error_msg!(gst::ResourceError::Settings, ["set path: a socket to listen at"])
        })?;
        let unopened = |error: &dyn std::fmt::Display| {
            gst::error_msg!(gst::ResourceError::OpenRead, ["{path}: {error}"])
        };
        let listener = UnixListener::bind(&path).map_err(|error| unopened(&error))?;
        let consumer = Consumer::new().map_err(|error| unopened(&error))?;
        *lock(&self.open) = Some(Open {
            listener,
            path,
            consumer: Arc::new(Mutex::new(consumer)),
            joined: false,
            left: false,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        if let Some(open) = lock(&self.open).take() {
            // Another process may have removed it.
            let _ = std::fs::remove_file(open.path);
        }
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        false
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.stopping.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        self.stopping.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl PushSrcImpl for Source {
    fn create(
        &self,
        _buffer: Option<&mut gst::BufferRef>,
    ) -> Result<CreateSuccess, gst::FlowError> {
        let raise = |error| {
            self.post_error_message(error);
            gst::FlowError::Error
        };
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                return Err(gst::FlowError::Flushing);
            }
            match self.next().map_err(raise)? {
                Next::Frame(frame, held) if frame.info.kind == wire::KIND_CAPS => {
                    let caps = caps_of(&held).map_err(raise)?;
                    self.obj().set_caps(&caps).map_err(|_| gst::FlowError::NotNegotiated)?;
                }
                Next::Frame(frame, held) if frame.info.kind == wire::KIND_BUFFER => {
                    return Ok(CreateSuccess::NewBuffer(buffer_of(&frame, held)));
                }
                Next::Frame(..) | Next::Nothing => {}
                Next::Ended => return Err(gst::FlowError::Eos),
            }
        }
    }
}
