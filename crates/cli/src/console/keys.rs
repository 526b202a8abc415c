//! The keys of the full-screen view: whether one of them asks to end.
//!
//! The terminal is asked what it has and never waited for: a key that begins a sequence and does
//! not end it (Alt+`[`, a lone Escape) is no reason to stand still.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What the kernel keeps of a terminal's input (`N_TTY_BUF_SIZE`).
const BUFFER_BYTES: usize = 4096;

/// Reads of one look, so that a file that is poured into the terminal cannot hold up the run.
const READS_MAX: usize = 16;

const CONTROL_C: u8 = 3;
const ESCAPE: u8 = 0x1b;

/// The input of the terminal that the view has.
pub(super) struct Keys(File);

impl Keys {
    /// Of standard input, or of the process's own terminal where that is something else.
    pub(super) fn of_terminal() -> io::Result<Self> {
        let input = io::stdin();
        if input.is_terminal() {
            return Ok(Self(File::from(input.as_fd().try_clone_to_owned()?)));
        }
        Ok(Self(File::open("/dev/tty")?))
    }

    /// Whether `q` or Ctrl-C was typed since the last look; in raw mode Ctrl-C is a key.
    pub(super) fn ask_to_leave(&mut self) -> bool {
        let mut typed = [0; BUFFER_BYTES];
        let mut asks = false;
        for _ in 0..READS_MAX {
            if !self.has_some() {
                break;
            }
            // A terminal that was closed has nothing to read, each time anew.
            match self.0.read(&mut typed) {
                Ok(0) | Err(_) => break,
                Ok(count) => asks |= asks_to_leave(&typed[..count]),
            }
        }
        asks
    }

    fn has_some(&self) -> bool {
        let mut wanted = [PollFd::new(&self.0, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut wanted, Some(&at_once)).is_ok() && wanted[0].revents().contains(PollFlags::IN)
    }
}

/// Where a byte of the input is.
enum Place {
    Text,
    /// After Escape.
    Escape,
    /// In a control sequence, up to its last byte (ECMA-48, 5.4).
    Sequence,
    /// Before the one byte of a function key (`ESC O`).
    Function,
}

/// Whether `q` is among the keys `typed`, or Ctrl-C anywhere. A sequence that was not finished is
/// over: terminals write each in one piece.
fn asks_to_leave(typed: &[u8]) -> bool {
    let mut place = Place::Text;
    for byte in typed {
        place = match (place, *byte) {
            (_, CONTROL_C) | (Place::Text, b'q') => return true,
            (_, ESCAPE) => Place::Escape,
            (Place::Escape, b'[') => Place::Sequence,
            (Place::Escape, b'O') => Place::Function,
            (Place::Sequence, 0x40..=0x7e) => Place::Text,
            (Place::Sequence, _) => Place::Sequence,
            (Place::Text | Place::Escape | Place::Function, _) => Place::Text,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_control_c_ask_to_leave_and_parts_of_other_keys_do_not() {
        for (typed, expect) in [
            (&b"q"[..], true),
            (b"abcq", true),
            (b"\x03", true),
            (b"\x1b[\x03", true),
            (b"\x1b[200~\x03", true),
            ("größer q".as_bytes(), true),
            // After another key: an arrow, F1, Alt+x.
            (b"\x1b[Aq", true),
            (b"\x1bOPq", true),
            (b"\x1bxq", true),
            (b"", false),
            (b"Q", false),
            (b"\x1b", false),
            (b"\x1b[", false),
            (b"\x1b]", false),
            (b"\x1bq", false),
            (b"\x1bOq", false),
            (b"\x1b[1;5q", false),
            (b"\x1b[M", false),
            (b"\xff\xfe\xc3", false),
        ] {
            assert_eq!(asks_to_leave(typed), expect, "{:?}", String::from_utf8_lossy(typed));
        }
    }
}
