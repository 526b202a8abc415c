//! The wire format: frames of a length, a kind, and JSON; samples take 20 bytes each.

use std::io;

use serde::{Deserialize, Serialize};
use throng_observation::RunTime;
use throng_observation::host::{HostRow, HostSample, SeriesId};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Protocol version; both ends must have the same.
pub(crate) const VERSION: u32 = 3;

/// Maximum size of a client's frame, bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Maximum size of an agent's frame, bytes; a profile is the largest.
pub(crate) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// Requests of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first message: protocol version and token.
    Hello { version: u32, token: String },
    /// Asks for the agent's time, once a second; also the keep-alive.
    Ping { number: u32 },
    /// Start streaming rows.
    Begin,
    /// Take a profile of the watched processes for this duration and send it under this name.
    Profile { moment: String, duration_ms: u32 },
    /// End the current profile early and send it.
    EndProfile,
}

/// Responses of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Response {
    /// Answers a hello with the right token.
    Welcome { version: u32, name: String, targets: Vec<String>, consent: Option<Consent> },
    /// The reason why the agent closes the connection.
    Refused { why: String },
    /// Answers a ping: the agent's time in microseconds since its welcome, and the number of rows
    /// dropped so far.
    Pong { number: u32, agent_us: i64, rows_dropped: u64 },
    /// A requested profile cannot be taken.
    NoProfile { why: String },
    /// A row other than a sample, in the agent's time.
    Row(HostRow),
}

/// The owner's consent, granted by running the agent: load on these ports of the address at which
/// the agent answers, up to these limits, as long as the agent runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Consent {
    /// Ports to which load may be sent, each as its owner wrote it: `8188`, `10000-10100/udp`.
    pub ports: Vec<String>,
    /// Maximum number of users.
    pub users_max: Option<u32>,
    /// Maximum number of joins in a second.
    pub joins_per_s_max: Option<f64>,
    /// Maximum bit rate, Mbit/s, received and sent together.
    pub mbit_per_s_max: Option<f64>,
    /// Maximum duration of a run, seconds.
    pub duration_s_max: Option<u64>,
}

/// Kinds of frames.
const JSON: u8 = 1;
const SAMPLES: u8 = 2;
const HEAD: usize = 5;
const SAMPLE_BYTES: usize = 20;

/// A decoded frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame<T> {
    Message(T),
    Samples(Vec<HostSample>),
}

/// Appends a message as one frame.
pub(crate) fn write_message(out: &mut Vec<u8>, message: &impl Serialize) -> io::Result<()> {
    let begin = out.len();
    out.extend([0, 0, 0, 0, JSON]);
    serde_json::to_writer(&mut *out, message)?;
    finish(out, begin)
}

/// Appends samples as one frame; nothing for an empty list.
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

/// Reads frames up to a maximum size.
#[derive(Debug)]
pub(crate) struct FrameReader {
    buffer: Vec<u8>,
    bytes_max: usize,
}

impl FrameReader {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), bytes_max }
    }

    /// Whether part of a frame has been read.
    pub(crate) fn has_read(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next frame. Cancel-safe: no data is lost when the future is dropped.
    pub(crate) async fn next<T>(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Frame<T>>
    where
        T: for<'a> Deserialize<'a>,
    {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            // At most one frame is buffered, so that a flood waits in the kernel.
            if from.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Decodes a frame from the buffer, if it is complete.
    fn take<T: for<'a> Deserialize<'a>>(&mut self) -> io::Result<Option<Frame<T>>> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        // Errors of serde repeat what they did not expect, as long as it is.
        let shown =
            |error: &serde_json::Error| error.to_string().chars().take(200).collect::<String>();
        let Some((head, rest)) = self.buffer.split_at_checked(HEAD) else { return Ok(None) };
        let &[a, b, c, d, kind] = head else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > self.bytes_max {
            return Err(invalid(format!(
                "a frame of {length} bytes exceeds the limit of {}",
                self.bytes_max
            )));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = match kind {
            JSON => Frame::Message(
                serde_json::from_slice(payload)
                    .map_err(|error| invalid(format!("a frame: {}", shown(&error))))?,
            ),
            SAMPLES => {
                Frame::Samples(payload.chunks_exact(SAMPLE_BYTES).filter_map(sample).collect())
            }
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

/// For the mutation tests: whether what an agent, and what a run, reads of these bytes is the same
/// when it is written and read again.
#[doc(hidden)]
#[must_use]
pub fn frames_survive(bytes: &[u8]) -> bool {
    survive::<Request>(bytes, REQUEST_BYTES_MAX) && survive::<Response>(bytes, RESPONSE_BYTES_MAX)
}

fn survive<T: for<'a> Deserialize<'a> + Serialize>(bytes: &[u8], bytes_max: usize) -> bool {
    let read = |bytes: &[u8], bytes_max: usize| -> Vec<Frame<T>> {
        let mut reader = FrameReader { buffer: bytes.to_vec(), bytes_max };
        std::iter::from_fn(|| reader.take().ok().flatten()).collect()
    };
    let write = |frames: &[Frame<T>]| -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        for frame in frames {
            match frame {
                Frame::Message(message) => write_message(&mut out, message)?,
                Frame::Samples(samples) => write_samples(&mut out, samples)?,
            }
        }
        Ok(out)
    };
    let Ok(once) = write(&read(bytes, bytes_max)) else { return false };
    // Written anew a message may be longer: a number in all its digits.
    write(&read(&once, RESPONSE_BYTES_MAX)).is_ok_and(|again| again == once)
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
    fn invalid_frames_are_errors() {
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
