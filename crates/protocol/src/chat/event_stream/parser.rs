//! The parser of event streams (HTML standard, section 9.2.6 "Interpreting an event stream").

use std::time::Duration;

/// Longest line, and longest data of one event, bytes.
const LEN_MAX: usize = 1 << 20;

/// Longest name of an event, bytes. Who reads a template's chat repeats it before each line of the
/// data.
const NAME_LEN_MAX: usize = 256;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    /// Its type; `message` where the stream gives none.
    pub name: String,
    /// Its data, lines separated by line feeds.
    pub data: String,
}

/// A line or an event that no chat has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {LEN_MAX} bytes, or with a name of more than {NAME_LEN_MAX}")]
pub struct EventTooLong;

/// Reads the stream of one connection, in pieces of any size.
#[derive(Debug, Default)]
pub struct EventParser {
    line: Vec<u8>,
    is_past_first_line: bool,
    /// The last byte was a carriage return: a line feed after it ends no other line.
    follows_return: bool,
    name: String,
    data: String,
    /// The id of the event that is being read, and that of the last one that was complete.
    id: String,
    last_event_id: String,
    retry: Option<Duration>,
}

impl EventParser {
    /// `last_event_id`: that of the connection before; it stays until the stream gives another one.
    #[must_use]
    pub fn new(last_event_id: String) -> Self {
        Self { id: last_event_id.clone(), last_event_id, ..Self::default() }
    }

    /// What is sent as `Last-Event-ID` by the next connection; empty: nothing.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The time until the next connection, where the stream has said it.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Reads the next bytes: the events that are complete now.
    ///
    /// # Errors
    /// When an event is too long.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<StreamEvent>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if std::mem::take(&mut self.follows_return) && *first == b'\n' {
                rest = after;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.add(rest)?;
                break;
            };
            let (line, ending) = rest.split_at(end);
            self.add(line)?;
            self.follows_return = ending.first() == Some(&b'\r');
            rest = ending.get(1..).unwrap_or_default();
            events.extend(self.end_line()?);
        }
        Ok(events)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > LEN_MAX {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<StreamEvent>, EventTooLong> {
        let line = std::mem::take(&mut self.line);
        let mut bytes = line.as_slice();
        if !std::mem::replace(&mut self.is_past_first_line, true) {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        if bytes.is_empty() {
            return Ok(self.dispatch());
        }
        // No line end is a part of another character, so that each line can be decoded by itself.
        let text = String::from_utf8_lossy(bytes);
        // A comment has an empty name.
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        self.field(field, value.strip_prefix(' ').unwrap_or(value))?;
        Ok(None)
    }

    fn field(&mut self, field: &str, value: &str) -> Result<(), EventTooLong> {
        match field {
            "event" if value.len() > NAME_LEN_MAX => return Err(EventTooLong),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.data.len() + value.len() > LEN_MAX {
                    return Err(EventTooLong);
                }
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
        Ok(())
    }

    /// An empty line: the event is complete. Without data it is none, but its id counts.
    fn dispatch(&mut self) -> Option<StreamEvent> {
        self.last_event_id.clone_from(&self.id);
        let (name, mut data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        data.pop()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(StreamEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String)>, EventParser) {
        let mut parser = EventParser::new(String::new());
        let events = parser.feed(text.as_bytes()).unwrap();
        (events.into_iter().map(|event| (event.name, event.data)).collect(), parser)
    }

    #[test]
    fn the_examples_of_the_standard_are_read_as_it_says() {
        for (text, expect) in [
            ("data: YHOO\ndata: +2\ndata: 10\n\n", &[("message", "YHOO\n+2\n10")][..]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
                &[("message", "first event"), ("message", "second event")],
            ),
            ("data\n\ndata\ndata\n\ndata:", &[("message", ""), ("message", "\n")]),
            ("data:test\n\ndata: test\n\n", &[("message", "test"), ("message", "test")]),
            ("event: add\ndata: 73857293\n\n", &[("add", "73857293")]),
            ("event: add\n\ndata: x\n\n", &[("message", "x")]),
            ("data: a\r\ndata: b\rdata: c\n\r\n", &[("message", "a\nb\nc")]),
            ("\u{feff}data: x\n\n\u{feff}data: y\n\n", &[("message", "x")]),
            ("DATA: x\n data: y\nevent\ndata:z: \n\n", &[("message", "z: ")]),
            ("data: \u{e4}\n\n", &[("message", "\u{e4}")]),
            ("", &[]),
        ] {
            let expect: Vec<_> =
                expect.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
            assert_eq!(read(text).0, expect, "{text:?}");
        }
        let mut parser = EventParser::new(String::new());
        let events = parser.feed(b"data: \xff\xc3\n\n").unwrap();
        assert_eq!(events[0].data, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn ids_count_once_their_event_is_complete_and_stay() {
        for (text, id) in [
            ("id: 1\ndata: x\n\n", "1"),
            ("id: 1\ndata: x\n\nid: 2\ndata: y\n", "1"),
            ("id: 1\n\ndata: x\n\n", "1"),
            ("id: 1\n\nid\n\n", ""),
            ("id: 1\n\nid: a\0b\n\n", "1"),
        ] {
            assert_eq!(read(text).1.last_event_id(), id, "{text:?}");
        }
        let mut again = EventParser::new("7".to_owned());
        again.feed(b"data: x\n\n").unwrap();
        assert_eq!(again.last_event_id(), "7");
    }

    #[test]
    fn the_time_until_the_next_connection_is_digits_only() {
        for (text, expect) in [
            ("retry: 1500\n", Some(1_500)),
            ("retry:0\n", Some(0)),
            ("retry: 1.5\n", None),
            ("retry: -1\n", None),
            ("retry\n", None),
            ("retry: 10\nretry: soon\n", Some(10)),
        ] {
            assert_eq!(read(text).1.retry(), expect.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn pieces_of_any_size_are_the_same_stream() {
        let text = "\u{feff}: hi\r\n\r\nevent: a\r\ndata: \u{1f600}\r\rdata: b\n\nretry: 5\nid: 3\ndata: c\r\n\r\n";
        let whole = read(text).0;
        for size in 1..8 {
            let mut parser = EventParser::new(String::new());
            let pieces = text.as_bytes().chunks(size);
            let events: Vec<_> = pieces.flat_map(|piece| parser.feed(piece).unwrap()).collect();
            let events: Vec<_> = events.into_iter().map(|event| (event.name, event.data)).collect();
            assert_eq!(events, whole, "{size}");
            assert_eq!(parser.last_event_id(), "3");
        }
        assert_eq!(whole.len(), 3);
    }

    #[test]
    fn an_event_without_an_end_does_not_fill_the_memory() {
        let mut line = EventParser::new(String::new());
        let piece = vec![b'x'; 100_000];
        assert!((0..20).any(|_| line.feed(&piece).is_err()));
        let mut lines = EventParser::new(String::new());
        let piece = format!("data: {}\n", "x".repeat(100_000));
        assert!((0..20).any(|_| lines.feed(piece.as_bytes()).is_err()));
        let named = |len: usize| format!("event: {}\ndata: x\n\n", "e".repeat(len));
        assert!(EventParser::new(String::new()).feed(named(NAME_LEN_MAX).as_bytes()).is_ok());
        assert!(EventParser::new(String::new()).feed(named(NAME_LEN_MAX + 1).as_bytes()).is_err());
    }
}
