//! The protocol under every interleaving that the memory model allows: `scripts/loom.sh`.
//!
//! Payload is a loom cell a unit, so that a write that races a read is found. Each model counts how
//! often its interesting branch ran and fails if it never did: a model that does not reach it
//! proves nothing.

use std::sync::atomic::{AtomicUsize, Ordering as Std};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::claim::{self, CachedPositions, ClaimAttempt, Descriptor, Eviction};
use crate::cursor::Cursor;
use crate::layout::Geometry;
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord, UNIT};
use crate::producer_wakeup;
use crate::release_batch::ReleaseBatch;
use crate::sync::Ordering::{Acquire, Release};
use crate::wake::{self, Sleep};

struct Ring {
    memory: Memory,
    payload: Vec<UnsafeCell<u64>>,
}

// SAFETY: the cells are what the protocol guards, and loom reports an access that it does not.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

fn ring(slots: u32) -> Arc<Ring> {
    let geometry = Geometry { slots, arena_bytes: slots as usize * UNIT };
    let payload = (0..slots).map(|_| UnsafeCell::new(0)).collect();
    Arc::new(Ring {
        memory: Memory::heap(geometry, Position { sequence: u32::MAX, unit: u32::MAX }),
        payload,
    })
}

impl Ring {
    fn cell(&self, position: Position) -> &UnsafeCell<u64> {
        &self.payload[position.unit as usize & (self.payload.len() - 1)]
    }

    fn write(&self, position: Position, value: u64) {
        // SAFETY: claimed; loom checks it.
        self.cell(position).with_mut(|cell| unsafe { *cell = value });
    }

    fn commit(&self, position: Position, owner: u16, value: u64) -> u32 {
        self.write(position, value);
        let descriptor = Descriptor { len: 8, user_data: value, ..Descriptor::default() };
        assert!(
            claim::commit(&self.memory, position, owner, &descriptor),
            "a live claim was taken away"
        );
        wake::sleepers_after_rmw(&self.memory.control().consumer_sleep.0)
    }

    /// Claims, writes, commits; yields while it waits for room. Returns the sleepers that it woke.
    fn produce(&self, owner: u16, value: u64) -> u32 {
        let mut cached = CachedPositions::new(&self.memory);
        loop {
            match claim::try_claim(&self.memory, &mut cached, owner, 1) {
                ClaimAttempt::Claimed(position) => return self.commit(position, owner, value),
                ClaimAttempt::Full => thread::yield_now(),
                ClaimAttempt::Corrupt(what) => panic!("{what}"),
            }
        }
    }

    /// The next frame's payload, after checking it against its descriptor. Places have as many
    /// units as slots, so that the place follows from the sequence number.
    fn peek(&self, cursor: &mut Cursor) -> Option<(u32, u64)> {
        let peeked = cursor.peek(&self.memory).expect("an honest ring is never corrupt")?;
        let value = self.read(peeked.sequence);
        assert_eq!(value, peeked.descriptor.user_data, "torn");
        Some((peeked.sequence, value))
    }

    fn read(&self, sequence: u32) -> u64 {
        // SAFETY: peeked; loom checks it.
        self.cell(Position { sequence, unit: sequence }).with(|cell| unsafe { *cell })
    }

    /// Reads frames until their values add up to `sum`.
    fn consume(&self, sum: u64) -> Vec<u64> {
        let mut cursor = Cursor::new(&self.memory);
        let mut got = Vec::new();
        while got.iter().sum::<u64>() < sum {
            match self.peek(&mut cursor) {
                Some((sequence, value)) => {
                    cursor.release(&self.memory, sequence).unwrap();
                    got.push(value);
                }
                None => thread::yield_now(),
            }
        }
        got
    }
}

fn check(name: &str, preemptions: Option<usize>, interesting: &'static AtomicUsize, model: fn()) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    // The models share counters, so they take turns even if the harness has several threads.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    RUNS.store(0, Std::SeqCst);
    let started = std::time::Instant::now();
    builder.check(move || {
        RUNS.fetch_add(1, Std::SeqCst);
        model();
    });
    let (runs, hits) = (RUNS.load(Std::SeqCst), interesting.load(Std::SeqCst));
    say(name, runs, hits, preemptions, started.elapsed());
    assert!(hits > 0, "{name}: the branch it is about never ran");
}

