//! Publishers of live streams: by RTMP and RTMPS, as OBS and FFmpeg publish to nginx-rtmp,
//! PeerTube, OvenMediaEngine or SRS; and by an FFmpeg process of the user, for SRT, or with a clock
//! in the picture.
//!
//! ```text
//! publisher                           server
//!   C0 C1                      ─────▶
//!                              ◀─────  S0 S1 S2
//!   C2, connect(app)           ─────▶
//!                              ◀─────  _result
//!   releaseStream, FCPublish,
//!   createStream               ─────▶
//!                              ◀─────  _result(stream)
//!   publish(key, "live")       ─────▶
//!                              ◀─────  onStatus(NetStream.Publish.Start)
//!   @setDataFrame(onMetaData), audio and video in real time
//!   FCUnpublish, deleteStream  ─────▶
//! ```
//! `amf` and `chunk` are the two layers of the encoding, `session` is the dialogue, `flv` makes the
//! bodies of audio and video messages, `feed` decides which are due; `ffmpeg` has the arguments of
//! the process, `clock` its filter; `publisher` is the participant.
//!
//! RTMP is read and written here because the crate that has both overflows the stack on nested
//! objects of a hostile server: `rml_amf0` 0.3 recurses without a limit.

mod amf;
mod chunk;
mod clock;
mod feed;
mod ffmpeg;
mod flv;
mod place;
mod publisher;
mod session;

pub use self::place::{Config, IngestProtocol};
pub use self::publisher::Publisher;

/// For the mutation tests: reads what a server may send, in pieces of the given length; how many
/// bytes it is sent for it.
#[doc(hidden)]
#[must_use]
pub fn read_any_bytes(bytes: &[u8], piece: usize) -> usize {
    let mut session = session::Session::new(session::Place::default(), fastrand::Rng::with_seed(1));
    let mut sent = 0;
    for piece in bytes.chunks(piece.max(1)) {
        let result = session.receive(piece);
        sent += std::iter::from_fn(|| session.poll_send()).map(|bytes| bytes.len()).sum::<usize>();
        if result.is_err() {
            break;
        }
    }
    sent
}

/// For the mutation tests: whether the values of a message, if they are such, are the same when
/// they are written and read again.
#[doc(hidden)]
#[must_use]
pub fn values_survive(bytes: &[u8]) -> bool {
    let write = |values: &[amf::Amf]| {
        let mut out = Vec::new();
        values.iter().for_each(|value| value.write(&mut out));
        out
    };
    let Ok(values) = amf::Amf::read_all(bytes) else { return true };
    let written = write(&values);
    amf::Amf::read_all(&written).is_ok_and(|again| write(&again) == written)
}

#[cfg(test)]
mod tests;
