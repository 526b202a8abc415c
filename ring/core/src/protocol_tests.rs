//! Laws of the protocol on one thread, in private memory: also run under Miri.

use crate::claim::{self, CachedPositions, ClaimAttempt, Descriptor, Eviction};
use crate::cursor::Cursor;
use crate::drop_reason::DropReason;
use crate::layout::Geometry;
use crate::memory::Memory;
use crate::packed::{Position, SlotState, StateWord, UNIT};
use crate::release_batch::ReleaseBatch;
use crate::sync::Ordering::{Relaxed, Release};

const OWNER: u16 = 3;
/// A ring of 4 slots and 1,024 units, whose counters wrap within a few frames.
const GEOMETRY: Geometry = Geometry { slots: 4, arena_bytes: 65_536 };
const FIRST: Position = Position { sequence: u32::MAX - 5, unit: u32::MAX - 300 };

fn ring() -> (Memory, Cursor, CachedPositions) {
    let memory = Memory::heap(GEOMETRY, FIRST);
    let cursor = Cursor::new(&memory);
    let cached = CachedPositions::new(&memory);
    (memory, cursor, cached)
}

fn claim(memory: &Memory, cached: &mut CachedPositions, units: u32) -> Option<Position> {
    match claim::try_claim(memory, cached, OWNER, units) {
        ClaimAttempt::Claimed(position) => Some(position),
        ClaimAttempt::Full => None,
        ClaimAttempt::Corrupt(what) => panic!("{what}"),
    }
}

fn put(memory: &Memory, cached: &mut CachedPositions, bytes: &[u8]) -> Option<Position> {
    let position = claim(memory, cached, bytes.len().div_ceil(UNIT).max(1) as u32)?;
    // SAFETY: claimed, and as long as the claim.
    unsafe {
        std::ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            memory.payload(position.unit).as_ptr(),
            bytes.len(),
        );
    }
    let descriptor = Descriptor { len: bytes.len() as u32, ..Descriptor::default() };
    assert!(claim::commit(memory, position, OWNER, &descriptor));
    Some(position)
}

fn bytes(memory: &Memory, cursor: &Cursor, sequence: u32) -> Vec<u8> {
    let (start, len) = cursor.payload(memory, sequence).unwrap();
    // SAFETY: held, and no producer runs.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }.to_vec()
}

#[test]
fn frames_come_in_the_order_of_claims_across_every_wrap() {
    let (memory, mut cursor, mut cached) = ring();
    for turn in 0..40u8 {
        let frame = vec![turn; 10_000 + usize::from(turn) * 7];
        put(&memory, &mut cached, &frame).unwrap();
        let peeked = cursor.peek(&memory).unwrap().unwrap();
        assert_eq!(bytes(&memory, &cursor, peeked.sequence), frame);
        assert_eq!(cursor.release(&memory, peeked.sequence).unwrap().len as usize, frame.len());
    }
    assert!(!cursor.is_behind(&memory));
}

#[test]
fn a_claim_that_is_not_committed_hides_those_behind_it() {
    let (memory, mut cursor, mut cached) = ring();
    let first = claim(&memory, &mut cached, 1).unwrap();
    put(&memory, &mut cached, b"second").unwrap();
    assert_eq!(cursor.peek(&memory), Ok(None));
    assert!(!cursor.is_ready(&memory));
    assert!(claim::commit(&memory, first, OWNER, &Descriptor::default()));
    assert!(cursor.is_ready(&memory));
    assert_eq!(cursor.peek(&memory).unwrap().unwrap().sequence, first.sequence);
    assert!(cursor.peek(&memory).unwrap().is_some());
}

#[test]
fn an_aborted_claim_is_passed_over() {
    let (memory, mut cursor, mut cached) = ring();
    let first = claim(&memory, &mut cached, 1).unwrap();
    put(&memory, &mut cached, b"second").unwrap();
    assert!(claim::abort(&memory, first, OWNER));
    assert!(!claim::abort(&memory, first, OWNER), "a claim ends once");
    assert!(!claim::commit(&memory, first, OWNER, &Descriptor::default()));
    let peeked = cursor.peek(&memory).unwrap().unwrap();
    assert_eq!(bytes(&memory, &cursor, peeked.sequence), b"second");
}