#[expect(clippy::print_stderr, reason = "how much was explored is the result of a model")]
fn say(name: &str, runs: usize, hits: usize, bound: Option<usize>, took: std::time::Duration) {
    let bound = bound.map_or("all".to_owned(), |bound| format!("up to {bound} preemptions"));
    eprintln!(
        "{name}: {runs} executions ({bound}), the interesting branch in {hits}, {:.1} s",
        took.as_secs_f64()
    );
}

#[test]
fn one_slot_is_used_twice_without_a_race() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("slot reuse", None, &HITS, || {
        let ring = ring(1);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                ring.produce(1, 3);
                ring.produce(1, 4);
            }
        });
        assert_eq!(ring.consume(7), [3, 4]);
        producer.join().unwrap();
        HITS.fetch_add(1, Std::SeqCst);
    });
}

#[test]
fn room_goes_from_one_producer_to_another_by_way_of_the_consumer() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("room for another", Some(1), &HITS, || {
        let ring = ring(1);
        let producers = [1u64, 2].map(|owner| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.produce(owner as u16, owner))
        });
        let got = ring.consume(3);
        HITS.fetch_add(usize::from(got == [2, 1]), Std::SeqCst);
        producers.into_iter().for_each(|producer| _ = producer.join().unwrap());
    });
}

#[test]
fn two_producers_deliver_each_frame_once_and_whole() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("two producers", Some(2), &HITS, || {
        let ring = ring(2);
        let producers = [1u64, 2].map(|owner| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.produce(owner as u16, owner))
        });
        let got = ring.consume(3);
        if got == [2, 1] {
            HITS.fetch_add(1, Std::SeqCst);
        }
        producers.into_iter().for_each(|producer| _ = producer.join().unwrap());
        assert!(got == [1, 2] || got == [2, 1], "{got:?}");
    });
}

#[test]
fn three_producers_deliver_each_frame_once_and_whole() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("three producers", Some(1), &HITS, || {
        let ring = ring(4);
        let producers = [1u64, 2].map(|owner| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.produce(owner as u16, owner))
        });
        ring.produce(3, 4);
        let got = ring.consume(7);
        if got != [4, 1, 2] && got != [1, 2, 4] {
            HITS.fetch_add(1, Std::SeqCst);
        }
        producers.into_iter().for_each(|producer| _ = producer.join().unwrap());
        let mut sorted = got;
        sorted.sort_unstable();
        assert_eq!(sorted, [1, 2, 4]);
    });
}

#[test]
fn no_commit_is_slept_through() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("the consumer's sleep", Some(3), &HITS, || {
        let ring = ring(2);
        let producers = [1u64, 2].map(|owner| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.produce(owner as u16, owner))
        });
        let mut cursor = Cursor::new(&ring.memory);
        wake::announce(&ring.memory.control().consumer_sleep.0, Sleep::FUTEX);
        let sleeps = !cursor.is_ready(&ring.memory);
        let woken: u32 = producers.map(|producer| producer.join().unwrap()).iter().sum();
        if sleeps {
            HITS.fetch_add(1, Std::SeqCst);
            assert_eq!(woken, Sleep::FUTEX, "exactly one of them wakes it");
        }
        assert!(ring.peek(&mut cursor).is_some());
    });
}

#[test]
fn no_release_is_slept_through() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("a producer's sleep", None, &HITS, || {
        let ring = ring(1);
        ring.produce(1, 1);
        let consumer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut cursor = Cursor::new(&ring.memory);
                let (sequence, _) = ring.peek(&mut cursor).unwrap();
                cursor.release(&ring.memory, sequence).unwrap();
                wake::sleepers_after_rmw(&ring.memory.control().producer_sleep.0)
            }
        });
        let mut cached = CachedPositions::new(&ring.memory);
        wake::announce(&ring.memory.control().producer_sleep.0, Sleep::FUTEX);
        let sleeps =
            matches!(claim::try_claim(&ring.memory, &mut cached, 2, 1), ClaimAttempt::Full);
        let woken = consumer.join().unwrap();
        if sleeps {
            HITS.fetch_add(1, Std::SeqCst);
            assert_eq!(woken, Sleep::FUTEX);
        }
    });
}

