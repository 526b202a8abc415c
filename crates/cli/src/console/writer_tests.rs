//! A terminal that takes what it is told to take.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Longer than any of it takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A console on a terminal that takes one piece each time something is sent to the first end; what
/// it took comes from the second.
fn stopped(patience: Duration) -> (&'static Console, Sender<()>, Receiver<Vec<u8>>) {
    let console: &'static Console = Box::leak(Box::new(Console::new(patience)));
    let (open, opened) = channel::<()>();
    let (took, taken) = channel();
    let terminal = move |_: Stream, piece: &[u8]| {
        if opened.recv().is_err() {
            return Err(Errno::IO);
        }
        let _ = took.send(piece.to_vec());
        Ok(piece.len())
    };
    console.start(&mut console.state(), terminal);
    (console, open, taken)
}

/// A thread that writes, and what says that it no longer waits.
fn writer(console: &'static Console, text: &'static str) -> Receiver<()> {
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        console.write(Stream::Err, text.as_bytes());
        let _ = done.send(());
    });
    is_done
}

#[test]
fn who_is_asked_to_end_does_not_wait_for_a_terminal_that_takes_nothing() {
    let (console, open, taken) = stopped(Duration::ZERO);
    let is_done = writer(console, "first");
    console.end_is_asked();
    is_done.recv_timeout(LONG).unwrap();
    // It takes all in order, should it take something again.
    console.queue(Stream::Out, b"second".to_vec(), Kind::Passing);
    assert!(console.state().is_behind());
    for expect in ["first", "second"] {
        open.send(()).unwrap();
        assert_eq!(taken.recv_timeout(LONG).unwrap(), expect.as_bytes());
    }
}

#[test]
fn who_is_not_asked_waits_until_all_was_taken_and_frames_wait_for_nothing() {
    let (console, open, taken) = stopped(Duration::ZERO);
    console.queue(Stream::Out, vec![b'f'; PIECE_BYTES + 1], Kind::Passing);
    let is_done = writer(console, "text");
    for expect in [PIECE_BYTES, 1, 4] {
        assert!(is_done.try_recv().is_err());
        open.send(()).unwrap();
        assert_eq!(taken.recv_timeout(LONG).unwrap().len(), expect);
    }
    is_done.recv_timeout(LONG).unwrap();
    assert!(!console.state().is_behind());
}

/// Queues four texts of 1 MiB; returns how many of them were left out.
fn left_out_of_four(console: &'static Console, kind: Kind) -> u64 {
    for _ in 0..4 {
        console.queue(Stream::Err, vec![b'b'; PASSING_BYTES_MAX], kind);
    }
    std::mem::take(&mut console.state().left_out)
}

#[test]
fn a_terminal_that_is_stopped_for_long_keeps_no_more_than_so_much_waiting() {
    let (console, _open, _taken) = stopped(Duration::ZERO);
    assert_eq!(left_out_of_four(console, Kind::Passing), 2);
    assert_eq!(console.state().waiting_bytes, 2 * PASSING_BYTES_MAX);
    assert_eq!(left_out_of_four(console, Kind::Said), 3, "what is said has room of its own");
    assert_eq!(console.state().waiting_bytes, 3 * PASSING_BYTES_MAX);
}

#[test]
fn a_result_is_left_out_only_once_the_end_was_asked_and_a_mode_never() {
    let (console, _open, _taken) = stopped(Duration::ZERO);
    left_out_of_four(console, Kind::Passing);
    assert_eq!(left_out_of_four(console, Kind::Modes), 0);
    let is_done = writer(console, "result");
    let until = Instant::now() + LONG;
    while console.state().waiting.back() != Some(&(Stream::Err, b"result".to_vec())) {
        assert!(Instant::now() < until, "it is not queued");
        std::thread::yield_now();
    }
    assert!(is_done.try_recv().is_err(), "it is not waited for");
    console.end_is_asked();
    is_done.recv_timeout(LONG).unwrap();
    assert_eq!(left_out_of_four(console, Kind::Result), 4);
    assert_eq!(left_out_of_four(console, Kind::Modes), 0);
}

#[test]
fn how_much_was_left_out_is_told_before_what_is_said_next() {
    let (console, _open, _taken) = stopped(Duration::ZERO);
    for _ in 0..2 {
        console.queue(Stream::Err, vec![b'b'; PASSING_BYTES_MAX + 1], Kind::Passing);
    }
    console.queue(Stream::Out, b"mode".to_vec(), Kind::Modes);
    console.queue(Stream::Err, b"said".to_vec(), Kind::Said);
    console.queue(Stream::Err, b"once".to_vec(), Kind::Said);
    let state = console.state();
    let last = state.waiting.iter().rev().take(4).map(|(_, text)| String::from_utf8_lossy(text));
    assert_eq!(last.collect::<Vec<_>>(), ["once", "said", left_out(1).as_str(), "mode"]);
}

#[test]
fn a_terminal_that_was_closed_holds_nobody() {
    let (console, open, _taken) = stopped(Duration::ZERO);
    drop(open);
    writer(console, "text").recv_timeout(LONG).unwrap();
}

#[test]
fn patience_begins_when_the_end_is_asked_and_anew_whenever_something_is_taken() {
    let (console, _open, _taken) = stopped(PATIENCE);
    let mut state = console.state();
    let begin = Instant::now();
    let at = |seconds: u64| begin + Duration::from_secs(seconds);
    let mut left = |moved_s: Option<u64>, asked_s: Option<u64>, now_s: u64| {
        (state.moved_at, state.asked_at) = (moved_s.map(at), asked_s.map(at));
        state.patience_left(Duration::from_secs(2), at(now_s)).map(|left| left.as_secs())
    };
    assert_eq!(left(Some(0), None, 100), None);
    assert_eq!(left(None, Some(10), 11), Some(1));
    assert_eq!(left(Some(0), Some(10), 10), Some(2));
    assert_eq!(left(Some(0), Some(10), 13), Some(0));
    assert_eq!(left(Some(12), Some(10), 13), Some(1));
    assert_eq!(left(Some(13), Some(10), 13), Some(2));
}
