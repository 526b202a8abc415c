//! A brief fuzz that runs with every `cargo test`: messages, rows and spools, damaged in every
//! simple way. The seed is fixed, so a failure is reproducible; the long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

use std::io::Cursor;

use throng_fleet::message::{
    Build, Call, CrowdChange, Decision, End, Heartbeat, Offer, Order, Prepared, Pulse, Ready,
    Reassignment, Start, TimeAsked, TimeSaid, write,
};
use throng_fleet::spool::{Batch, BatchKind};
use throng_fleet::spool_file::SpoolFile;
use throng_fleet::wire::{self, WireLimits};
use throng_observation::run::{CohortId, EventRow, ParticipantId, Row, SeriesRow};
use throng_observation::{Distribution, RunTime, SecondClosed};

const ROUNDS: usize = 5_000;

#[test]
fn messages_hold_their_laws_for_any_bytes() {
    let build = Build { version: "0.1.0".into(), arch: "x86_64".into(), ..Build::default() };
    let change = CrowdChange::Add {
        participant: ParticipantId(7),
        cohort: CohortId(1),
        place: 3,
        at: RunTime(9),
        source_ip: Some(std::net::Ipv4Addr::LOCALHOST.into()),
    };
    let reassignment =
        Reassignment { number: 1, of: 2, to: vec![0, 1], from: RunTime(5), ended: vec![3, 9] };
    let beat = Heartbeat {
        start: Some(Start { at_unix_us: -1 }),
        stop: Some("enough".into()),
        changes: vec![(1, 0, change), (2, 1, CrowdChange::Remove(ParticipantId(7)))],
        lost: vec![2],
        reassigned: vec![reassignment.clone()],
        is_over: true,
    };
    let order = Order {
        run: "r".into(),
        worker: 1,
        weights: vec![1, 2],
        scenario: "[crowd]\nsize = 1\n".into(),
        overrides: vec![("crowd.size".into(), "2".into(), false)],
        seed: u64::MAX,
        added_participants_max: Some(9),
        reassigns: true,
    };
    let offer = Offer {
        id: "i".into(),
        name: "n".into(),
        build: build.clone(),
        cores: 2,
        weight: 3,
        index: Some(1),
    };
    let ready = Ready { mbit_per_s_max: Some(1.5), ..Ready::default() };
    let decision =
        Decision { worker: 2, gave_up: Some("silent".into()), reassignment: Some(reassignment) };
    let seeds = [
        write(&Call { run: "r".into(), build }),
        write(&offer),
        write(&order),
        write(&Prepared::Ready(ready)),
        write(&Prepared::Refused("no".into())),
        write(&beat),
        write(&Pulse { end: Some(End::default()), ..Pulse::default() }),
        write(&decision),
        write(&TimeAsked { sent_us: i64::MIN }),
        write(&TimeSaid { received_us: 1, sent_us: 2, word: None }),
    ]
    .map(|message| message.to_vec());
    hunt::hunt(laws::message, &seeds, hunt::TEXT, ROUNDS);
}

fn some_rows() -> Vec<Row> {
    let mut delays = Distribution::new();
    (0..300).for_each(|delay| delays.record(delay * delay));
    let mut wide = Distribution::new();
    (0..5_000).for_each(|value| wide.record(value << 20));
    let series = SeriesRow { relative_delay_us: delays, jitter_us: wide, ..SeriesRow::default() };
    let second = SecondClosed { second: 7, ..SecondClosed::default() };
    vec![Row::Series(Box::new(series)), Row::SecondClosed(second)]
}

#[test]
fn rows_hold_their_laws_for_any_bytes() {
    let limits = WireLimits::default();
    let rows = some_rows();
    let plain = wire::encode(&rows, limits).unwrap();
    // What is inside of a batch is damaged too: the law stores it as it is.
    let mut seeds = vec![plain];
    seeds.extend(rows.iter().map(|row| postcard::to_stdvec(row).unwrap()));
    let event = EventRow {
        at: RunTime(1),
        participant: Some(ParticipantId(7)),
        kind: "failed".into(),
        count: 1,
        detail: "why".into(),
    };
    seeds.push(postcard::to_stdvec(&Row::Event(event)).unwrap());
    let words: [&[u8]; 5] = [&[0xff; 5], &[0xff; 10], &[0x80], &[1, 0], &[0, 0xff, 0xff, 3]];
    hunt::hunt(laws::rows, &seeds, &words, ROUNDS);
}

#[test]
fn spools_hold_their_laws_for_any_bytes() {
    let (mut file, _) = SpoolFile::open(Cursor::new(Vec::new())).unwrap();
    for number in 0..4 {
        let kind = BatchKind::ALL[number as usize % 3];
        file.push(&Batch { number, kind, bytes: vec![9; 5 * number as usize] }).unwrap();
    }
    file.confirm(2).unwrap();
    let running = file.into_storage();
    let (mut file, _) = SpoolFile::open(running.clone()).unwrap();
    file.end(b"{}").unwrap();
    let ended = file.into_storage().into_inner();
    let words: [&[u8]; 5] = [&[0xfd], &[0xfe], &[0xff], &[0xff; 8], &[9, 0, 0, 0]];
    hunt::hunt(laws::spool, &[running.into_inner(), ended], &words, ROUNDS);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("fleet", laws::message);
    hunt::replay("rows", laws::rows);
    hunt::replay("spool", laws::spool);
}