#[test]
fn slots_and_bytes_both_bound_the_ring() {
    let (memory, mut cursor, mut cached) = ring();
    for _ in 0..4 {
        claim(&memory, &mut cached, 1).unwrap();
    }
    assert_eq!(claim(&memory, &mut cached, 1), None, "a fifth descriptor");
    let (memory2, _, mut seen2) = ring();
    claim(&memory2, &mut seen2, 1_000).unwrap();
    assert_eq!(claim(&memory2, &mut seen2, 25), None, "1,025 units");
    assert!(claim(&memory2, &mut seen2, 24).is_some(), "1,024 units");
    assert_eq!(cursor.peek(&memory), Ok(None));
}

#[test]
fn room_comes_back_in_order_whatever_the_order_of_release() {
    let (memory, mut cursor, mut cached) = ring();
    for frame in [b"a", b"b", b"c", b"d"] {
        put(&memory, &mut cached, frame).unwrap();
    }
    let held: Vec<u32> = (0..4).map(|_| cursor.peek(&memory).unwrap().unwrap().sequence).collect();
    assert_eq!(cursor.peek(&memory), Ok(None));
    cursor.release(&memory, held[2]).unwrap();
    cursor.release(&memory, held[1]).unwrap();
    assert_eq!(claim(&memory, &mut cached, 1), None, "the oldest is still held");
    assert_eq!(bytes(&memory, &cursor, held[3]), b"d");
    assert_eq!(cursor.release(&memory, held[1]), None, "released before");
    cursor.release(&memory, held[0]).unwrap();
    assert!(put(&memory, &mut cached, b"e").is_some());
    assert!(put(&memory, &mut cached, b"f").is_some());
    assert!(put(&memory, &mut cached, b"g").is_some());
    assert_eq!(put(&memory, &mut cached, b"h"), None, "one is held");
}

#[test]
fn the_oldest_is_evicted_unless_it_is_held() {
    let (memory, mut cursor, mut cached) = ring();
    for frame in [b"a", b"b", b"c", b"d"] {
        put(&memory, &mut cached, frame).unwrap();
    }
    assert_eq!(claim::evict_oldest(&memory), Eviction::Progress);
    put(&memory, &mut cached, b"e").unwrap();
    let held = cursor.peek(&memory).unwrap().unwrap().sequence;
    assert_eq!(bytes(&memory, &cursor, held), b"b");
    assert_eq!(claim::evict_oldest(&memory), Eviction::Held);
    cursor.release(&memory, held).unwrap();
    assert_eq!(
        memory.rows()[usize::from(OWNER)].dropped[DropReason::Evicted as usize].load(Relaxed),
        1
    );
    let left: Vec<_> = std::iter::from_fn(|| cursor.peek(&memory).unwrap())
        .map(|peeked| bytes(&memory, &cursor2(&memory), peeked.sequence))
        .collect();
    assert_eq!(left, [b"c", b"d", b"e"]);
}

/// A second view on the same places, to read payload while the first is borrowed.
fn cursor2(memory: &Memory) -> Cursor {
    let mut cursor = Cursor::new(memory);
    while cursor.peek(memory).unwrap().is_some() {}
    cursor
}

#[test]
fn a_consumer_that_slept_through_whole_turns_of_evictions_continues_at_the_oldest() {
    let (memory, mut cursor, mut cached) = ring();
    for turn in 0..30u8 {
        if put(&memory, &mut cached, &[turn]).is_none() {
            assert_eq!(claim::evict_oldest(&memory), Eviction::Progress);
            put(&memory, &mut cached, &[turn]).unwrap();
        }
    }
    assert!(cursor.is_ready(&memory));
    let peeked = cursor.peek(&memory).unwrap().unwrap();
    assert_eq!(bytes(&memory, &cursor, peeked.sequence), [26]);
}

