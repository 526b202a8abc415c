//! Messages of the DevTools protocol over two pipes: JSON, each ended by a NUL byte
//! (`--remote-debugging-pipe`).

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

use serde_json::Value;

/// Largest message; no requested one is larger.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// This process's ends of both pipes.
#[derive(Debug)]
pub(crate) struct Pipe {
    commands: PipeWriter,
    answers: PipeReader,
    received: Vec<u8>,
}

/// Why there is no message.
#[derive(Debug)]
pub(crate) enum NoMessage {
    /// None arrived in time.
    Late,
    /// The other side closed the pipe, or sent something that is not a message.
    Gone,
}

impl Pipe {
    pub(crate) fn new(commands: PipeWriter, answers: PipeReader) -> Self {
        Self { commands, answers, received: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) -> Result<(), NoMessage> {
        let mut text = message.to_string().into_bytes();
        text.push(0);
        self.commands.write_all(&text).map_err(|_| NoMessage::Gone)
    }

    /// The next message, if one is complete by `until`.
    pub(crate) fn receive(&mut self, until: Instant) -> Result<Value, NoMessage> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.received.drain(..=end).collect();
                let text = message.strip_suffix(&[0]).unwrap_or(&message);
                return Ok(serde_json::from_slice(text).unwrap_or_default());
            }
            if self.received.len() > MESSAGE_BYTES_MAX {
                return Err(NoMessage::Gone);
            }
            if !is_readable(&self.answers, until) {
                return Err(NoMessage::Late);
            }
            let mut chunk = [0_u8; 16 << 10];
            match self.answers.read(&mut chunk) {
                Ok(0) => return Err(NoMessage::Gone),
                Ok(n) => self.received.extend_from_slice(chunk.get(..n).unwrap_or(&chunk)),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(NoMessage::Gone),
            }
        }
    }
}

/// Waits until data or the end of the pipe can be read.
fn is_readable(pipe: &PipeReader, until: Instant) -> bool {
    loop {
        let left_ms = until.saturating_duration_since(Instant::now()).as_millis();
        let mut wanted = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `wanted` is one pollfd and lives through the call.
        let ready =
            unsafe { libc::poll(&raw mut wanted, 1, i32::try_from(left_ms).unwrap_or(i32::MAX)) };
        if ready > 0 {
            return true;
        }
        // Waits again after a signal interrupted it.
        if ready == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::pipe;

    #[test]
    fn messages_are_split_as_sent_and_the_end_is_reported() {
        let (answers, mut theirs) = pipe().unwrap();
        let (mut commands, ours) = pipe().unwrap();
        let mut pipe = Pipe::new(ours, answers);
        pipe.send(&json!({ "id": 1 })).unwrap();
        let mut sent = [0_u8; 9];
        commands.read_exact(&mut sent).unwrap();
        assert_eq!(&sent, b"{\"id\":1}\0");
        theirs.write_all(b"{\"id\":1}\0no json\0{\"id\"").unwrap();
        let until = Instant::now() + std::time::Duration::from_secs(5);
        assert_eq!(pipe.receive(until).unwrap(), json!({ "id": 1 }));
        assert_eq!(pipe.receive(until).unwrap(), Value::Null);
        assert!(matches!(pipe.receive(Instant::now()), Err(NoMessage::Late)));
        drop(theirs);
        assert!(matches!(pipe.receive(until), Err(NoMessage::Gone)));
    }
}
