//! A batch of rows as bytes: the version, then deflated (RFC 1951) rows one after the other in
//! [postcard's form](https://postcard.jamesmunns.com/wire-format).
//!
//! What comes from another machine may be anything. Decoding takes memory in proportion to
//! [`WireLimits::bytes_max`], whatever the bytes are: sizes are checked before rows are made, and
//! no few bytes stand for a large distribution. The factor is some twenty, for distributions of one
//! or two values; it follows from the forms and was not measured.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use throng_observation::run::Row;
use throng_observation::{
    ChatCounters, Counters as _, HttpRequestCounters, PlaybackCounters, SentCounters, TrackCounters,
};

/// The version of what rows have beside their sums: another number with another kind or field.
pub const ROWS_VERSION: u8 = 5;

/// The version of this form. Machines of a fleet run the same version of throng, so this is a check
/// and no negotiation. Rows have no names: with each sum that is declared, it is another number.
pub const VERSION: u8 = (ROWS_VERSION as usize + SUMS) as u8;

/// The sums of all families.
const SUMS: usize = TrackCounters::COUNTERS.len()
    + SentCounters::COUNTERS.len()
    + PlaybackCounters::COUNTERS.len()
    + HttpRequestCounters::COUNTERS.len()
    + ChatCounters::COUNTERS.len();

/// Least room that is made for more output at a time, bytes.
const CHUNK: usize = 16 << 10;

/// What a batch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireLimits {
    /// Most bytes of the rows before deflate.
    pub bytes_max: usize,
    /// Most rows.
    pub rows_max: usize,
}

impl Default for WireLimits {
    /// 4 MiB and 16,384 rows: four thousand participants that end at once, with their tracks.
    fn default() -> Self {
        Self { bytes_max: 4 << 20, rows_max: 16_384 }
    }
}

/// Why rows do not become bytes, or bytes no rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// There are no bytes.
    #[error("the batch is empty")]
    Empty,
    /// Another version of the form.
    #[error("the batch has version {found} of the row format; this is version {VERSION}")]
    Version {
        /// The version that it has.
        found: u8,
    },
    /// The rest is not a deflate stream, or not a whole one.
    #[error("the batch does not inflate: {detail}")]
    Inflate {
        /// What is wrong.
        detail: String,
    },
    /// More bytes of rows than allowed.
    #[error("the rows of the batch take more than {max} bytes")]
    TooLarge {
        /// The bound.
        max: usize,
    },
    /// More rows than allowed.
    #[error("the batch has more than {max} rows")]
    TooManyRows {
        /// The bound.
        max: usize,
    },
    /// A row cannot be read.
    #[error("row {number} of the batch, at byte {offset}, is not a row: {detail}")]
    Row {
        /// Its number, from 0.
        number: usize,
        /// Where it begins in the inflated bytes.
        offset: usize,
        /// What is wrong.
        detail: String,
    },
    /// A row that cannot be written: one that only the coordinator makes.
    #[error("row {number} of the batch cannot travel: {detail}")]
    Unsendable {
        /// Its number, from 0.
        number: usize,
        /// Why.
        detail: String,
    },
}

/// The bytes of `rows`.
///
/// # Errors
/// [`WireError::Unsendable`] for rows that only the coordinator makes (holds, canaries, watched
/// hosts); [`WireError::TooLarge`] and [`WireError::TooManyRows`] for batches that no receiver
/// would take.
pub fn encode(rows: &[Row], limits: WireLimits) -> Result<Vec<u8>, WireError> {
    if rows.len() > limits.rows_max {
        return Err(WireError::TooManyRows { max: limits.rows_max });
    }
    let mut plain = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        plain = postcard::to_extend(row, plain)
            .map_err(|error| WireError::Unsendable { number, detail: error.to_string() })?;
        if plain.len() > limits.bytes_max {
            return Err(WireError::TooLarge { max: limits.bytes_max });
        }
    }
    deflate(&plain)
}

/// The rows of a batch.
///
/// # Errors
/// [`WireError`] says what is wrong with the bytes, and where. No row of such a batch is returned.
pub fn decode(bytes: &[u8], limits: WireLimits) -> Result<Vec<Row>, WireError> {
    let (version, deflated) = bytes.split_first().ok_or(WireError::Empty)?;
    if *version != VERSION {
        return Err(WireError::Version { found: *version });
    }
    let plain = inflate(deflated, limits.bytes_max)?;
    let (mut rows, mut rest) = (Vec::new(), plain.as_slice());
    while !rest.is_empty() {
        if rows.len() == limits.rows_max {
            return Err(WireError::TooManyRows { max: limits.rows_max });
        }
        let (row, after) = postcard::take_from_bytes(rest).map_err(|error| WireError::Row {
            number: rows.len(),
            offset: plain.len() - rest.len(),
            detail: error.to_string(),
        })?;
        rows.push(row);
        rest = after;
    }
    Ok(rows)
}

fn deflate(plain: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut stream = Compress::new(Compression::fast(), false);
    let mut bytes = vec![VERSION];
    loop {
        bytes.reserve(CHUNK);
        let rest = plain.get(stream.total_in() as usize..).unwrap_or_default();
        // Compression of bytes in memory has no reason to fail.
        match stream.compress_vec(rest, &mut bytes, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return Ok(bytes),
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => return Err(WireError::Inflate { detail: error.to_string() }),
        }
    }
}

/// Inflates at most `max` bytes; the stream must end where `deflated` does.
fn inflate(deflated: &[u8], max: usize) -> Result<Vec<u8>, WireError> {
    let wrong = |detail: &str| WireError::Inflate { detail: detail.to_owned() };
    let mut stream = Decompress::new(false);
    let mut plain = Vec::new();
    loop {
        // One byte more than allowed shows that there is more.
        let room = (max + 1 - plain.len()).min(plain.len().max(CHUNK));
        plain.reserve_exact(room);
        let (before_in, before_out) = (stream.total_in(), plain.len());
        let rest = deflated.get(before_in as usize..).unwrap_or_default();
        let status = stream
            .decompress_vec(rest, &mut plain, FlushDecompress::None)
            .map_err(|error| wrong(&error.to_string()))?;
        if plain.len() > max {
            return Err(WireError::TooLarge { max });
        }
        if matches!(status, Status::StreamEnd) {
            let is_whole = stream.total_in() as usize == deflated.len();
            return if is_whole { Ok(plain) } else { Err(wrong("there are bytes after its end")) };
        }
        if (stream.total_in(), plain.len()) == (before_in, before_out) {
            return Err(wrong("it ends too early"));
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
