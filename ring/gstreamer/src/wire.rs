//! The meaning of a frame's fields between the two elements. Other consumers may ignore all kinds
//! but KIND_BUFFER.

/// The frame is a buffer. `timestamp_ns` is its presentation time (running time of the sink),
/// `user_data` its duration in ns; [`NONE`] if there is none.
pub(crate) const KIND_BUFFER: u16 = 0;
/// The frame is the caps of what follows, as text.
pub(crate) const KIND_CAPS: u16 = 1;
/// No time. The same number that GStreamer uses.
pub(crate) const NONE: u64 = u64::MAX;
/// Longest caps that a source reads.
pub(crate) const CAPS_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn to_ns(time: Option<gst::ClockTime>) -> u64 {
    time.map_or(NONE, gst::ClockTime::nseconds)
}

pub(crate) fn from_ns(ns: u64) -> Option<gst::ClockTime> {
    (ns != NONE).then(|| gst::ClockTime::from_nseconds(ns))
}
