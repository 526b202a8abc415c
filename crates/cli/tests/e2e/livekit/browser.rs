//! A real Chromium among the members: it receives the videos of throng's participants, and they
//! receive its video.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_observation::MediaKind;
use throng_sim::chromium::Chromium;
use throng_sim::livekit::{LiveKit, PORT, token};
use throng_sim::namespace::Namespace;
use throng_store::RunFolder;

use super::{ADDRESS, access, arguments, can_run, url};
use crate::throng::{Running, figure, valid};

/// A Chromium that joined a room of the server at `address`, sends video, and shows the video of
/// the others.
pub(crate) fn member(namespace: &Namespace, address: Ipv4Addr, room: &str) -> Chromium {
    let mut browser = Chromium::start(namespace).unwrap();
    browser.evaluate(include_str!("member.js")).unwrap();
    let grant = json!({ "roomJoin": true, "canPublish": true, "canSubscribe": true });
    let token = token("chromium", room, &grant);
    let query = format!("protocol=16&auto_subscribe=1&access_token={token}");
    browser.evaluate(&format!("join('ws://{address}:{PORT}/rtc?{query}')")).unwrap();
    browser
}

/// What Chromium shows: frames so far, and the number on the test card, of each video.
pub(crate) fn seen(browser: &mut Chromium) -> Vec<(u64, Option<u64>)> {
    let seen = browser.evaluate("window.seen()").unwrap();
    let of = |video: &Value| (video[0].as_u64().unwrap_or(0), video[1].as_u64());
    seen.as_array().into_iter().flatten().map(of).collect()
}

/// The numbers that Chromium shows meanwhile on each of the last `count` videos: a repeated run
/// adds new ones.
pub(crate) fn numbers(
    browser: &mut Chromium,
    count: usize,
    meanwhile: Duration,
) -> Vec<BTreeSet<u64>> {
    let mut numbers = vec![BTreeSet::new(); count];
    let until = Instant::now() + meanwhile;
    while Instant::now() < until {
        for (numbers, (_, number)) in numbers.iter_mut().zip(seen(browser).into_iter().rev()) {
            numbers.extend(number);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    numbers
}

#[test]
fn chromium_sees_our_pictures_move_and_is_seen() {
    if !can_run() {
        return;
    }
    let namespace = Namespace::with_veth("livekit", ADDRESS).unwrap();
    let _server = LiveKit::start(&namespace, ADDRESS).unwrap();
    let mut browser = member(&namespace, ADDRESS, "browser");
    let (url, access) = (url("browser"), access());
    let view = arguments(&url, &access, &["-n", "2", "--every", "200ms", "--for", "14s"]);
    let (ran, numbers) = valid(|| {
        let running = Running::start(Some(&namespace), &view);
        let numbers = numbers(&mut browser, 2, Duration::from_secs(11));
        (running.wait(), numbers)
    });
    let errors = browser.evaluate("window.member.errors").unwrap();
    let ran = ran.expect_code(0);
    // About sixty looks at both of throng's videos found many different numbers.
    assert!(numbers.iter().all(|numbers| numbers.len() >= 10), "{numbers:?} {errors}\n{ran}");
    assert!(seen(&mut browser).iter().rev().take(2).all(|(frames, _)| *frames > 100), "{errors}");
    assert_eq!(figure(&ran.summary(), "participants.playing"), 2.0, "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    let from_chromium = run.tracks.iter().filter(|track| {
        track.from.as_deref() == Some("chromium")
            && track.kind == MediaKind::Video
            && track.counters.frames_decodable > 50
    });
    assert_eq!(from_chromium.count(), 2, "{errors}\n{ran}");
}
