//! A brief fuzz that runs with every `cargo test`: good files, objectives, URLs and proofs, damaged
//! in every simple way, many times per parser. The seed is fixed, so a failure is reproducible; the
//! long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

const ROUNDS: usize = 100_000;

#[test]
fn scenarios_hold_their_laws_for_any_text() {
    let mut seeds = hunt::seeds_in("fuzz/seeds/scenario");
    seeds.extend(hunt::seeds_in("examples"));
    hunt::hunt(laws::scenario, &seeds, hunt::TEXT, ROUNDS / 5);
}

#[test]
fn matrices_hold_their_laws_for_any_text() {
    let mut seeds = hunt::seeds_in("fuzz/seeds/matrix");
    seeds.extend(hunt::seeds_in("examples/campus-study"));
    hunt::hunt(laws::matrix, &seeds, hunt::TEXT, ROUNDS / 5);
}

#[test]
fn proofs_hold_their_laws_for_any_text() {
    let mut seeds = hunt::seeds_in("fuzz/seeds/proof");
    seeds.extend(hunt::seeds_in("examples/prove"));
    hunt::hunt(laws::proof, &seeds, hunt::TEXT, ROUNDS / 10);
}

#[test]
fn prices_hold_their_laws_for_any_text() {
    hunt::hunt(laws::prices, &hunt::seeds_in("examples/prices"), hunt::TEXT, ROUNDS / 5);
}

#[test]
fn recordings_of_pages_hold_their_laws_for_any_text() {
    hunt::hunt(laws::har, &hunt::seeds_in("fuzz/seeds/har"), hunt::TEXT, ROUNDS / 10);
}

#[test]
fn objectives_hold_their_laws_for_any_text() {
    hunt::hunt(laws::objective, &hunt::seeds_in("fuzz/seeds/objective"), hunt::TEXT, ROUNDS);
}

#[test]
fn target_urls_hold_their_laws_for_any_text() {
    hunt::hunt(laws::target, &hunt::seeds_in("fuzz/seeds/target-url"), hunt::TEXT, ROUNDS);
}

#[test]
fn consent_proofs_hold_their_laws_for_any_text() {
    hunt::hunt(laws::consent, &hunt::seeds_in("fuzz/seeds/consent"), hunt::TEXT, ROUNDS);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("consent", laws::consent);
    hunt::replay("har", laws::har);
    hunt::replay("matrix", laws::matrix);
    hunt::replay("objective", laws::objective);
    hunt::replay("prices", laws::prices);
    hunt::replay("proof", laws::proof);
    hunt::replay("scenario", laws::scenario);
    hunt::replay("target", laws::target);
}
