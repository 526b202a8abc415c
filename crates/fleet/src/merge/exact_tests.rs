//! The merge is exact: what N workers play of a crowd adds up to what one machine plays of all of
//! it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use throng_observation::run::{CohortId, CrowdRow, SentRow, SeriesRow, SourceFps};
use throng_observation::{
    CaptureBasis, ChatCounters, ChatRow, Clause, ExperienceRow, MediaKind, PlaybackCounters,
    PlaybackRow, SecondClosed, SentCounters, TrackCounters,
};

use super::tests::{LIMITS, names};
use super::*;
use crate::inbox::{Arrival, Inbox};
use crate::rows_tests::{Numbers, said};
use crate::wire::{self, WireLimits};

const COHORTS: u16 = 2;

/// One participant's second, from which rows are made as an engine makes them: sample by sample.
#[derive(Clone, Copy)]
struct Person {
    cohort: u16,
    seed: u64,
}

/// The rows of a second of these people on one machine.
fn second_of_people(second: i64, people: &[Person], is_limited: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut experience = Vec::new();
    let (mut all_series, mut all_sent, mut players, mut chats) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for cohort in 0..COHORTS {
        let people = || people.iter().filter(|person| person.cohort == cohort);
        let mut crowd = CrowdRow { second, cohort: CohortId(cohort), ..CrowdRow::default() };
        let mut quality =
            ExperienceRow { second, cohort: CohortId(cohort), ..ExperienceRow::default() };
        let mut playback =
            PlaybackRow { second, cohort: CohortId(cohort), ..PlaybackRow::default() };
        let mut chat = ChatRow { second, cohort: CohortId(cohort), ..ChatRow::default() };
        let mut series: BTreeMap<MediaKind, SeriesRow> = BTreeMap::new();
        let mut sent: BTreeMap<MediaKind, SentRow> = BTreeMap::new();
        for person in people() {
            let mut n = Numbers(person.seed ^ second as u64);
            crowd.intended += 1;
            crowd.connected += n.below(2) as u32;
            crowd.ice[n.below(6) as usize] += 1;
            quality.users += 1;
            if n.below(3) == 0 {
                quality.bad += 1;
                quality.uncounted_milli += n.below(1_000) as u32;
                quality.clauses[n.below(Clause::ALL.len() as u64) as usize] += 1;
            }
            for kind in [MediaKind::Audio, MediaKind::Video] {
                let row = series.entry(kind).or_insert_with(|| SeriesRow {
                    second,
                    cohort: CohortId(cohort),
                    kind: Some(kind),
                    ..SeriesRow::default()
                });
                track(row, &mut n);
                let row = sent.entry(kind).or_insert(SentRow {
                    second,
                    cohort: CohortId(cohort),
                    kind,
                    tracks: 0,
                    counters: SentCounters::default(),
                });
                row.tracks += 1;
                row.counters +=
                    SentCounters { packets_sent: n.below(999), ..SentCounters::default() };
            }
            playback.players += 1;
            playback.stalled += n.below(2) as u32;
            playback.counters +=
                PlaybackCounters { played_us: n.below(1_000_000), ..PlaybackCounters::default() };
            playback.buffer_us.record(n.below(30_000_000));
            playback.capture_latency_us.record(n.below(1 << 40));
            *playback.dates_ahead.get_or_insert(0) += n.below(2) as u32;
            chat.members += 1;
            chat.occupants_max = chat.occupants_max.max(n.below(40) as u32);
            chat.counters += ChatCounters { messages_due: n.below(9), ..ChatCounters::default() };
            (0..n.below(9)).for_each(|_| chat.delay_us.record(n.below(900_000)));
        }
        experience.push(quality);
        rows.push(Row::Crowd(crowd));
        all_series.extend(series.into_values().map(|row| Row::Series(Box::new(row))));
        all_sent.extend(sent.into_values().map(Row::Sent));
        if people().next().is_some() {
            players.push(Row::Playback(Box::new(playback)));
            chats.push(Row::Chat(Box::new(chat)));
        }
    }
    let closed = SecondClosed { second, experience, is_generator_limited: is_limited };
    [rows, all_series, all_sent, players, chats, vec![Row::SecondClosed(closed)]].concat()
}

/// Adds a track's second.
fn track(row: &mut SeriesRow, n: &mut Numbers) {
    row.tracks += 1;
    row.tracks_below_source_fps += n.below(2);
    row.counters += TrackCounters {
        packets_original: n.below(1_000),
        packets_lost: n.below(20) as i64 - 5,
        active_us: 1_000_000,
        ..TrackCounters::default()
    };
    (0..30).for_each(|_| row.relative_delay_us.record(n.below(200_000)));
    let basis = CaptureBasis::ALL[n.below(3) as usize];
    (0..10).for_each(|_| row.absolute_delay.record(basis, n.below(200_000) as i32 - 900));
    row.jitter_us.record(n.below(90_000));
    row.fps_milli.record(n.below(60_000));
    row.loss_ppm.record(n.below(1_000_000));
    row.oven_rtc_tester_delay_us.record(n.below(9_000));
    row.picture_lines.record(n.below(2_160));
    if n.below(3) > 0 {
        row.source_fps += SourceFps { tracks: 1, sum_milli: 20_000 + n.below(40_000) };
    }
}

