//! RTSP (RFC 2326): a viewer that plays a stream over UDP, or over the RTSP connection itself
//! (interleaved), plain or with TLS; and a publisher.
//!
//! ```text
//! player                              server
//!   OPTIONS                    ─────▶  200, Public
//!   DESCRIBE                   ─────▶  200, the description (SDP)  or 401, 3xx
//!   SETUP, for each track      ─────▶  200, Session, Transport     or 461: the other transport
//!   PLAY                       ─────▶  200; then RTP and RTCP
//!   PAUSE, PLAY                ─────▶  200                         pauses, seeks, other speeds
//!   GET_PARAMETER or OPTIONS   ─────▶  200                         before the session times out
//!   TEARDOWN                   ─────▶  200
//! ```
//! A publisher sends ANNOUNCE with its own description in place of DESCRIBE, and RECORD in place of
//! PLAY.
//!
//! `session` is what both have in common: `framing` cuts the byte stream into messages and
//! interleaved frames, `client` has the dialogue, `set_up` the tracks. A `viewer` has a `receiver`
//! with the meters and reports, and a `playback`, which knows the position in a recording; a
//! `publisher` has a `sender`. Messages are parsed by `rtsp-types` and credentials answered by
//! `http-auth`, as in retina, whose own client is bound to a runtime. Descriptions are read here:
//! servers leave out lines that strict SDP parsers require, and players play them all the same.

mod announce;
mod client;
mod credentials;
mod description;
mod framing;
mod npt;
mod playback;
mod publisher;
mod receiver;
mod rtp_info;
mod sender;
mod session;
mod set_up;
mod transport;
mod viewer;

pub use self::credentials::Credentials;
pub use self::publisher::Publisher;
pub use self::session::Config;
pub use self::viewer::Viewer;

#[cfg(test)]
mod tests;

/// Bytes of a message's head and body together, at most: descriptions have a few kilobytes.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
