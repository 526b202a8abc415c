//! Producers and consumers as real processes: killed between instructions, scribbling, sandboxed,
//! of other users.
//!
//! `cargo test -p throng-ring --test processes -- [SCENE]`. A scene that needs root is reported and
//! skipped without it.

mod child;
mod full;
mod hostile;
mod inherited;
mod kill;
mod restart;
mod sandbox;
mod soak;
mod steps;
mod users;

type Scene = fn() -> String;

const SCENES: [(&str, Scene); 9] = [
    ("killed_between_instructions", steps::run),
    ("killed_at_random", kill::run),
    ("a_full_lane_takes_newcomers", full::run),
    ("hostile_producers", hostile::run),
    ("consumer_restarts", restart::run),
    ("a_child_drops_what_it_inherited", inherited::run),
    ("sandboxed_like_a_chromium_renderer", sandbox::run),
    ("another_user", users::run),
    ("soak", soak::run),
];

/// Supports the arguments of test runners for the standard harness: `--list`, `--exact`, a name. No
/// test is ignored.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let filter =
        arguments.iter().find(|argument| !argument.starts_with('-') && *argument != "terse");
    let is_meant = |name: &str| match filter {
        Some(filter) if has("--exact") => name == filter,
        Some(filter) => name.contains(filter.as_str()),
        None => !has("--ignored"),
    };
    for (name, scene) in SCENES.iter().filter(|(name, _)| is_meant(name)) {
        if has("--list") {
            say(&format!("{name}: test"));
            continue;
        }
        let started = std::time::Instant::now();
        let result = scene();
        say(&format!("{name}: {result} ({:.1} s)", started.elapsed().as_secs_f64()));
    }
}

#[expect(clippy::print_stdout, reason = "a test without a harness says itself what it did")]
fn say(text: &str) {
    println!("{text}");
}
