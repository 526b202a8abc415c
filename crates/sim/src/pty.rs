//! A terminal for a program: what it shows there, what is typed, and the modes that it leaves.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::priority::BeforeOthers as _;
use crate::screen::{self, COLUMNS, LINES};

/// How often is looked whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a terminal does with what is typed and shown (termios(3)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Flags of input, output, control and local modes.
    pub flags: [libc::tcflag_t; 4],
    /// The characters with a meaning.
    pub characters: [libc::cc_t; libc::NCCS],
}

/// A terminal of 80 columns and 24 lines that a program has for itself, on all three standard
/// streams. The program is ended on drop.
pub struct Pty {
    child: Child,
    keyboard: File,
    /// Kept, so that the terminal and its modes are there after the end of the program.
    terminal: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    before: Modes,
}

impl Pty {
    /// Starts a program.
    ///
    /// # Errors
    /// There is no terminal left, or the program cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (keyboard, terminal) = open()?;
        let before = modes(&terminal)?;
        command.stdin(Stdio::from(terminal.try_clone()?));
        command.stdout(Stdio::from(terminal.try_clone()?));
        command.stderr(Stdio::from(terminal.try_clone()?));
        // SAFETY: the closure only makes system calls, which is allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            })
        };
        let child = command.spawn_before_others()?;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, all) = (keyboard.try_clone()?, Arc::clone(&shown));
        // Ends with an error when nobody has the terminal any more.
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut part) {
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(&part[..count]);
            }
        });
        Ok(Self { child, keyboard, terminal, shown, before })
    }

    /// Types `keys`.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn types(&mut self, keys: &[u8]) -> io::Result<()> {
        self.keyboard.write_all(keys)
    }

    /// Makes the terminal take no output any more, as Ctrl-S does.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn stops_output(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; the call takes two numbers.
        if unsafe { libc::tcflow(self.terminal.as_raw_fd(), libc::TCOOFF) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sends the program a signal, by the name that `kill` knows.
    ///
    /// # Errors
    /// `kill` cannot be started.
    pub fn signal(&self, name: &str) -> io::Result<ExitStatus> {
        Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()
    }

    /// All that the program has shown.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// The text that is on its screen now, line by line.
    #[must_use]
    pub fn screen(&self) -> String {
        screen::after(&self.shown())
    }

    /// Waits until `text` was shown; whether it was.
    #[must_use]
    pub fn shows_within(&self, text: &str, time: Duration) -> bool {
        let given_up_at = Instant::now() + time;
        while Instant::now() < given_up_at {
            if self.shown().contains(text) {
                return true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// Waits for the end of the program; `None` if it did not end.
    pub fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let given_up_at = Instant::now() + time;
        while Instant::now() < given_up_at {
            if let Ok(Some(status)) = self.child.try_wait() {
                // What it wrote last is read meanwhile.
                std::thread::sleep(5 * LOOK_EVERY);
                return Some(status);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        None
    }

    /// What is not as it was before the program: the modes, the screen, the cursor.
    #[must_use]
    pub fn left_behind(&self) -> Vec<&'static str> {
        let shown = self.shown();
        let last_is = |wanted: &str, other: &str| shown.rfind(wanted) >= shown.rfind(other);
        let kept = [
            (modes(&self.terminal).is_ok_and(|modes| modes == self.before), "other modes"),
            (last_is("\x1b[?1049l", "\x1b[?1049h"), "the alternate screen"),
            (last_is("\x1b[?25h", "\x1b[?25l"), "no cursor"),
        ];
        kept.into_iter().filter(|(is_kept, _)| !is_kept).map(|(_, what)| what).collect()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The two ends of a new terminal: of who types and reads, and of the program.
fn open() -> io::Result<(File, OwnedFd)> {
    let size = libc::winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut outer, mut inner) = (-1, -1);
    // SAFETY: the first two and the last point to values of this function; the others may be null.
    let result = unsafe {
        libc::openpty(
            &raw mut outer,
            &raw mut inner,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were opened just now, and nobody else has them.
    let (outer, inner) = unsafe { (OwnedFd::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) };
    // Clones, as those are closed in programs that are started; openpty's own are not.
    Ok((File::from(outer.try_clone()?), inner.try_clone()?))
}

fn modes(terminal: &OwnedFd) -> io::Result<Modes> {
    // SAFETY: a struct of integers, for which zero is a value.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the pointer is that of a value of this function.
    if unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag];
    Ok(Modes { flags, characters: modes.c_cc })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Pty {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Pty::start(command).unwrap()
    }

    #[test]
    fn what_is_typed_arrives_and_what_is_shown_is_seen() {
        let mut pty = shell("read line; echo \"<$line>\"");
        pty.types(b"hello\n").unwrap();
        assert!(pty.ends_within(Duration::from_secs(10)).is_some_and(|end| end.success()));
        assert!(pty.shown().contains("<hello>"), "{}", pty.shown());
        assert_eq!(pty.left_behind(), [""; 0]);
    }

    #[test]
    fn a_terminal_that_is_left_changed_is_seen() {
        for (script, what) in [
            ("stty raw", "other modes"),
            ("printf '\\033[?1049h'", "the alternate screen"),
            ("printf '\\033[?1049h\\033[?1049l\\033[?25l'", "no cursor"),
        ] {
            let mut pty = shell(script);
            assert!(pty.ends_within(Duration::from_secs(10)).is_some(), "{script}");
            assert_eq!(pty.left_behind(), [what], "{script}");
        }
    }
}