/// Two producers find the ring full and sleep, each with its own bit, so that the test sees which
/// one was woken.
fn sleep_for_room(ring: &Arc<Ring>) -> [thread::JoinHandle<bool>; 2] {
    [(2, Sleep::FUTEX), (3, Sleep::EVENT)].map(|(owner, how)| {
        let ring = Arc::clone(ring);
        thread::spawn(move || {
            let mut cached = CachedPositions::new(&ring.memory);
            wake::announce(&ring.memory.control().producer_sleep.0, how);
            match claim::try_claim(&ring.memory, &mut cached, owner, 1) {
                ClaimAttempt::Full => true,
                ClaimAttempt::Claimed(position) => {
                    ring.commit(position, owner, 9);
                    false
                }
                ClaimAttempt::Corrupt(what) => panic!("{what}"),
            }
        })
    })
}

#[test]
fn a_release_that_does_not_wake_leaves_it_to_a_later_one() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("the quarter rule", Some(2), &HITS, || {
        let ring = ring(8);
        (0..8).for_each(|value| _ = ring.produce(1, value));
        let mut cursor = Cursor::new(&ring.memory);
        let held: Vec<u32> = (0..3).map(|_| ring.peek(&mut cursor).unwrap().0).collect();
        let producers = sleep_for_room(&ring);
        let word = &ring.memory.control().producer_sleep.0;
        let mut woken = 0;
        for (count, sequence) in held.into_iter().enumerate() {
            cursor.release(&ring.memory, sequence).unwrap();
            let slept = word.load(Acquire);
            let now = producer_wakeup::sleepers_after_release(&ring.memory, &cursor);
            woken |= now;
            if count == 0 {
                assert_eq!(now, 0, "one of eight is no quarter, and there is more to peek");
                HITS.fetch_add(usize::from(slept == Sleep::FUTEX | Sleep::EVENT), Std::SeqCst);
            }
        }
        for (producer, how) in producers.into_iter().zip([Sleep::FUTEX, Sleep::EVENT]) {
            let sleeps = producer.join().unwrap();
            assert!(!sleeps || woken & how != 0, "it sleeps on, and three of eight are free");
        }
    });
}

#[test]
fn no_consumer_sleeps_next_to_producers_that_have_room() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("both asleep", Some(2), &HITS, || {
        let ring = ring(8);
        (0..8).for_each(|value| _ = ring.produce(1, value));
        let mut cursor = Cursor::new(&ring.memory);
        let held: Vec<u32> = (0..7).map(|_| ring.peek(&mut cursor).unwrap().0).collect();
        let producers = sleep_for_room(&ring);
        cursor.release(&ring.memory, held[0]).unwrap();
        let mut woken = producer_wakeup::sleepers_after_release(&ring.memory, &cursor);
        assert_eq!(woken, 0, "one of eight is no quarter, and there is more to peek");
        ring.peek(&mut cursor).unwrap();
        wake::announce(&ring.memory.control().consumer_sleep.0, Sleep::FUTEX);
        if !cursor.is_ready(&ring.memory) {
            woken |= producer_wakeup::sleepers_when_idle(&ring.memory);
        }
        let sleep = producers.map(|producer| producer.join().unwrap());
        if sleep == [true, true] {
            HITS.fetch_add(1, Std::SeqCst);
            assert_eq!(
                woken,
                Sleep::FUTEX | Sleep::EVENT,
                "all three sleep, and one of eight is free"
            );
        }
    });
}

#[test]
fn eviction_and_peek_never_get_the_same_frame() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("eviction", Some(3), &HITS, || {
        let ring = ring(1);
        ring.produce(1, 1);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                if claim::evict_oldest(&ring.memory) != Eviction::Progress {
                    return;
                }
                let mut cached = CachedPositions::new(&ring.memory);
                if let ClaimAttempt::Claimed(position) =
                    claim::try_claim(&ring.memory, &mut cached, 2, 1)
                {
                    HITS.fetch_add(1, Std::SeqCst);
                    ring.commit(position, 2, 2);
                }
            }
        });
        let mut cursor = Cursor::new(&ring.memory);
        if let Some((sequence, value)) = ring.peek(&mut cursor) {
            assert_eq!(ring.read(sequence), value, "overwritten while held");
            cursor.release(&ring.memory, sequence).unwrap();
        }
        producer.join().unwrap();
        let left = ring.peek(&mut cursor);
        assert!(left.is_none_or(|(_, value)| value == 2));
    });
}

