//! What `--set` changes, and what it says when it cannot.

use std::time::Duration;

use super::{FULL, SMALL, example, set};
use crate::arrival::{ArrivalKind, Every, Jitter, Poisson, Ramp};
use crate::{Override, StayTime, TokenSource};

#[test]
fn overrides_replace_add_and_choose() {
    let scenario = set(
        FULL,
        &[
            "crowd.size=50",
            "crowd.arrival.every=1s",
            "run.duration=2m",
            "crowd.name=42",
            "target.token=7",
            "crowd.stay=9s",
        ],
    )
    .unwrap();
    assert_eq!(scenario.crowd[0].size, 50);
    let (interval, jitter) = (Duration::from_secs(1), Some(Jitter { seed: 1 }));
    assert_eq!(scenario.crowd[0].arrival, ArrivalKind::Every(Every { interval, jitter }));
    assert_eq!(scenario.run.duration, Duration::from_secs(120));
    // Bare words and numbers are text where text is expected.
    assert_eq!(scenario.crowd[0].name, "42");
    assert!(
        matches!(scenario.target.token, Some(TokenSource::Inline(secret)) if secret.expose() == "7")
    );
    let objectives = set(FULL, &["objectives=[\"failed < 2%\"]"]).unwrap().objectives;
    assert_eq!(objectives[0].text, "failed < 2%");
    let stay =
        set(&format!("{SMALL}stay = \"30s\"\n"), &["crowd.stay.mean=5s"]).unwrap().crowd[0].stay;
    assert!(matches!(stay.unwrap().time, StayTime::Exponential { .. }));
}

#[test]
fn another_kind_of_arrival_replaces_the_first_and_keeps_a_jitter_that_it_has_too() {
    let exact = format!("{SMALL}arrival = {{ every = \"1s\", jitter = false }}\n");
    let arrival = |text: &str, sets: &[&str]| {
        set(text, sets).unwrap_or_else(|error| panic!("{error}")).crowd[0].arrival.clone()
    };
    let over = Duration::from_secs(9);
    assert_eq!(
        arrival(&exact, &["crowd.arrival.ramp=9s"]),
        ArrivalKind::Ramp(Ramp { over, jitter: None })
    );
    let poisson = arrival(&exact, &["crowd.arrival.poisson={ rate = \"5/s\" }"]);
    assert_eq!(poisson, ArrivalKind::Poisson(Poisson { rate_per_s: 5.0, seed: 1 }));
    // Without a kind it is the jitter of the default.
    let exactly = Every { jitter: None, ..Every::default() };
    assert_eq!(arrival(SMALL, &["crowd.arrival.jitter=false"]), ArrivalKind::Every(exactly));
    let seeded = Every { jitter: Some(Jitter { seed: 7 }), ..Every::default() };
    assert_eq!(arrival(SMALL, &["crowd.arrival.seed=7"]), ArrivalKind::Every(seeded));
}

#[test]
fn a_cohort_is_named_by_an_override_when_there_are_several() {
    let ome = &example("ome-viewers.toml");
    let scenario = set(ome, &["crowd.posted-link.size=100", "crowd.0.size=10"]).unwrap();
    assert_eq!((scenario.crowd[0].size, scenario.crowd[1].size), (10, 100));
    let error = set(ome, &["crowd.size=10"]).unwrap_err().to_string();
    assert!(error.contains("write `crowd.audience.size` or `crowd.posted-link.size`"), "{error}");
}

#[test]
fn a_bad_override_says_which() {
    for (setting, shown, help) in [
        ("crowd.size=many", "in --set crowd.size", "whole number from 1"),
        ("crowd.sise=5", "in --set crowd.sise", "did you mean `size`?"),
        ("crwd.size=5", "in --set crwd.size", "did you mean `crowd`?"),
        ("crowd..size=5", "in --set crowd..size", "dotted path"),
        ("run.duration=60", "in --set run.duration", "100ms"),
        ("crowd.arrival={ramp=\"60x\"}", "in --set crowd.arrival", "100ms"),
    ] {
        let error = set(FULL, &["run.warm_up=1s", setting]).expect_err(setting).to_string();
        assert!(error.contains(shown) && error.contains(help), "{setting}: {error}");
    }
    for text in ["crowd.size", "=5", ""] {
        assert!(Override::parse(text).is_err(), "{text}");
    }
    let error = set(SMALL, &["crowd.arrival={ramp=\"60x\"}"]).unwrap_err();
    let location = error.diagnostics[0].location.clone().unwrap();
    let meant: String =
        location.source_line.chars().skip(location.caret_at).take(location.width).collect();
    assert_eq!(meant, "\"60x\"");
}

#[test]
fn a_token_goes_to_the_host_that_it_was_written_for_and_to_no_other() {
    let file = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\ntoken = \"env:TOKEN\"\n[crowd]\nsize = 5\n";
    let token = |sets: &[&str]| {
        set(file, sets).map(|scenario| scenario.target.token.map(|t| t.to_string()))
    };
    let other = "target.url=whep+http://127.0.0.2:7080/whep";
    assert_eq!(
        token(&["target.url=whep+http://127.0.0.1:7080/other"]).unwrap().as_deref(),
        Some("env:TOKEN")
    );
    assert_eq!(token(&[other, "target.token=env:OTHER"]).unwrap().as_deref(), Some("env:OTHER"));
    assert_eq!(token(&[other, "target.token="]).unwrap(), None);
    for url in [other, "target.url=whep+http://127.0.0.1:7081/whep"] {
        let error = token(&[url]).unwrap_err().to_string();
        for said in ["is for 127.0.0.1:7080", "in --set target.url", "--set target.token="] {
            assert!(error.contains(said), "{error}");
        }
    }
}

#[test]
fn errors_of_an_override_name_it_and_its_cohort() {
    let ome = &example("ome-viewers.toml");
    for (written, says) in [
        ("crowd.posted-link.size=0", "`crowd.posted-link.size` is not a whole number"),
        ("crowd.audience.arrival.every=soon", "`crowd.audience.arrival.every`"),
        ("crowd.0.stay=x", "`crowd.audience.stay"),
        ("crowd.audience.szie=5", "in `crowd.audience`"),
        ("crowd.nobody.size=5", "write `crowd.audience.size` or `crowd.posted-link.size`"),
        ("run.duration=1s", "but the run ends at 1s"),
        ("crowd.posted-link.size=9000", "posted-link would join at"),
    ] {
        let error = set(ome, &[written]).unwrap_err().to_string();
        let origin = format!("--> in --set {}", written.split('=').next().unwrap());
        assert!(error.contains(says) && error.contains(&origin), "{error}");
    }
}