#[test]
fn an_eviction_that_died_half_way_is_finished() {
    let (memory, mut cursor, mut cached) = ring();
    let oldest = put(&memory, &mut cached, b"a").unwrap();
    put(&memory, &mut cached, b"b").unwrap();
    let evicted = StateWord { sequence: oldest.sequence, owner: OWNER, stage: SlotState::Evicted };
    memory.slot(oldest.sequence).state.store(evicted.pack(), Release);
    let peeked = cursor.peek(&memory).unwrap().unwrap();
    assert_eq!(bytes(&memory, &cursor, peeked.sequence), b"b");
}

#[test]
fn a_new_consumer_gets_again_what_the_old_one_held() {
    let (memory, mut old, mut cached) = ring();
    for frame in [b"a", b"b", b"c"] {
        put(&memory, &mut cached, frame).unwrap();
    }
    let first = old.peek(&memory).unwrap().unwrap().sequence;
    let second = old.peek(&memory).unwrap().unwrap().sequence;
    old.release(&memory, second).unwrap();
    drop(old);
    let mut new = Cursor::new(&memory);
    let again = new.peek(&memory).unwrap().unwrap().sequence;
    assert_eq!(again, first);
    let next = new.peek(&memory).unwrap().unwrap().sequence;
    assert_eq!(bytes(&memory, &new, next), b"c", "what was released stays released");
}

/// A ring whose consumer publishes three positions at once.
fn ring_in_runs() -> (Memory, Cursor, CachedPositions) {
    let memory = Memory::heap(Geometry { slots: 8, ..GEOMETRY }, FIRST);
    let cursor = Cursor::new(&memory).with_release_batch(ReleaseBatch { slots: 3, units: 100 });
    let cached = CachedPositions::new(&memory);
    (memory, cursor, cached)
}

fn released(memory: &Memory) -> u32 {
    Position::unpack(memory.control().release.0.load(Relaxed)).sequence.wrapping_sub(FIRST.sequence)
}

#[test]
fn small_frames_are_released_in_runs() {
    let (memory, mut cursor, mut cached) = ring_in_runs();
    let mut reported = Vec::new();
    for turn in 0..30u8 {
        put(&memory, &mut cached, &[turn]).unwrap();
        let peeked = cursor.peek(&memory).unwrap().unwrap();
        assert_eq!(bytes(&memory, &cursor, peeked.sequence), [turn]);
        reported.push(cursor.release(&memory, peeked.sequence).unwrap().published);
        assert_eq!(released(&memory), u32::from(turn + 1) / 3 * 3);
    }
    assert_eq!(reported, [false, false, true].repeat(10));
    put(&memory, &mut cached, &[0; 6_400]).unwrap();
    let large = cursor.peek(&memory).unwrap().unwrap().sequence;
    assert!(
        cursor.release(&memory, large).unwrap().published,
        "the first of a run, and as large as one may be"
    );
}

#[test]
fn nothing_is_withheld_from_an_idle_or_evicting_consumer() {
    let (memory, mut cursor, mut cached) = ring_in_runs();
    put(&memory, &mut cached, b"a").unwrap();
    let first = cursor.peek(&memory).unwrap().unwrap().sequence;
    assert!(!cursor.release(&memory, first).unwrap().published);
    assert_eq!(
        claim::evict_oldest(&memory),
        Eviction::Held,
        "what is held back is not to be dropped"
    );
    assert!(cursor.publish(&memory) && !cursor.publish(&memory));
    assert_eq!(released(&memory), 1);
    memory.control().consumer.0.evicts.store(1, Relaxed);
    put(&memory, &mut cached, b"b").unwrap();
    let second = cursor.peek(&memory).unwrap().unwrap().sequence;
    assert!(cursor.release(&memory, second).unwrap().published);
    assert_eq!(claim::evict_oldest(&memory), Eviction::Empty);
}

