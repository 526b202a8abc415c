//! Who hears all that is said on the bus of a fleet, as any client of it may.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use throng_fleet::wire::{self, WireLimits};
use throng_observation::RunTime;
use throng_observation::run::{EventRow, Row};

/// A message: its subject, and its headers with what it says.
pub(super) type BusMessage = (String, Vec<u8>);

/// A client of the bus that subscribes to every subject.
pub(super) struct BusListener {
    stream: TcpStream,
    listening: JoinHandle<Vec<BusMessage>>,
}

impl BusListener {
    /// Connects to `HOST:PORT`, and hears what is said from then on.
    pub(super) fn start(address: &str, user: &str, password: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        let options = format!(
            "{{\"verbose\":false,\"headers\":true,\"user\":\"{user}\",\"pass\":\"{password}\"}}"
        );
        write!(stream, "CONNECT {options}\r\nSUB > 1\r\nPING\r\n").unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while !line.starts_with("PONG") {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the bus has left");
            assert!(!line.starts_with("-ERR"), "{line}");
        }
        let mut answers = stream.try_clone().unwrap();
        let listening = std::thread::spawn(move || {
            let mut heard = Vec::new();
            while let Some(message) = next(&mut reader, &mut answers) {
                heard.extend(message);
            }
            heard
        });
        Self { stream, listening }
    }

    /// What it has heard; it leaves.
    pub(super) fn heard(self) -> Vec<BusMessage> {
        self.stream.shutdown(Shutdown::Both).unwrap();
        self.listening.join().unwrap()
    }
}

/// The next line of the protocol, and the message that it begins, if it begins one; `None` at the
/// end.
fn next(reader: &mut BufReader<TcpStream>, answers: &mut TcpStream) -> Option<Option<BusMessage>> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        // `MSG SUBJECT SID [REPLY] BYTES`, `HMSG SUBJECT SID [REPLY] OF_HEADERS BYTES`.
        ["MSG" | "HMSG", subject, .., length] => {
            let mut said = vec![0; length.parse::<usize>().unwrap() + 2];
            reader.read_exact(&mut said).ok()?;
            Some(Some(((*subject).to_owned(), said)))
        }
        ["PING"] => {
            answers.write_all(b"PONG\r\n").ok()?;
            Some(None)
        }
        _ => Some(None),
    }
}

/// The rows of a message that has some, with their texts as they are: a message has them deflated.
pub(super) fn rows_of((subject, said): &BusMessage) -> Option<Vec<u8>> {
    if !subject.starts_with("throng.run.") || !subject.contains(".rows.") {
        return None;
    }
    let said = said.strip_suffix(b"\r\n")?;
    let headers = said.windows(4).position(|at| at == b"\r\n\r\n");
    let batch = match headers.filter(|_| said.starts_with(b"NATS/1.0")) {
        Some(end) => &said[end + 4..],
        None => said,
    };
    let rows = wire::decode(batch, WireLimits::default()).unwrap();
    Some(rows.iter().fold(Vec::new(), |plain, row| postcard::to_extend(row, plain).unwrap()))
}

#[test]
fn a_word_of_a_row_is_seen_once_the_batch_is_unpacked() {
    let word = "a word of a row";
    let row = Row::Event(EventRow {
        at: RunTime(0),
        participant: None,
        kind: word.to_owned(),
        count: 1,
        detail: word.into(),
    });
    let batch = wire::encode(&[row], WireLimits::default()).unwrap();
    let has = |bytes: &[u8]| bytes.windows(word.len()).any(|at| at == word.as_bytes());
    assert!(!has(&batch));
    for headers in [&b""[..], b"NATS/1.0\r\nNats-Msg-Id: 0-1\r\n\r\n"] {
        let said = [headers, &batch, b"\r\n"].concat();
        let rows = rows_of(&("throng.run.a1.rows.0".to_owned(), said.clone())).unwrap();
        assert!(has(&rows), "{rows:?}");
        assert_eq!(rows_of(&("throng.run.a1.end.0".to_owned(), said)), None);
    }
}
