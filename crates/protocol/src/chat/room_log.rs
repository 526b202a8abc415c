//! What was said in a room, by participants of this run.
//!
//! Each message carries its number in this log. Who receives it learns from that when it was meant
//! to be sent; and who was in the room when it was said can tell that it never came. All
//! participants of a room share one log, on one host: delays have no clock error.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The logs of all rooms, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct RoomLogs(Arc<Mutex<BTreeMap<String, RoomLog>>>);

impl RoomLogs {
    /// The log of the room of this address.
    #[must_use]
    pub fn log(&self, room: &str) -> RoomLog {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(room.to_owned()).or_default().clone()
    }
}

/// The log of one room.
#[derive(Clone, Debug, Default)]
pub struct RoomLog(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    messages: Vec<Logged>,
    /// The last message of each participant, by its number in the run.
    last: HashMap<u64, u64>,
}

/// A message of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    /// Which participant of this run says it.
    pub(super) who: u64,
    /// When it was due.
    pub(super) due_at: Instant,
    /// The message before it of the same participant. Only among these there is an order: messages
    /// of several participants reach the server on connections of their own.
    pub(super) before: Option<u64>,
}

impl RoomLog {
    /// Logs a message of participant `who` that was due at `due_at`; its number.
    pub(super) fn say(&self, who: u64, due_at: Instant) -> u64 {
        let mut said = self.lock();
        let number = said.messages.len() as u64;
        let before = said.last.insert(who, number);
        said.messages.push(Logged { who, due_at, before });
        number
    }

    /// Messages so far.
    pub(super) fn len(&self) -> u64 {
        self.lock().messages.len() as u64
    }

    /// Message `number`.
    pub(super) fn get(&self, number: u64) -> Option<Logged> {
        self.lock().messages.get(usize::try_from(number).ok()?).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most digits of a number of a message.
const DIGITS_MAX: usize = 20;

/// The mark of message `number` of the run `run`, which ends its text.
pub(super) fn mark(run: &str, number: u64) -> String {
    format!("[{run}.{number}]")
}

/// The number that the text of a message of this run ends with.
pub(super) fn marked(run: &str, text: &str) -> Option<u64> {
    let (_, mark) = text.strip_suffix(']')?.rsplit_once('[')?;
    mark.strip_prefix(run)?.strip_prefix('.')?.parse().ok()
}

/// The numbers of all messages of this run in a text, wherever they are in it.
pub(super) fn marks<'a>(run: &'a str, text: &'a str) -> impl Iterator<Item = u64> + 'a {
    let read = move |after: &str| {
        let rest = after.strip_prefix(run)?.strip_prefix('.')?;
        // No further than the longest mark: a text of marks without an end would be read once for
        // each of them.
        let end = rest.bytes().take(DIGITS_MAX + 1).position(|byte| byte == b']')?;
        let digits = rest.get(..end)?;
        digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.match_indices('[').filter_map(move |(at, _)| read(text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_at_the_end_of_the_text_of_the_same_run_only() {
        let text = format!("nice [stream] {}", mark("k3f9", 17));
        assert_eq!(
            (marked("k3f9", &text), marked("k3f", &text), marked("other", &text)),
            (Some(17), None, None)
        );
        for text in [
            "",
            "]",
            "[]",
            "[k3f9]",
            "[k3f9.]",
            "[k3f9.-1]",
            "[k3f9.1] and more",
            "[k3f9.99999999999999999999]",
        ] {
            assert_eq!(marked("k3f9", text), None, "{text}");
        }
    }

    #[test]
    fn marks_are_found_anywhere_in_a_text() {
        let all = |text: &str| marks("k3f9", text).collect::<Vec<_>>();
        assert_eq!(all(r#"[{"text":"yes [k3f9.3]"},{"text":"no [k3f9.17]","of":[1]}]"#), [3, 17]);
        for text in [
            "",
            "[",
            "[k3f9.",
            "[k3f9.]",
            "[k3f9.+1]",
            "[k3f9.-1]",
            "[k3f9.1",
            "[k3f99.1]",
            "[é.1]",
        ] {
            assert!(all(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn marks_without_an_end_are_not_read_to_the_end_of_the_text() {
        let text = format!("{}{}", "[k3f9.7".repeat(150_000), mark("k3f9", u64::MAX));
        let began = Instant::now();
        assert_eq!(marks("k3f9", &text).collect::<Vec<_>>(), [u64::MAX]);
        // Read to the end each time it is 80 GB.
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
        let long = format!("[k3f9.{}1]", "0".repeat(30));
        assert_eq!(marks("k3f9", &long).count(), 0);
    }

    #[test]
    fn all_who_share_a_log_number_its_messages_together() {
        let (log, now) = (RoomLog::default(), Instant::now());
        let other = log.clone();
        assert_eq!((log.say(7, now), other.say(8, now), log.say(7, now)), (0, 1, 2));
        let logged = |who, before| Some(Logged { who, due_at: now, before });
        assert_eq!(
            (log.len(), other.get(1), other.get(2), other.get(3)),
            (3, logged(8, None), logged(7, Some(0)), None)
        );
    }
}