#[test]
fn what_is_held_is_guarded_by_the_oldest_of_it() {
    let (memory, mut cursor, mut cached) = ring_in_runs();
    for frame in [b"a", b"b", b"c", b"d", b"e"] {
        put(&memory, &mut cached, frame).unwrap();
    }
    let held: Vec<u32> = (0..4).map(|_| cursor.peek(&memory).unwrap().unwrap().sequence).collect();
    for (count, sequence) in held.iter().take(3).enumerate() {
        assert_eq!(claim::evict_oldest(&memory), Eviction::Held);
        assert_eq!(cursor.release(&memory, *sequence).unwrap().published, count == 2);
    }
    assert_eq!(
        claim::evict_oldest(&memory),
        Eviction::Held,
        "the guard passes to what is held still"
    );
    assert_eq!(bytes(&memory, &cursor, held[3]), b"d");
    cursor.release(&memory, held[3]).unwrap();
    cursor.publish(&memory);
    assert_eq!(claim::evict_oldest(&memory), Eviction::Progress, "the last was never peeked");
    assert_eq!(cursor.peek(&memory), Ok(None));
    assert_eq!(released(&memory), 5);
}

#[test]
fn moving_release_past_held_frames_closes_the_lane() {
    let (memory, mut cursor, mut cached) = ring_in_runs();
    put(&memory, &mut cached, b"a").unwrap();
    put(&memory, &mut cached, b"b").unwrap();
    let held = cursor.peek(&memory).unwrap().unwrap().sequence;
    memory.control().release.0.store(FIRST.after(1).pack(), Release);
    cursor.release(&memory, held).unwrap();
    assert!(cursor.publish(&memory));
    assert!(cursor.peek(&memory).unwrap().is_some(), "what came before it is whole");
    let violation = cursor.peek(&memory).unwrap_err();
    assert!(violation.what.contains("while its position was held"), "{violation:?}");
}

#[test]
fn what_a_dead_consumer_held_back_does_not_come_again() {
    let (memory, mut old, mut cached) = ring_in_runs();
    for frame in [b"a", b"b", b"c", b"d", b"e"] {
        put(&memory, &mut cached, frame).unwrap();
    }
    let held: Vec<u32> = (0..5).map(|_| old.peek(&memory).unwrap().unwrap().sequence).collect();
    for index in [0, 1, 3] {
        assert!(!old.release(&memory, held[index]).unwrap().published);
    }
    drop(old);
    let mut new = Cursor::new(&memory);
    assert_eq!(released(&memory), 2);
    let again: Vec<u32> =
        std::iter::from_fn(|| new.peek(&memory).unwrap()).map(|peeked| peeked.sequence).collect();
    assert_eq!(
        again,
        [held[2], held[4]],
        "in order or out of order, what was released stays released"
    );
}

#[test]
fn what_a_dead_consumer_wrote_down_long_ago_is_not_believed() {
    let (memory, mut old, mut cached) = ring_in_runs();
    put(&memory, &mut cached, b"a").unwrap();
    let first = old.peek(&memory).unwrap().unwrap().sequence;
    old.release(&memory, first).unwrap();
    old.publish(&memory);
    put(&memory, &mut cached, b"b").unwrap();
    for done in
        [FIRST.after(2), FIRST.after(9), FIRST, Position { sequence: FIRST.sequence, unit: 7 }]
    {
        memory.control().consumer.0.done.store(done.pack(), Release);
        let mut new = Cursor::new(&memory);
        assert_eq!(released(&memory), 1, "nothing is held");
        assert!(new.is_ready(&memory) && new.next_sequence() == first.wrapping_add(1));
        new.publish(&memory);
    }
}

/// The last step of a producer that died: each leaves the ring as one killed between two
/// instructions.
#[derive(Clone, Copy, Debug)]
enum DiedAfter {
    Reserving,
    Owning,
    WritingUnits,
    Starting,
}

