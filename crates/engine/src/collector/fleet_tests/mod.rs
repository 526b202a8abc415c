//! What one process and a fleet of three make of the same observations: the identical summary.json.
//! Rows go the whole way, from the collectors through the fleet's batches and its merge into run
//! folders, and from these through the report.

mod crowd;
mod intervals;
mod observations;
mod process_rows;
mod summary_json;
mod worker_batches;

use std::time::Instant;

use throng_fleet::spool::BatchKind;

use crate::clock::RunClock;
use crowd::PEOPLE;
use observations::Story;
use process_rows::collected;
use summary_json::{OF_THE_MACHINES, differences, of_the_crowd, summary};
use worker_batches::{batches, merged};

/// No figure needs a tolerance: rows hold whole numbers and distributions whose sums do not depend
/// on their order, and the report computes its fractions from the same rows in the same order.
#[test]
fn a_fleet_and_one_process_leave_the_same_summary_of_the_same_crowd() {
    let clock = RunClock { start: Instant::now() };
    let told = Story::of_all(clock);
    let one = summary(collected(clock, &told, None).into_iter().flatten(), &[]);
    let workers = [0, 1, 2];
    let shares = workers.map(|worker| batches(collected(clock, &told, Some(worker))));
    let fleet = summary(merged(&shares, None), &workers);
    assert_eq!(differences("", &of_the_crowd(&one), &of_the_crowd(&fleet)), Vec::<String>::new());
    // Nothing is left out of the comparison that is the same anyway.
    for (key, why) in OF_THE_MACHINES {
        assert_ne!(one["generator"].get(key), fleet["generator"].get(key), "{key}: {why}");
    }
    // It is a summary of something.
    assert_eq!(one["participants"]["intended"], PEOPLE);
    for failure in ["ice", "http_503", "media_lost"] {
        assert!(one["failures"][failure].as_u64() > Some(1), "{failure}: {}", one["failures"]);
    }
    for part in ["playback", "chat", "sent", "layer_switches", "bottleneck"] {
        assert!(one[part].is_object(), "{part}: {}", one[part]);
    }
    assert!(one["events"]["protocol_anomaly_sdp"].as_u64() > Some(2_500), "{}", one["events"]);
    assert_eq!(one["video"]["one_way_delay_basis"], "mark");
    assert_eq!(one["generator"]["limited"], false, "{}", one["generator"]);
}

#[test]
fn a_batch_that_is_missing_shows_in_the_summary_unless_later_rows_replace_it() {
    let clock = RunClock { start: Instant::now() };
    let told = Story::of_all(clock);
    let workers = [0, 1, 2];
    let shares = workers.map(|worker| batches(collected(clock, &told, Some(worker))));
    let whole = summary(merged(&shares, None), &workers);
    for (kind, figure) in [
        (BatchKind::Interim, None),
        (BatchKind::Lasting, Some(".events.protocol_anomaly_sdp")),
        (BatchKind::Second, Some(".video.packets_original")),
    ] {
        let mut of_kind = shares[1].iter().enumerate().filter(|(_, (of, _))| *of == kind);
        let (number, _) = of_kind.nth(12).unwrap();
        let without = summary(merged(&shares, Some((1, number))), &workers);
        let differences = differences("", &of_the_crowd(&whole), &of_the_crowd(&without));
        match figure {
            Some(figure) => {
                assert!(
                    differences.iter().any(|at| at.starts_with(figure)),
                    "{kind:?}: {differences:?}"
                );
            }
            None => assert_eq!(differences, Vec::<String>::new(), "{kind:?}"),
        }
    }
}