/// Takes batches at random from any worker, some of them twice and out of order, until all have
/// been taken.
fn play(batches: &[Vec<Vec<u8>>], numbers: &mut Numbers) -> (Vec<Row>, Merger) {
    let limits = WireLimits::default();
    let mut merger = Merger::new(&names(batches.len()), LIMITS);
    let mut inboxes = vec![Inbox::new(1 << 20); batches.len()];
    let mut out = Vec::new();
    let mut left: Vec<Vec<u64>> =
        batches.iter().map(|batches| (0..batches.len() as u64).collect()).collect();
    while left.iter().any(|numbers| !numbers.is_empty()) {
        let worker = numbers.below(batches.len() as u64) as usize;
        let Some(at) =
            left[worker].len().checked_sub(1).map(|last| numbers.below(last.min(4) as u64 + 1))
        else {
            continue;
        };
        let number = left[worker][at as usize];
        if numbers.below(4) > 0 {
            left[worker].remove(at as usize);
        }
        let arrival = inboxes[worker].take(number, batches[worker][number as usize].clone());
        assert_ne!(arrival, Arrival::NoRoom);
        while let Some((_, bytes)) = inboxes[worker].pop() {
            for row in wire::decode(&bytes, limits).unwrap() {
                assert_eq!(merger.take(WorkerId(worker as u16), row, &mut out), Taken::Yes);
            }
        }
    }
    (0..batches.len()).for_each(|worker| merger.finished(WorkerId(worker as u16), [], &mut out));
    (out, merger)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shares_add_up_to_what_one_machine_plays(
        seed in any::<u64>(),
        workers in 1..5_usize,
        people in 0..30_u64,
        seconds in 1..6_i64,
    ) {
        let mut numbers = Numbers(seed);
        let crowd: Vec<Person> =
            (0..people).map(|_| Person { cohort: numbers.below(COHORTS.into()) as u16, seed: numbers.next() }).collect();
        let limited = |second, worker| (second + worker) % 5 == 0;
        let share = |worker| crowd.iter().skip(worker).step_by(workers).copied().collect::<Vec<_>>();
        let shares: Vec<Vec<Vec<u8>>> = (0..workers)
            .map(|worker| {
                let rows = |second| second_of_people(second, &share(worker), limited(second, worker as i64));
                (0..seconds).map(|second| wire::encode(&rows(second), WireLimits::default()).unwrap()).collect()
            })
            .collect();
        let (merged, merger) = play(&shares, &mut numbers);
        let whole: Vec<Row> = (0..seconds)
            .flat_map(|second| {
                let is_limited = (0..workers as i64).any(|worker| limited(second, worker));
                second_of_people(second, &crowd, is_limited)
            })
            .collect();
        prop_assert_eq!(said(&merged), said(&whole));
        for worker in (0..workers as u16).map(WorkerId) {
            prop_assert_eq!(merger.counts(worker), Counts::default());
            prop_assert_eq!(merger.watermark(worker), Some(seconds - 1));
        }
        prop_assert_eq!(merger.seconds_kept(), 0);
    }

    #[test]
    fn the_order_in_which_workers_are_heard_changes_nothing(seed in any::<u64>(), workers in 1..5_usize) {
        let mut numbers = Numbers(seed);
        let shares: Vec<Vec<Vec<u8>>> = (0..workers as u32)
            .map(|worker| {
                let mut batches = Vec::new();
                for second in 0..5 {
                    let mut rows = Vec::new();
                    for cohort in 0..COHORTS {
                        rows.push(Row::Crowd(numbers.crowd(second, cohort)));
                        rows.push(Row::Series(Box::new(numbers.series(second, cohort, MediaKind::Video))));
                        rows.push(Row::Sent(numbers.sent(second, cohort, MediaKind::Audio)));
                        rows.push(Row::Playback(Box::new(numbers.playback(second, cohort))));
                        rows.push(Row::Chat(Box::new(numbers.chat(second, cohort))));
                    }
                    rows.push(Row::Generator(numbers.generator(second, None)));
                    let path = numbers.below(4);
                    rows.push(Row::HttpRequests(Box::new(numbers.requests(path, second as u64))));
                    rows.push(Row::SecondClosed(numbers.closed(second, COHORTS)));
                    rows.push(Row::Participant(Box::new(numbers.participant(worker * 10 + second as u32, None))));
                    batches.push(wire::encode(&rows, WireLimits::default()).unwrap());
                }
                batches
            })
            .collect();
        let of_seconds = |rows: &[Row]| {
            let is_summed = |row: &&Row| !matches!(row, Row::Participant(_) | Row::HttpRequests(_));
            said(&rows.iter().filter(is_summed).cloned().collect::<Vec<_>>())
        };
        // Of requests the last row of a key counts.
        let requests = |rows: &[Row]| {
            let mut last = BTreeMap::new();
            for row in rows {
                if let Row::HttpRequests(row) = row {
                    last.insert(row.key.clone(), (row.counters, row.first_at, row.last_at));
                }
            }
            last
        };
        let (first, _) = play(&shares, &mut numbers);
        for _ in 0..3 {
            let (other, _) = play(&shares, &mut numbers);
            prop_assert_eq!(of_seconds(&other), of_seconds(&first));
            prop_assert_eq!(requests(&other), requests(&first));
            prop_assert_eq!(other.iter().filter(|row| matches!(row, Row::Participant(_))).count(), 5 * workers);
        }
    }
}
