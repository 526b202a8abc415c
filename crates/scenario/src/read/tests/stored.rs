//! What a folder keeps of a scenario: written, read back, and without its secrets.

use std::time::Duration;

use super::{FULL, SMALL, examples, read};
use crate::arrival::{ArrivalKind, Every};
use crate::{Override, Scenario};

#[test]
fn a_scenario_that_was_stored_without_jitter_ran_without() {
    let stored = |arrival: &str| {
        let text = format!("{SMALL}arrival = {arrival}\n");
        Scenario::parse_stored(&text).unwrap_or_else(|error| panic!("{error}")).crowd[0]
            .arrival
            .clone()
    };
    let interval = Duration::from_secs(1);
    assert_eq!(stored("{ every = \"1s\" }"), ArrivalKind::Every(Every { interval, jitter: None }));
    let written = read(&format!("{SMALL}arrival = {{ every = \"1s\" }}\n"));
    let again =
        Scenario::parse_stored(&written.to_toml()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.crowd, written.crowd);
}

#[test]
fn a_scenario_written_as_toml_reads_back_as_the_same() {
    let variants = [
        "arrival = { ramp = \"7s\" }\nstay = \"3s\"",
        "arrival = { ramp = \"7s\", jitter = false }",
        "arrival = { every = \"1s\", seed = 9 }",
        "arrival = { burst = { size = 3, every = \"1500ms\" } }\nstay = { exactly = \"1m\", rejoin = true }",
    ];
    let mut texts = vec![FULL.to_owned()];
    texts.extend(examples().into_iter().map(|(_, text)| text));
    texts.extend(variants.iter().map(|more| format!("{SMALL}{more}\n")));
    for text in texts {
        let scenario = read(&text);
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
    }
}

#[test]
fn a_stored_scenario_holds_no_secret_and_asks_for_it_when_run_again() {
    let text = SMALL
        .replace("7080/whep\"", "7080/whep?key=hunter2\"\ntoken = \"hunter2\"")
        .replace("http://", "http://joe:hunter2@");
    let stored = read(&text).to_toml();
    assert!(!stored.contains("hunter2"), "{stored}");
    let error = Scenario::parse(&stored).unwrap_err().to_string();
    assert!(error.contains("redacted when this scenario was stored"), "{error}");
    // The objectives of the run can still be read.
    let asked = Scenario::parse_stored(&stored).unwrap_or_else(|error| panic!("{stored}\n{error}"));
    assert_eq!((&asked.objectives, &asked.run), (&read(&text).objectives, &read(&text).run));
    assert_eq!(asked.to_toml(), stored);
}

#[test]
fn a_run_that_was_stored_before_publishers_had_a_prefix_can_still_be_read() {
    for (stored, url) in [
        ("rtmp://h/live/…", "publish+rtmp://h/live/…"),
        ("RTMP://h/live/cam{n}", "publish+RTMP://h/live/…{n}"),
        ("rtmps://127.0.0.1/live/key#1", "publish+rtmps://127.0.0.1/live/…"),
        ("srt://h:9000?streamid=#!::r=live/x,m=publish", "publish+srt://h:9000/?streamid=…"),
        ("publish+rtsp://h/live#1", "publish+rtsp://h/live"),
        ("rtsp://h/cam#1", "rtsp://h/cam"),
        ("whep+http://h/x#1", "whep+http://h/x"),
    ] {
        let text = SMALL.replace("whep+http://127.0.0.1:7080/whep", stored);
        assert!(text.contains(stored), "{text}");
        let asked = Scenario::parse_stored(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(asked.target.display(), url);
        if !stored.starts_with("whep") {
            assert!(Scenario::parse(&text).is_err(), "nobody runs it unknowingly: {text}");
        }
    }
}

/// What a folder keeps of a scenario is enough to judge its run by.
#[test]
fn a_masked_scenario_says_the_same_and_cannot_be_run() {
    let text = SMALL.replacen("[crowd]", "token = \"S3CRET\"\n[crowd]", 1);
    let (kept, overrides) = (crate::masked_toml(&text), ["target.token=\u{2026}"]);
    let overrides = overrides.map(|text| Override::parse(text).unwrap());
    let stored = Scenario::parse_masked(&kept, &overrides).unwrap();
    assert_eq!(stored.crowd, read(&text).crowd);
    assert!(Scenario::parse(&kept).is_err(), "it cannot be run");
}
