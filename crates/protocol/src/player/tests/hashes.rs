//! The list of hashes of a live stream's segments, at a viewer that is alone in its swarm.

use std::time::Duration;

use throng_observation::Url;
use throng_scenario::{PeerConfig, PeerPreset};

use super::live::{DATED, fixture, lowest, times_of, whole};
use super::*;

/// The newest segment of [`DATED`] that was complete `late` ago.
fn newest(late: Duration) -> u64 {
    (100 + clock().as_secs() - late.as_secs()) / 4 - 1
}

/// A viewer of a server whose list names each segment `late` after it is complete.
fn viewer(late: Duration) -> Fixture {
    let mut peers = PeerConfig::preset(PeerPreset::Lan);
    peers.hashes = Some(Url::parse("http://10.0.0.1/hashes.json").unwrap());
    let answers = move |path: &str, _: Option<(u64, Option<u64>)>| match path {
        "/hashes.json" => {
            let newest = newest(late);
            let names: Vec<_> = (newest - 10..=newest)
                .map(|number| format!("\"low-{number}.ts\":\"00\""))
                .collect();
            Some(whole(format!("{{{}}}", names.join(",")).into_bytes()))
        }
        path => Some(DATED.answer(path)),
    };
    fixture(PlayerConfig { peers: Some(peers), ..lowest() }, 4_000_000, Box::new(answers))
}

/// How often the segment was requested that was requested most.
fn most_requested(fixture: &Fixture) -> usize {
    (0..60).map(|number| times_of(fixture, &format!("/low-{number}.ts")).len()).max().unwrap_or(0)
}

#[test]
fn segments_whose_hash_comes_with_them_are_loaded_once() {
    let mut fixture = viewer(Duration::ZERO);
    fixture.seconds(40);
    assert!(fixture.reached(Phase::PlaybackStarted).is_some(), "{:?}", fixture.requests);
    assert_eq!(
        (fixture.totals().hash_reloads, most_requested(&fixture)),
        (0, 1),
        "{:?}",
        fixture.requests
    );
}

#[test]
fn segments_whose_hash_comes_too_late_are_loaded_again_and_counted() {
    let mut fixture = viewer(Duration::from_secs(40));
    fixture.seconds(40);
    let reloads = fixture.totals().hash_reloads;
    assert!(reloads > 0 && most_requested(&fixture) > 1, "{reloads}: {:?}", fixture.requests);
    let said = fixture
        .anomalies()
        .iter()
        .filter(|said| said.contains("its hash did not come in time"))
        .count();
    assert!(said > 0, "{:?}", fixture.anomalies());
}
