//! Results on standard output, and messages on standard error. Whoever says a message waits for no
//! terminal; the message waits while a full-screen view has it. Both are escaped, so that text from
//! other programs cannot control the terminal.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_observation::untrusted;

use super::writer::{self, Stream};

/// Messages that wait for the end of the full-screen view, while there is one.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a result. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    writer::write(Stream::Out, untrusted::lines(text).as_bytes());
}

/// Prints JSON. Control characters become JSON escapes, which have the same value.
pub(crate) fn print_json(text: &str) {
    print(&untrusted::json(text));
}

/// Prints a message of one line, now or after the full-screen view. Line ends in quoted text are
/// escaped.
pub(crate) fn say(text: &str) {
    say_lines(&untrusted::line(text));
}

/// Prints a message of several lines. Foreign text in it must already be escaped to one line.
pub(crate) fn say_lines(text: &str) {
    match &mut *held() {
        Some(lines) => lines.push(text.to_owned()),
        None => print_message(text),
    }
}

/// Where tracing writes its log: standard error, escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        writer::log(Stream::Err, untrusted::lines(&text).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lets messages wait, because a full-screen view takes the terminal.
pub(crate) fn hold_messages() {
    held().get_or_insert_default();
}

/// Prints the messages that waited.
pub(crate) fn flush_messages() {
    released().iter().for_each(|line| print_message(line));
}

fn released() -> Vec<String> {
    held().take().unwrap_or_default()
}

fn print_message(text: &str) {
    writer::tell(Stream::Err, format!("{}\n", untrusted::lines(text)).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_under_a_screen_comes_after_it_in_order() {
        hold_messages();
        say("a first load passed");
        hold_messages();
        say("a second load failed");
        let said = released();
        let own: Vec<&String> = said.iter().filter(|line| line.contains("load")).collect();
        assert_eq!(own, ["a first load passed", "a second load failed"]);
        hold_messages();
        say("its words were: \u{1b}[2J\nwarning: forged");
        say_lines("two\n  lines");
        assert_eq!(released(), ["its words were: \\u{1b}[2J\\nwarning: forged", "two\n  lines"]);
        assert!(released().is_empty());
    }
}
