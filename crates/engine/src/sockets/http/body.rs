//! The body of a response, read a piece at a time; what is not read stays with the server.

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

use super::http3;

/// A body.
pub(super) enum Body {
    /// Of HTTP/1.1 or HTTP/2.
    Hyper(Incoming),
    /// Of HTTP/3.
    Http3(Box<http3::Stream>),
}

/// Why a body broke.
#[derive(Debug)]
pub(super) enum BodyError {
    Hyper(hyper::Error),
    Http3(h3::error::StreamError),
}

impl Body {
    /// The next piece; `None` at the end. Cancelled, it loses nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        match self {
            Self::Hyper(body) => loop {
                let frame = match body.frame().await? {
                    Ok(frame) => frame,
                    Err(error) => return Some(Err(BodyError::Hyper(error))),
                };
                // Trailers are no part of the body.
                if let Ok(bytes) = frame.into_data()
                    && !bytes.is_empty()
                {
                    return Some(Ok(bytes));
                }
            },
            Self::Http3(stream) => {
                // The library says "none" at the end and after an empty DATA frame; the next call
                // tells them apart.
                for _ in 0..2 {
                    match stream.recv_data().await {
                        Ok(Some(mut piece)) => {
                            return Some(Ok(piece.copy_to_bytes(piece.remaining())));
                        }
                        Ok(None) => {}
                        Err(error) => return Some(Err(BodyError::Http3(error))),
                    }
                }
                None
            }
        }
    }

    /// Whether the end is known without another read.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            Self::Http3(_) => false,
        }
    }
}
