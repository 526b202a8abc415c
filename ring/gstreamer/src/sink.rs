//! `throngringsink`: copies each buffer into the ring once, with its caps and times.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use throng_ring::{Flags, FrameInfo, Policy, Producer};

use crate::wire;

/// How long the sink waits for a full ring before it checks whether it must stop; then it waits
/// again.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct Sink {
    path: Mutex<Option<String>>,
    producer: Mutex<Option<Producer>>,
    stopping: std::sync::atomic::AtomicBool,
}

impl Sink {
    fn producer(&self) -> MutexGuard<'_, Option<Producer>> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room without limit, or until the element must unlock: then false.
    fn send(&self, bytes: &[u8], info: &FrameInfo) -> Result<bool, gst::ErrorMessage> {
        let mut producer = self.producer();
        let producer = producer
            .as_mut()
            .ok_or_else(|| gst::error_msg!(gst::CoreError::StateChange, ["not started"]))?;
        loop {
            let room = producer.poll_room(bytes.len()).map_err(failed)?;
            if room || bytes.len() > producer.frame_bytes_max() {
                if producer.send(bytes, info).map_err(failed)? {
                    return Ok(true);
                }
            } else {
                let fd = producer.room_event();
                let mut fds =
                    [rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)];
                let period = rustix::event::Timespec {
                    tv_sec: 0,
                    tv_nsec: LOOK_PERIOD.subsec_nanos().into(),
                };
                let _ = rustix::event::poll(&mut fds, Some(&period));
                if !producer.has_consumer() {
                    return Err(gst::error_msg!(
                        gst::ResourceError::Write,
                        ["the ring's consumer has gone"]
                    ));
                }
            }
            if self.stopping.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(false);
            }
        }
    }
}

fn failed(error: throng_ring::RingError) -> gst::ErrorMessage {
    gst::error_msg!(gst::ResourceError::Write, ["{error}"])
}

#[glib::object_subclass]
impl ObjectSubclass for Sink {
    const NAME: &'static str = "ThrongRingSink";
    type Type = crate::Sink;
    type ParentType = gst_base::BaseSink;
}

impl ObjectImpl for Sink {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            vec![
                glib::ParamSpecString::builder("path")
                    .nick("Path")
                    .blurb("Socket path where the consumer listens")
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = value.get().ok().flatten();
    }

    fn property(&self, _id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).to_value()
    }
}

impl GstObjectImpl for Sink {}

impl ElementImpl for Sink {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Ring sink",
                "Sink",
                "Puts buffers into a throng-ring of another process",
                env!("CARGO_PKG_NAME"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst::Caps::new_any();
            gst::PadTemplate::new("sink", gst::PadDirection::Sink, gst::PadPresence::Always, &caps)
                .into_iter()
                .collect()
        });
        &TEMPLATES
    }
}

impl BaseSinkImpl for Sink {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let path = path.ok_or_else(|| {
            gst::error_msg!(gst::ResourceError::Settings, ["set path: the consumer's socket"])
        })?;
        let mut producer = Producer::connect(path)
            .map_err(|error| gst::error_msg!(gst::ResourceError::OpenWrite, ["{error}"]))?;
        producer.set_policy(Policy::Wait { timeout: LOOK_PERIOD });
        *self.producer() = Some(producer);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.producer() = None;
        Ok(())
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        self.stopping.store(false, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info =
            FrameInfo { kind: wire::KIND_CAPS, flags: Flags::KEYFRAME, ..FrameInfo::default() };
        self.send(caps.to_string().as_bytes(), &info)
            .map(drop)
            .map_err(|error| gst::loggable_error!(gst::CAT_RUST, "caps were not sent: {error}"))
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let map = buffer.map_readable().map_err(|_| gst::FlowError::Error)?;
        let mut flags = Flags::NONE;
        for (theirs, ours) in [
            (gst::BufferFlags::DISCONT, Flags::DISCONTINUITY),
            (gst::BufferFlags::CORRUPTED, Flags::DAMAGED),
            (gst::BufferFlags::DROPPABLE, Flags::DISPOSABLE),
        ] {
            if buffer.flags().contains(theirs) {
                flags = flags | ours;
            }
        }
        if !buffer.flags().contains(gst::BufferFlags::DELTA_UNIT) {
            flags = flags | Flags::KEYFRAME;
        }
        let info = FrameInfo {
            kind: wire::KIND_BUFFER,
            flags,
            timestamp_ns: wire::to_ns(buffer.pts()),
            user_data: wire::to_ns(buffer.duration()),
            ..FrameInfo::default()
        };
        match self.send(&map, &info) {
            Ok(true) => Ok(gst::FlowSuccess::Ok),
            Ok(false) => Err(gst::FlowError::Flushing),
            Err(error) => {
                self.post_error_message(error);
                Err(gst::FlowError::Error)
            }
        }
    }
}
