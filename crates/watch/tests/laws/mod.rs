//! What must hold of the parsers of logs, endpoints, agents and processes for any bytes.

#![allow(dead_code, reason = "a fuzz target checks one law")]

use throng_observation::RunTime;
use throng_observation::pack::EndpointKind;
use throng_watch::Reading;
use throng_watch::logs::{Lines, access};
use throng_watch::profiler::{names_in_any_maps, read_any_elf};
use throng_watch::remote::frames_survive;
use throng_watch::scrape::janus::EventCounter;
use throng_watch::scrape::{Filter, Rates, Round, SAMPLES_MAX, SERIES_MAX, parse};

/// A line is read or refused; what is read is plausible, and takes no more memory than the line
/// allows.
pub(crate) fn access_log(bytes: &[u8]) {
    let mut lines = Lines::default();
    let check = |line: &[u8]| {
        let Some(read) = access::parse(line) else { return };
        assert!(read.status <= 999);
        assert!(!read.path.contains('?'), "{:?}", read.path);
        // A byte that is no UTF-8 is replaced by three.
        assert!(read.path.len() + read.method.len() <= 3 * line.len());
        assert!(read.user_agent.is_none_or(|agent| agent.len() <= 3 * line.len()));
        assert!(read.at_unix_s.is_none_or(|at| (6e8..4e10).contains(&at)), "{:?}", read.at_unix_s);
        assert!(read.duration_ms.is_none_or(|ms| ms >= 0.0));
    };
    lines.push(bytes, |line| check(line.bytes));
    lines.finish(|line| check(line.bytes));
}

/// Queries of one scrape, and series of it besides those of the rates.
const QUERIES_MAX: usize = 1_000;
const LEVELS_MAX: usize = 10_000;

/// An endpoint: its kind as a digit, then the answers to two scrapes, with zero bytes between them.
/// It is asked a bounded number of times, at its own paths, and has a bounded number of series, all
/// of which are numbers.
pub(crate) fn scrape(bytes: &[u8]) {
    const KINDS: [EndpointKind; 5] = [
        EndpointKind::OpenMetrics,
        EndpointKind::NginxStatus,
        EndpointKind::LighttpdStatus,
        EndpointKind::JanusAdmin,
        EndpointKind::OvenMediaEngine,
    ];
    let Some((kind, text)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(kind.wrapping_sub(b'0')) % KINDS.len()];
    let (mut rates, mut answers) = (Rates::default(), text.split(|byte| *byte == 0).cycle());
    for second in 0..2 {
        let mut round = Round::new(kind, Some("secret"));
        let mut queries = 0;
        while let Some(query) = round.next_query() {
            queries += 1;
            assert!(queries <= QUERIES_MAX);
            assert!(query.path.is_none_or(|path| path.starts_with("/v1/") && path.len() < 300));
            if round.process(answers.next().unwrap_or_default()).is_err() {
                break;
            }
        }
        let at = RunTime(second * 1_000_000);
        let readings = round.finish(at, "e", &Filter::for_any(), &mut rates).unwrap_or_default();
        check(&readings);
    }
    let mut events = EventCounter::new("e", RunTime(0));
    events.read(text);
    check(&events.tick(RunTime(1_000_000)));
    let text = String::from_utf8_lossy(text);
    let read = parse(&text, |_| true);
    assert!(read.samples.len() <= SAMPLES_MAX);
    assert!(read.samples.iter().all(|sample| sample.value.is_finite() && sample.name.len() <= 200));
}

fn check(readings: &[Reading]) {
    assert!(readings.len() <= SERIES_MAX + LEVELS_MAX);
    for reading in readings {
        match reading {
            Reading::Value(series) => assert!(series.value.is_finite(), "{series:?}"),
            Reading::Event(..) => {}
        }
    }
}

/// What an agent and a run send each other: what is read is the same when it is written and read
/// again.
pub(crate) fn agent(bytes: &[u8]) {
    assert!(frames_survive(bytes));
}

/// A file of a watched process: a name is in it.
pub(crate) fn elf(bytes: &[u8]) {
    let named = read_any_elf(bytes, &ADDRESSES).expect("memory for the file");
    assert_eq!(named.len(), ADDRESSES.len());
    for name in named.iter().flatten().filter(|name| *name != b"[plt]") {
        assert!(bytes.windows(name.len()).any(|window| window == name), "{name:?}");
    }
}

/// Addresses in the seeds and at both ends, ascending.
const ADDRESSES: [u64; 7] = [0, 0x1000, 0x1004, 0x2008, 0x40_1000, 0xffff_ffff_8100_0100, u64::MAX];

/// What a process writes of its code, and the kernel of both: a name is in it, and mappings lie one
/// behind the other.
pub(crate) fn maps(bytes: &[u8]) {
    let (names, is_ordered) = names_in_any_maps(bytes, &ADDRESSES);
    assert!(is_ordered);
    let text = String::from_utf8_lossy(bytes);
    assert!(names.iter().flatten().all(|name| text.contains(name.as_str())));
}
