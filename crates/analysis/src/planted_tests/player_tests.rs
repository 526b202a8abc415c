//! Players whose buffers last: what they lack is the only queue that can be seen.

use super::explained;
use super::planted_limits::hot_worker;
use super::simulated_run::{Moment, SimulatedRun, UserImpact};
use crate::bottleneck::Bottleneck;
use crate::findings::NOT_DELIVERED;

/// A full worker behind players that want so much.
fn found(wanted_us: fn(Moment) -> u64) -> Bottleneck {
    let mut sim = SimulatedRun::new();
    hot_worker(&mut sim);
    (sim.impact, sim.wanted_us) = (UserImpact::Stall, Some(wanted_us));
    explained(&mut sim).bottleneck
}

#[test]
fn players_that_hardly_want_media_lack_none_and_begin_to_lack_it_past_the_limit() {
    let full_buffers = found(|moment| if moment.over { 1_000_000 } else { 5_000 });
    let line = full_buffers.evidence.iter().find(|line| line.counter == NOT_DELIVERED);
    let line = line.unwrap_or_else(|| panic!("{full_buffers:#?}"));
    assert_eq!((line.baseline, line.pass), (Some(0.0), Some(0.0)), "{line:?}");
    assert!(line.fail.is_some_and(|lacks| (0.2..0.3).contains(&lacks)), "{line:?}");
    // It counts as much as for players that always want media.
    let always = found(|_| 1_000_000);
    assert_eq!(full_buffers.finding.as_deref(), Some("one_thread_full"), "{full_buffers:#?}");
    assert_eq!((full_buffers.finding, full_buffers.score), (always.finding, always.score));
}
