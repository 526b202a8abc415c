//! The families of the workers of a fleet.

use crate::openmetrics::declared::{Declared, families};
use crate::openmetrics::family::Kind;

families! {
    WORKERS = Gauge "throng_fleet_workers" "" ["state"]
        "Workers of a fleet: playing; ending, whose last rows are on the way; ended; lost. Their \
         sum is how many the run began with.";
    REASSIGNED = Counter "throng_fleet_reassigned_joins" "" ["join"]
        "Participants of workers that are gone, which others play: in the places of lost ones \
         (anew), or as planned.";
    LOST = Gauge "throng_fleet_worker_lost" "" ["worker"]
        "1 for a worker that is lost.";
    PLAYING = Gauge "throng_fleet_worker_participants" "" ["worker"]
        "Participants of a worker that played in the last second.";
    OFFSET = Gauge "throng_fleet_worker_clock_offset_seconds" "seconds" ["worker"]
        "The coordinator's clock less the worker's, as it is known now.";
    CLOCK_ERROR = Gauge "throng_fleet_worker_clock_error_seconds" "seconds" ["worker"]
        "How far the times of a worker's rows may be off now: by how much that offset has changed \
         since the start, and within what it is known.";
    ROWS_AGE = Gauge "throng_fleet_worker_rows_age_seconds" "seconds" ["worker"]
        "Time since the end of the last second of which all rows of a worker have come; seconds \
         wait for the slowest one.";
    SILENT = Gauge "throng_fleet_worker_silent_seconds" "seconds" ["worker"]
        "Time since a worker was last heard; after 4 s it is lost.";
    CPU = Gauge "throng_fleet_worker_cpu_ratio" "ratio" ["worker"]
        "CPU time that a worker's process used in the last second, share of the cores that it may \
         use.";
    HOTTEST = Gauge "throng_fleet_worker_hottest_thread_ratio" "ratio" ["worker"]
        "Share of one core that its busiest thread used in the last second; above 0.7 the worker \
         is a limit.";
    LIMITED = Counter "throng_fleet_worker_limited_seconds" "seconds" ["worker"]
        "Seconds in which a worker exceeded one of its own limits, as those of the generator.";
    SPOOLED = Gauge "throng_fleet_worker_spooled_bytes" "bytes" ["worker"]
        "Rows that wait in a worker's spool for the bus.";
    GIVEN_UP = Counter "throng_fleet_worker_given_up_batches" "" ["worker"]
        "Batches of rows that a worker gave up because its spool was full.";
}
