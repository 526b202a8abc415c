//! The ring against a queue that is obviously right, under arbitrary sequences of calls.

use std::collections::VecDeque;

use proptest::prelude::*;

use crate::claim::{self, CachedPositions, ClaimAttempt, Descriptor, Eviction};
use crate::cursor::Cursor;
use crate::layout::Geometry;
use crate::memory::Memory;
use crate::packed::{Position, UNIT};
use crate::release_batch::ReleaseBatch;

#[derive(Clone, Debug)]
enum Step {
    /// Claim so many units; commit so many bytes later.
    Claim(u32),
    /// Commit the open claim of that index (modulo their number).
    Commit(usize),
    Abort(usize),
    Peek,
    /// Release the held frame of that index.
    Release(usize),
    Evict,
    /// The consumer publishes all released frames.
    Tell,
    /// The consumer is replaced by a new one.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..400).prop_map(Step::Claim),
        4 => any::<usize>().prop_map(Step::Commit),
        1 => any::<usize>().prop_map(Step::Abort),
        4 => Just(Step::Peek),
        4 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Evict),
        1 => Just(Step::Tell),
        1 => Just(Step::Restart),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Open,
    Committed,
    Held,
    /// Held by a consumer that was replaced: comes again unless it is evicted before.
    HeldBefore,
    /// Released in order, and not published yet.
    HeldBack,
    Over,
}

/// A frame in the model: in claim order, gone once it and all before it are over.
#[derive(Clone, Copy, Debug)]
struct Model {
    position: Position,
    units: u32,
    mark: u64,
    life: Life,
}

fn nth(model: &VecDeque<Model>, life: Life, index: usize) -> Option<usize> {
    let of_that_life: Vec<_> = (0..model.len()).filter(|i| model[*i].life == life).collect();
    (!of_that_life.is_empty()).then(|| of_that_life[index % of_that_life.len()])
}

fn run(steps: &[Step], first: Position, release_batch: ReleaseBatch) -> Result<(), TestCaseError> {
    let geometry = Geometry { slots: 8, arena_bytes: 65_536 };
    let memory = Memory::heap(geometry, first);
    let consumer = || Cursor::new(&memory).with_release_batch(release_batch);
    let (mut cursor, mut cached) = (consumer(), CachedPositions::new(&memory));
    let mut model: VecDeque<Model> = VecDeque::new();
    let mut mark = 0u64;
    for step in steps {
        match step {
            Step::Claim(units) => {
                let used: u32 = model.iter().map(|frame| frame.units).sum();
                let fits = model.len() < 8 && used + units <= geometry.units();
                match claim::try_claim(&memory, &mut cached, 1, *units) {
                    ClaimAttempt::Claimed(position) => {
                        prop_assert!(fits);
                        mark += 1;
                        fill(&memory, position, *units, mark);
                        model.push_back(Model { position, units: *units, mark, life: Life::Open });
                    }
                    other => prop_assert!(!fits && other == ClaimAttempt::Full, "{other:?}"),
                }
            }
            Step::Commit(index) => {
                let Some(index) = nth(&model, Life::Open, *index) else { continue };
                let frame = &mut model[index];
                let len = frame.units * UNIT as u32 - (frame.mark % 64) as u32;
                let descriptor = Descriptor { len, user_data: frame.mark, ..Descriptor::default() };
                prop_assert!(claim::commit(&memory, frame.position, 1, &descriptor));
                frame.life = Life::Committed;
            }
            Step::Abort(index) => {
                let Some(index) = nth(&model, Life::Open, *index) else { continue };
                prop_assert!(claim::abort(&memory, model[index].position, 1));
                model[index].life = Life::Over;
            }
            Step::Peek => {
                let passed = |f: &Model| matches!(f.life, Life::Held | Life::HeldBack | Life::Over);
                let next = model.iter().position(|f| !passed(f));
                let expect = next.filter(|i| model[*i].life != Life::Open);
                let peeked = cursor.peek(&memory).unwrap();
                prop_assert_eq!(
                    peeked.map(|p| p.descriptor.user_data),
                    expect.map(|i| model[i].mark)
                );
                if let (Some(peeked), Some(index)) = (peeked, expect) {
                    prop_assert_eq!(peeked.sequence, model[index].position.sequence);
                    check(&memory, &cursor, peeked.sequence, model[index].mark)?;
                    model[index].life = Life::Held;
                }
            }
            Step::Release(index) => {
                let Some(index) = nth(&model, Life::Held, *index) else { continue };
                check(&memory, &cursor, model[index].position.sequence, model[index].mark)?;
                let is_in_order =
                    model.iter().position(|frame| frame.life == Life::Held) == Some(index);
                prop_assert!(cursor.release(&memory, model[index].position.sequence).is_some());
                model[index].life = if is_in_order { Life::HeldBack } else { Life::Over };
            }
            Step::Evict => match claim::evict_oldest(&memory) {
                Eviction::Empty => prop_assert!(model.is_empty()),
                Eviction::Held => {
                    prop_assert!(!matches!(model[0].life, Life::Committed | Life::Over));
                }
                Eviction::Progress => {
                    let may_go =
                        matches!(model[0].life, Life::Committed | Life::HeldBefore | Life::Over);
                    prop_assert!(may_go, "{:?}", model[0]);
                    model.pop_front();
                }
            },
            Step::Tell => {
                cursor.publish(&memory);
                settle(&memory, &mut model);
                prop_assert!(model.front().is_none_or(|frame| frame.life != Life::HeldBack));
            }
            Step::Restart => {
                cursor = consumer();
                for frame in &mut model {
                    if frame.life == Life::Held {
                        frame.life = Life::HeldBefore;
                    }
                }
            }
        }
        settle(&memory, &mut model);
    }
    Ok(())
}

/// The model forgets what the ring has released: frames that are over leave once the consumer (or
/// an evictor) passed them, which the model need not predict to the step.
fn settle(memory: &Memory, model: &mut VecDeque<Model>) {
    let release = Position::unpack(memory.control().release.0.load(crate::sync::Ordering::Relaxed));
    while model.front().is_some_and(|f| f.position.sequence != release.sequence) {
        let gone = model.pop_front().unwrap();
        assert!(matches!(gone.life, Life::HeldBack | Life::Over), "released while in use");
    }
    assert!(model.front().is_none_or(|f| f.position == release));
}

fn fill(memory: &Memory, position: Position, units: u32, mark: u64) {
    // SAFETY: claimed by the caller, `units` long.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(
            memory.payload(position.unit).as_ptr(),
            units as usize * UNIT,
        )
    };
    bytes.fill(mark as u8);
}

fn check(memory: &Memory, cursor: &Cursor, sequence: u32, mark: u64) -> Result<(), TestCaseError> {
    let (start, len) = cursor.payload(memory, sequence).unwrap();
    // SAFETY: held by the consumer.
    let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
    prop_assert!(bytes.iter().all(|byte| *byte == mark as u8));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_ring_is_a_queue(
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 40 } else { 300 }),
        before_wrap in (0u32..40, 0u32..4000),
        release_batch in (1u32..5, 1u32..600),
    ) {
        let first = Position {
            sequence: 0u32.wrapping_sub(before_wrap.0),
            unit: 0u32.wrapping_sub(before_wrap.1),
        };
        run(&steps, first, ReleaseBatch { slots: release_batch.0, units: release_batch.1 })?;
    }
}