fn die(memory: &Memory, cached: &mut CachedPositions, units: u32, point: DiedAfter) {
    let slots = memory.geometry().slots;
    let position = Position::unpack(memory.control().reserve.0.load(Relaxed));
    if let DiedAfter::Starting = point {
        claim(memory, cached, units).unwrap();
        return;
    }
    memory.control().reserve.0.store(position.after(units).pack(), Release);
    let slot = memory.slot(position.sequence);
    assert_eq!(
        StateWord::unpack(slot.state.load(Relaxed)).unwrap().sequence,
        position.sequence.wrapping_sub(slots)
    );
    if !matches!(point, DiedAfter::Reserving) {
        let owned =
            StateWord { sequence: position.sequence, owner: OWNER, stage: SlotState::Claimed };
        slot.state.store(owned.pack(), Release);
    }
    if let DiedAfter::WritingUnits = point {
        slot.units.store(units, Relaxed);
    }
}

#[test]
fn what_the_dead_left_is_put_aside_wherever_they_died() {
    use DiedAfter::{Owning, Reserving, Starting, WritingUnits};
    let points = [Reserving, Owning, WritingUnits, Starting];
    for first in points {
        for second in points {
            for followed in [false, true] {
                let (memory, mut cursor, mut cached) = ring();
                die(&memory, &mut cached, 5, first);
                die(&memory, &mut cached, 9, second);
                let until = Position::unpack(memory.control().reserve.0.load(Relaxed)).sequence;
                let dead = |owner: u16| owner == OWNER;
                if followed {
                    let position = match claim::try_claim(&memory, &mut cached, OWNER + 1, 3) {
                        ClaimAttempt::Claimed(position) => position,
                        other => panic!("{other:?}"),
                    };
                    let descriptor = Descriptor { len: 192, ..Descriptor::default() };
                    assert!(claim::commit(&memory, position, OWNER + 1, &descriptor));
                }
                assert_eq!(cursor.peek(&memory), Ok(None));
                assert!(cursor.may_be_abandoned(&memory, cursor.next_sequence(), &dead, until));
                assert_eq!(
                    cursor.recover(&memory, &dead, until),
                    Ok(2),
                    "{first:?} {second:?} {followed}"
                );
                let case = format!("{first:?} {second:?} {followed}");
                if followed {
                    let peeked = cursor.peek(&memory).unwrap().unwrap();
                    assert_eq!(peeked.owner, OWNER + 1, "{case}");
                    cursor.release(&memory, peeked.sequence).unwrap();
                }
                let (reserve, release) = (&memory.control().reserve.0, &memory.control().release.0);
                assert_eq!(reserve.load(Relaxed), release.load(Relaxed), "{case}: no room leaks");
                for turn in 0..9u8 {
                    put(&memory, &mut cached, &[turn]).unwrap();
                    let peeked = cursor.peek(&memory).unwrap().unwrap();
                    assert_eq!(bytes(&memory, &cursor, peeked.sequence), [turn], "{case}");
                    cursor.release(&memory, peeked.sequence).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_living_are_never_put_aside() {
    let (memory, mut cursor, mut cached) = ring();
    claim(&memory, &mut cached, 1).unwrap();
    let until = seen_reserve(&memory);
    assert_eq!(cursor.recover(&memory, &|owner| owner != OWNER, until), Ok(0));
    // Reserved after the death that is handled here: its owner may be about to own it.
    let position = Position::unpack(memory.control().reserve.0.load(Relaxed));
    memory.control().reserve.0.store(position.after(1).pack(), Release);
    assert_eq!(cursor.recover(&memory, &|_| true, position.sequence), Ok(1));
    assert_eq!(cursor.recover(&memory, &|_| true, position.sequence), Ok(0));
}

fn seen_reserve(memory: &Memory) -> u32 {
    Position::unpack(memory.control().reserve.0.load(Relaxed)).sequence
}

#[test]
fn a_producer_about_to_own_its_slot_keeps_it() {
    let (memory, mut cursor, mut cached) = ring();
    let claiming = &memory.rows()[usize::from(OWNER)].claiming;
    claiming.store(1, Relaxed);
    die(&memory, &mut cached, 2, DiedAfter::Reserving);
    let until = seen_reserve(&memory);
    assert_eq!(cursor.recover(&memory, &|_| false, until), Ok(0), "another died, this one lives");
    let may_be_abandoned = |cursor: &Cursor| {
        cursor.may_be_abandoned(&memory, cursor.next_sequence(), &|_| false, until)
    };
    assert!(may_be_abandoned(&cursor), "the end is not signalled: to be polled again");
    assert_eq!(
        cursor.recover(&memory, &|owner| owner == OWNER, until),
        Ok(1),
        "its row counts no more"
    );
    assert_eq!(claim(&memory, &mut cached, 2).unwrap().sequence, FIRST.sequence.wrapping_add(1));
    assert_eq!(claiming.load(Relaxed), 0);
}

#[test]
fn nonsense_in_a_slot_is_a_violation_and_nothing_else() {
    type Spoil = fn(&Memory, Position);
    let spoil: [(&str, Spoil); 8] = [
        ("its state is no state", |m, p| m.slot(p.sequence).state.store(0xff, Release)),
        ("its state is no state", |m, p| m.slot(p.sequence).state.store(u64::MAX, Release)),
        ("it does not start where", |m, p| m.slot(p.sequence).start.store(77, Release)),
        ("it has no extent", |m, p| m.slot(p.sequence).units.store(0, Release)),
        ("its extent is beyond", |m, p| m.slot(p.sequence).units.store(1_025, Release)),
        ("its extent is beyond", |m, p| m.slot(p.sequence).units.store(u32::MAX, Release)),
        ("its length is beyond", |m, p| m.slot(p.sequence).len.store(65, Release)),
        ("its slot was reused", |m, p| {
            let state = StateWord {
                sequence: p.sequence.wrapping_add(400),
                owner: 0,
                stage: SlotState::Committed,
            };
            m.slot(p.sequence).state.store(state.pack(), Release);
        }),
    ];
    for (expect, spoil) in spoil {
        let (memory, mut cursor, mut cached) = ring();
        let position = put(&memory, &mut cached, b"frame").unwrap();
        spoil(&memory, position);
        let violation = cursor.peek(&memory).unwrap_err();
        assert!(violation.what.starts_with(expect), "{violation:?}, expected {expect}");
        assert_eq!(violation.sequence, position.sequence);
    }
}

#[test]
fn a_producer_notices_words_that_cannot_be() {
    let (memory, _, mut cached) = ring();
    let far = Position { sequence: FIRST.sequence.wrapping_add(5), unit: FIRST.unit };
    memory.control().reserve.0.store(far.pack(), Release);
    assert!(matches!(claim::try_claim(&memory, &mut cached, OWNER, 1), ClaimAttempt::Corrupt(_)));
}

#[test]
fn a_producer_that_aborts_without_end_does_not_keep_the_consumer() {
    // Large, so that the producer has time to add positions while one call skips.
    let slots: u32 = if cfg!(miri) { 4 } else { 1 << 14 };
    let memory =
        Memory::heap(Geometry { slots, arena_bytes: slots.max(1024) as usize * UNIT }, FIRST);
    let (mut cursor, mut cached) = (Cursor::new(&memory), CachedPositions::new(&memory));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let calls = if cfg!(miri) { 50 } else { 400 };
    std::thread::scope(|scope| {
        let claimer = scope.spawn(|| {
            while !stop.load(Relaxed) {
                if let Some(position) = claim(&memory, &mut cached, 1) {
                    claim::abort(&memory, position, OWNER);
                }
            }
        });
        let (mut most, mut found) = (0, Ok(None));
        for _ in 0..calls {
            let before = cursor.next_sequence();
            found = cursor.peek(&memory);
            most = most.max(cursor.next_sequence().wrapping_sub(before));
            std::thread::yield_now();
        }
        stop.store(true, Relaxed);
        claimer.join().unwrap();
        assert_eq!(found, Ok(None));
        assert!(most <= slots + 1, "{most} positions in one call");
    });
    while cursor.is_ready(&memory) {
        assert_eq!(cursor.peek(&memory), Ok(None));
    }
    assert!(!cursor.is_behind(&memory), "what one call left, the next finds");
}