#[test]
fn an_evicter_and_the_consumer_go_over_an_aborted_place_together() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("an aborted position", Some(3), &HITS, || {
        let geometry = Geometry { slots: 1, arena_bytes: 2 * UNIT };
        let memory =
            Arc::new(Memory::heap(geometry, Position { sequence: u32::MAX, unit: u32::MAX }));
        let claim = |memory: &Memory, owner, units| {
            let mut cached = CachedPositions::new(memory);
            loop {
                match claim::try_claim(memory, &mut cached, owner, units) {
                    ClaimAttempt::Claimed(position) => return position,
                    ClaimAttempt::Full => thread::yield_now(),
                    ClaimAttempt::Corrupt(what) => panic!("{what}"),
                }
            }
        };
        assert!(claim::abort(&memory, claim(&memory, 1, 1), 1));
        let producer = thread::spawn({
            let memory = Arc::clone(&memory);
            move || {
                let evicted = claim::evict_oldest(&memory) == Eviction::Progress;
                // The slot's next frame is larger, so that its extent in the place of the old one's
                // is seen.
                assert!(claim::commit(&memory, claim(&memory, 2, 2), 2, &Descriptor::default()));
                evicted
            }
        });
        let mut cursor = Cursor::new(&memory);
        let mut peek = || cursor.peek(&memory).expect("an honest ring is never corrupt");
        let early = peek();
        let evicted = producer.join().unwrap();
        assert!(
            early.or_else(peek).is_some_and(|frame| frame.owner == 2),
            "what is behind it comes"
        );
        HITS.fetch_add(usize::from(evicted && early.is_some()), Std::SeqCst);
    });
}

#[test]
fn releases_out_of_order_free_room_in_order() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("release out of order", Some(3), &HITS, || {
        let ring = ring(2);
        ring.produce(1, 1);
        ring.produce(1, 2);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut cached = CachedPositions::new(&ring.memory);
                if let ClaimAttempt::Claimed(position) =
                    claim::try_claim(&ring.memory, &mut cached, 2, 1)
                {
                    HITS.fetch_add(1, Std::SeqCst);
                    ring.commit(position, 2, 3);
                }
            }
        });
        let mut cursor = Cursor::new(&ring.memory);
        let (first, _) = ring.peek(&mut cursor).unwrap();
        let (second, _) = ring.peek(&mut cursor).unwrap();
        cursor.release(&ring.memory, second).unwrap();
        assert_eq!(ring.read(first), 1, "overwritten while held");
        cursor.release(&ring.memory, first).unwrap();
        producer.join().unwrap();
    });
}

#[test]
fn slots_released_in_runs_are_reused_without_a_race() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("runs", Some(3), &HITS, || {
        let ring = ring(2);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || (1..=4).for_each(|value| _ = ring.produce(1, value))
        });
        let mut cursor =
            Cursor::new(&ring.memory).with_release_batch(ReleaseBatch { slots: 2, units: 2 });
        let mut expect = 1;
        while expect <= 4 {
            let Some((sequence, value)) = ring.peek(&mut cursor) else {
                thread::yield_now();
                continue;
            };
            assert_eq!(value, expect);
            let released = cursor.release(&ring.memory, sequence).unwrap();
            assert_eq!(released.published, expect.is_multiple_of(2));
            expect += 1;
        }
        producer.join().unwrap();
        HITS.fetch_add(1, Std::SeqCst);
    });
}

#[test]
fn the_guard_keeps_evictors_from_what_is_behind_it() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("the guard", Some(3), &HITS, || {
        let ring = ring(2);
        ring.produce(1, 1);
        ring.produce(1, 2);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut evicted = 0;
                let mut cached = CachedPositions::new(&ring.memory);
                for value in [3, 4] {
                    evicted += usize::from(claim::evict_oldest(&ring.memory) == Eviction::Progress);
                    if let ClaimAttempt::Claimed(position) =
                        claim::try_claim(&ring.memory, &mut cached, 2, 1)
                    {
                        ring.commit(position, 2, value);
                    }
                }
                evicted
            }
        });
        let mut cursor = Cursor::new(&ring.memory);
        let held: Vec<_> = (0..2).filter_map(|_| ring.peek(&mut cursor)).collect();
        for (index, (sequence, _)) in held.iter().enumerate() {
            // The guard passes to the second when the first is released.
            held[index..]
                .iter()
                .for_each(|(held, value)| assert_eq!(ring.read(*held), *value, "overwritten"));
            assert!(cursor.release(&ring.memory, *sequence).unwrap().published);
        }
        let evicted = producer.join().unwrap();
        HITS.fetch_add(usize::from(held.len() == 2 && evicted > 0), Std::SeqCst);
    });
}

