//! What goes over the connection: frames of a length, a kind, and JSON; samples in 20 bytes each.

use std::io;

use serde::{Deserialize, Serialize};
use throng_observation::RunTime;
use throng_observation::host::{HostRow, HostSample, SeriesId};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The version of this format; both ends must have the same.
pub(crate) const VERSION: u32 = 1;

/// What a client may send in one frame.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 * 1024;
/// What an agent may send in one frame; a profile is the largest.
pub(crate) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// How the event begins that comes where a profile was asked for and could not be taken.
pub(crate) const NO_PROFILE: &str = "no profile: ";

/// What the run asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// First of all: the version it speaks, and the token.
    Hello { version: u32, token: String },
    /// What time is it there? Each second, which is also the sign of life.
    Ping { number: u32 },
    /// Stream rows from here on.
    Begin,
    /// Sample stacks of the watched processes for so long, and send them under this name.
    Profile { moment: String, duration_ms: u32 },
    /// End the profile that is being taken, and send what there is of it.
    EndProfile,
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Response {
    /// To a hello with the right token.
    Welcome { version: u32, name: String, targets: Vec<String>, consent: Option<Consent> },
    /// Why the connection ends here.
    Refused { why: String },
    /// To a ping: the agent's time, microseconds since its welcome, and how many rows it had to drop so far.
    Pong { number: u32, agent_us: i64, rows_dropped: u64 },
    /// A row other than a sample. Its times are the agent's.
    Row(HostRow),
}

/// What the owner of the watched host agrees to by running the agent: load on these ports of the address at which it
/// answers, up to these limits, as long as it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// Ports that load may be sent to.
    pub ports: Vec<u16>,
    /// Most users.
    pub users_max: Option<u32>,
    /// Most joins in a second.
    pub joins_per_s_max: Option<f64>,
    /// Most Mbit/s, received and sent together.
    pub mbit_per_s_max: Option<f64>,
    /// Longest run, seconds.
    pub duration_s_max: Option<u64>,
}

/// Kinds of frames.
const JSON: u8 = 1;
const SAMPLES: u8 = 2;
const HEAD: usize = 5;
const SAMPLE_BYTES: usize = 20;

/// A frame as it came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame<T> {
    Message(T),
    Samples(Vec<HostSample>),
}

/// Appends a message.
pub(crate) fn write_message(out: &mut Vec<u8>, message: &impl Serialize) -> io::Result<()> {
    let begin = out.len();
    out.extend([0, 0, 0, 0, JSON]);
    serde_json::to_writer(&mut *out, message)?;
    finish(out, begin)
}

/// Appends samples; none write nothing.
pub(crate) fn write_samples(out: &mut Vec<u8>, samples: &[HostSample]) -> io::Result<()> {
    if samples.is_empty() {
        return Ok(());
    }
    let begin = out.len();
    out.extend([0, 0, 0, 0, SAMPLES]);
    for sample in samples {
        out.extend(sample.series.0.to_le_bytes());
        out.extend(sample.at.0.to_le_bytes());
        out.extend(sample.value.to_le_bytes());
    }
    finish(out, begin)
}

fn finish(out: &mut [u8], begin: usize) -> io::Result<()> {
    let length = u32::try_from(out.len() - begin - HEAD)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a frame of more than 4 GiB"))?;
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// Reads frames of at most so many bytes.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Vec<u8>,
    bytes_max: usize,
}

impl FrameReader {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), bytes_max }
    }

    /// Whether something was read that was no whole frame.
    pub(crate) fn has_read(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next frame; may be given up and called again, nothing is lost.
    pub(crate) async fn next<T>(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame<T>>
    where
        T: for<'a> Deserialize<'a>,
    {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            // Not more at once than a frame may have, so that a flood waits in the kernel.
            if from.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// A frame out of what has been read.
    fn take<T: for<'a> Deserialize<'a>>(&mut self) -> io::Result<Option<Frame<T>>> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some((head, rest)) = self.buffer.split_at_checked(HEAD) else { return Ok(None) };
        let &[a, b, c, d, kind] = head else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > self.bytes_max {
            return Err(invalid(format!("a frame of {length} bytes; {} are allowed", self.bytes_max)));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = match kind {
            JSON => {
                Frame::Message(serde_json::from_slice(payload).map_err(|e| invalid(format!("a frame: {e}")))?)
            }
            SAMPLES => Frame::Samples(payload.chunks_exact(SAMPLE_BYTES).filter_map(sample).collect()),
            _ => return Err(invalid(format!("a frame of kind {kind}"))),
        };
        self.buffer.drain(..HEAD + length);
        if self.buffer.is_empty() {
            self.buffer.shrink_to(64 * 1024); // after a profile
        }
        Ok(Some(frame))
    }
}

fn sample(bytes: &[u8]) -> Option<HostSample> {
    let (series, rest) = bytes.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (value, _) = rest.split_first_chunk()?;
    Some(HostSample {
        series: SeriesId(u32::from_le_bytes(*series)),
        at: RunTime(i64::from_le_bytes(*at)),
        value: f64::from_le_bytes(*value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], bytes_max: usize) -> io::Result<Vec<Frame<Request>>> {
        let mut reader = FrameReader { buffer: bytes.to_vec(), bytes_max };
        std::iter::from_fn(|| reader.take().transpose()).collect()
    }

    #[test]
    fn frames_come_back_as_they_were_sent() {
        let mut bytes = Vec::new();
        let ping = Request::Ping { number: 7 };
        let samples = [(1, 2.5), (2, f64::INFINITY)].map(|(s, value)| HostSample {
            series: SeriesId(s),
            at: RunTime(-9),
            value,
        });
        write_message(&mut bytes, &ping).unwrap();
        write_samples(&mut bytes, &samples).unwrap();
        write_samples(&mut bytes, &[]).unwrap();
        let frames = read(&bytes, 1000).unwrap();
        assert_eq!(frames, [Frame::Message(ping), Frame::Samples(samples.to_vec())]);
        assert_eq!(
            read(&bytes[..bytes.len() - 1], 1000).unwrap().len(),
            1,
            "the rest of a frame is waited for"
        );
    }

    #[test]
    fn what_is_no_frame_is_an_error_before_it_is_kept() {
        for (bytes, word) in [
            (&[255, 255, 255, 255, 1][..], "4294967295 bytes"),
            (&[1, 0, 0, 0, 1, b'x'], "a frame:"),
            (&[0, 0, 0, 0, 9], "kind 9"),
            (b"GET / HTTP/1.1\r\n\r\n", "bytes"),
        ] {
            let error = read(bytes, 1000).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
