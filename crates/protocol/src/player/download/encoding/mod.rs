//! Content encodings (RFC 9110 section 8.4.1): bodies that the server has compressed, decoded as
//! they come. What a few received bytes may become is bounded: a response of some kilobytes can
//! decode to gigabytes.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, HeaderValue};
use throng_observation::Url;
use url::Host;

use self::zstd::ZstdDecoder;

mod zstd;

/// Most bytes that one received piece of a body may become: pieces are some 10 KB long, text and
/// media compress less than a hundredfold.
const PIECE_MAX: usize = 16 << 20;

/// Decoded bytes that are moved at a time.
const STEP: usize = 16 * 1024;

/// What a page's requests without `Range` accept from `url`: newer encodings only where no old
/// proxy can read them, which Chromium takes for granted of TLS and of the own host.
pub(in crate::player) fn accepted(url: &Url) -> &'static str {
    if url.scheme() == "https" || is_local(url) {
        "gzip, deflate, br, zstd"
    } else {
        "gzip, deflate"
    }
}

/// Whether `url` is on the own host, which browsers trust as they trust TLS.
pub(in crate::player) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// The decoder of one body.
pub(in crate::player) struct Decoder {
    name: &'static str,
    kind: Kind,
    sink: Sink,
    has_begun: bool,
}

enum Kind {
    Gzip(Box<GzDecoder<Sink>>),
    /// `deflate`, with or without the zlib format around it; `None` before its first byte, which
    /// tells.
    Deflate(Option<Decompress>, bool),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<ZstdDecoder>),
}

/// Why a body cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::player) enum DecodeError {
    /// Its encoding is none that was asked for.
    Unknown(String),
    /// It is not in its encoding, or cut off.
    Broken(String),
    /// It becomes more bytes than allowed.
    TooLong,
}

/// Takes so many bytes and no more.
#[derive(Default)]
struct Sink {
    out: Vec<u8>,
    room: usize,
    is_over: bool,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            self.is_over = true;
            return Err(io::Error::other("longer than allowed"));
        }
        self.room -= bytes.len();
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Decoder {
    /// The decoder of a body with these headers; `None` where it is not encoded.
    pub(in crate::player) fn of(headers: &HeaderMap) -> Result<Option<Self>, DecodeError> {
        let fields = headers.get_all(CONTENT_ENCODING).iter();
        let names: Vec<String> = fields
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
            .filter(|name| !name.is_empty() && name != "identity")
            .collect();
        let (name, kind) = match names.as_slice() {
            [] => return Ok(None),
            [name] => match name.as_str() {
                "gzip" | "x-gzip" => {
                    ("gzip", Kind::Gzip(Box::new(GzDecoder::new(Sink::default()))))
                }
                "deflate" => ("deflate", Kind::Deflate(None, false)),
                "br" => {
                    ("br", Kind::Brotli(Box::new(DecompressorWriter::new(Sink::default(), STEP))))
                }
                "zstd" => ("zstd", Kind::Zstd(Box::default())),
                _ => return Err(DecodeError::Unknown(name.chars().take(60).collect())),
            },
            _ => return Err(DecodeError::Unknown(names.join(", ").chars().take(60).collect())),
        };
        Ok(Some(Self { name, kind, sink: Sink::default(), has_begun: false }))
    }

    /// The name of the encoding.
    pub(in crate::player) fn name(&self) -> &'static str {
        self.name
    }

    /// What the next bytes of the body become; at most `bytes_max`.
    pub(in crate::player) fn decode(
        &mut self,
        bytes: &[u8],
        bytes_max: usize,
    ) -> Result<Vec<u8>, DecodeError> {
        self.has_begun |= !bytes.is_empty();
        let sink = self.sink();
        (sink.room, sink.is_over) = (bytes_max.min(PIECE_MAX), false);
        let result = match &mut self.kind {
            Kind::Gzip(gzip) => write_until_end(gzip, bytes).and_then(|()| gzip.flush()),
            Kind::Brotli(brotli) => write_until_end(brotli, bytes),
            Kind::Deflate(inflate, has_ended) => deflate(inflate, has_ended, bytes, &mut self.sink),
            Kind::Zstd(zstd) => zstd.write(bytes, &mut self.sink),
        };
        let sink = self.sink();
        match result {
            Ok(()) => Ok(std::mem::take(&mut sink.out)),
            Err(_) if sink.is_over => Err(DecodeError::TooLong),
            Err(error) => Err(DecodeError::Broken(error.to_string())),
        }
    }

    /// Where what is decoded goes: some decoders own theirs.
    fn sink(&mut self) -> &mut Sink {
        match &mut self.kind {
            Kind::Gzip(gzip) => gzip.get_mut(),
            Kind::Brotli(brotli) => brotli.get_mut(),
            Kind::Deflate(..) | Kind::Zstd(_) => &mut self.sink,
        }
    }

    /// Checks that the body has ended where its encoding does.
    pub(in crate::player) fn finish(&mut self) -> Result<(), DecodeError> {
        let is_complete = match &mut self.kind {
            // As browsers take it: an empty body is one whatever its header says.
            _ if !self.has_begun => true,
            Kind::Gzip(gzip) => gzip.try_finish().is_ok(),
            Kind::Deflate(_, has_ended) => *has_ended,
            Kind::Brotli(brotli) => brotli.close().is_ok(),
            Kind::Zstd(zstd) => zstd.is_complete(),
        };
        is_complete.then_some(()).ok_or_else(|| DecodeError::Broken("it is cut off".into()))
    }
}

/// Writes until the end of the encoded body; browsers ignore what follows it.
fn write_until_end(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => break,
            Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn deflate(
    inflate: &mut Option<Decompress>,
    has_ended: &mut bool,
    mut bytes: &[u8],
    sink: &mut Sink,
) -> io::Result<()> {
    let Some(first) = bytes.first() else { return Ok(()) };
    // The first byte of the zlib format (RFC 1950 section 2.2): method 8, a window of at most 32
    // KB. Some servers send the bare data, which begins like this only with padding that is not
    // zero.
    let inflate =
        inflate.get_or_insert_with(|| Decompress::new(first & 0x0f == 8 && first >> 4 <= 7));
    let mut step = vec![0; STEP];
    while !*has_ended {
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(bytes, &mut step, FlushDecompress::None)
            .map_err(io::Error::other)?;
        let taken = usize::try_from(inflate.total_in() - before_in).unwrap_or(0);
        let made = usize::try_from(inflate.total_out() - before_out).unwrap_or(0);
        bytes = bytes.get(taken..).unwrap_or_default();
        sink.write_all(step.get(..made).unwrap_or_default())?;
        *has_ended = status == Status::StreamEnd;
        if taken == 0 && made == 0 {
            break;
        }
    }
    Ok(())
}

/// For the mutation tests: what a body with this `Content-Encoding` becomes, if it comes in such
/// pieces and may become so many bytes.
#[doc(hidden)]
#[must_use]
pub fn decode_any_body(
    encoding: &'static str,
    bytes: &[u8],
    piece: usize,
    bytes_max: usize,
) -> Option<Vec<u8>> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    let mut decoder = Decoder::of(&headers).ok()??;
    let mut out = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        let more = decoder.decode(piece, bytes_max.saturating_sub(out.len())).ok()?;
        out.extend(more);
    }
    decoder.finish().ok()?;
    Some(out)
}

#[cfg(test)]
mod tests;