#[test]
fn a_sleeping_producer_is_woken_by_a_release_that_was_batched() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("publishing when idle", None, &HITS, || {
        let ring = ring(1);
        ring.produce(1, 1);
        let consumer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut cursor = Cursor::new(&ring.memory)
                    .with_release_batch(ReleaseBatch { slots: 2, units: 2 });
                let (sequence, _) = ring.peek(&mut cursor).unwrap();
                // A producer that sleeps already is woken at once; one that goes to sleep later,
                // once the consumer is idle.
                let published = cursor.release(&ring.memory, sequence).unwrap().published;
                let woken = if published {
                    producer_wakeup::sleepers_after_release(&ring.memory, &cursor)
                } else {
                    0
                };
                cursor.publish(&ring.memory);
                (published, woken | producer_wakeup::sleepers_when_idle(&ring.memory))
            }
        });
        let mut cached = CachedPositions::new(&ring.memory);
        wake::announce(&ring.memory.control().producer_sleep.0, Sleep::FUTEX);
        let sleeps =
            matches!(claim::try_claim(&ring.memory, &mut cached, 2, 1), ClaimAttempt::Full);
        let (published, woken) = consumer.join().unwrap();
        if sleeps {
            HITS.fetch_add(usize::from(!published), Std::SeqCst);
            assert_eq!(woken, Sleep::FUTEX);
        }
    });
}

#[test]
fn a_producer_about_to_own_its_slot_keeps_it() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("an unowned position of a living claimer", Some(4), &HITS, || {
        let ring = ring(1);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.produce(1, 1)
        });
        let mut cursor = Cursor::new(&ring.memory);
        let mut tries = 1;
        loop {
            if let Some((sequence, value)) = ring.peek(&mut cursor) {
                assert_eq!((sequence, value), (u32::MAX, 1));
                cursor.release(&ring.memory, sequence).unwrap();
                break;
            }
            let reserve = Position::unpack(ring.memory.control().reserve.0.load(Acquire)).sequence;
            if tries > 0 && reserve != u32::MAX {
                // Another producer died at this moment: positions without an owner may have been
                // its own.
                tries -= 1;
                let state =
                    StateWord::unpack(ring.memory.slot(u32::MAX).state.load(Acquire)).unwrap();
                assert_eq!(cursor.recover(&ring.memory, &|_| false, reserve), Ok(0));
                HITS.fetch_add(usize::from(state.sequence != u32::MAX), Std::SeqCst);
            }
            thread::yield_now();
        }
        producer.join().unwrap();
    });
}

#[test]
fn a_dead_claim_ends_where_a_living_one_behind_it_is_about_to_start() {
    static HITS: AtomicUsize = AtomicUsize::new(0);
    check("a dead claim before a living one", Some(3), &HITS, || {
        let ring = ring(2);
        let first = Position { sequence: u32::MAX, unit: u32::MAX };
        // Owner 1 died after it owned its slot and before it wrote where it starts.
        ring.memory.control().reserve.0.store(first.after(1).pack(), Release);
        let claimed = StateWord { sequence: first.sequence, owner: 1, stage: SlotState::Claimed };
        ring.memory.slot(first.sequence).state.store(claimed.pack(), Release);
        let until = first.after(1).sequence;
        let living = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.produce(2, 7)
        });
        let mut cursor = Cursor::new(&ring.memory);
        let mut put_aside = 0;
        let (sequence, value) = loop {
            if let Some(peeked) = ring.peek(&mut cursor) {
                break peeked;
            }
            // Not before there is a later claim: without one, `reserve` gives the dead one's extent
            // at once.
            if Position::unpack(ring.memory.control().reserve.0.load(Acquire)) != first.after(1) {
                let waited = put_aside == 0;
                put_aside += cursor.recover(&ring.memory, &|owner| owner == 1, until).unwrap();
                // It owns a slot, and has not written yet where its payload starts.
                HITS.fetch_add(usize::from(waited && put_aside == 0), Std::SeqCst);
            }
            thread::yield_now();
        };
        assert_eq!((put_aside, value), (1, 7));
        assert_eq!(sequence, until, "the living one kept its position");
        cursor.release(&ring.memory, sequence).unwrap();
        living.join().unwrap();
        let release = Position::unpack(ring.memory.control().release.0.load(Acquire));
        assert_eq!(release, first.after(1).after(1), "no room leaks");
    });
}
