//! A brief fuzz that runs with every `cargo test`: good lines of logs, damaged in every simple way.
//! The seed is fixed, so a failure is reproducible; the long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

const ROUNDS: usize = 50_000;

#[test]
fn access_logs_hold_their_laws_for_any_text() {
    hunt::hunt(laws::access_log, &hunt::seeds_in("fuzz/seeds/access-log"), hunt::TEXT, ROUNDS);
}
