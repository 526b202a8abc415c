//! What is said to the person beside the result: on the error stream, so that `--json` keeps the output to itself, and not
//! into the middle of a screen.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_observation::untrusted;

/// What waits for the screen to go, while there is one.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a result on the output stream; a reader that went away is not an error. The last gate before a terminal: what
/// would do something to it is written out.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(untrusted::lines(text).as_bytes());
}

/// Prints JSON: what a terminal would act on stands as escapes, which read as the same value.
pub(crate) fn print_json(text: &str) {
    print(&untrusted::json(text));
}

/// Says a line, at once or when the screen has gone. It stays one line and does nothing to the terminal, whoever wrote
/// what it quotes.
pub(crate) fn say(text: &str) {
    say_lines(&untrusted::line(text));
}

/// Says a text of ours that may have several lines; what it quotes of others must be one line already.
pub(crate) fn say_lines(text: &str) {
    match &mut *held() {
        Some(lines) => lines.push(text.to_owned()),
        None => print_message(text),
    }
}

/// What a log of ours is written through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::stderr().lock().write_all(untrusted::lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// A screen takes the terminal: what is said from here on waits.
pub(crate) fn hold_messages() {
    held().get_or_insert_default();
}

/// The screen has gone: says what waited.
pub(crate) fn flush_messages() {
    released().iter().for_each(|line| print_message(line));
}

fn released() -> Vec<String> {
    held().take().unwrap_or_default()
}

#[expect(clippy::print_stderr, reason = "the one place that writes messages")]
fn print_message(text: &str) {
    eprintln!("{}", untrusted::lines(text));
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
