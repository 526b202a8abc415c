//! Negotiation: first, repeated, and with modified descriptions.

use super::*;

#[test]
fn a_later_offer_adds_a_stream_and_disturbs_no_other() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    let offered = world.offer_again(LaterOffer::MoreVideo);
    let section = offered.sections.last().unwrap();
    world.more_video.payload_type = world.video.payload_type;
    world.more_video.ssrc = *section.ssrcs.first().unwrap();
    world.run(Duration::from_secs(3));
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(5));
    assert_eq!(world.ended, Some(Outcome::Completed));
    let opened = world
        .observed
        .iter()
        .filter(|observation| matches!(observation, Observation::TrackOpened { .. }));
    assert_eq!(opened.count(), 3);
    let video = world.total(MediaKind::Video);
    let sent = u64::from(world.video.packets + world.more_video.packets);
    assert_eq!((video.packets_original, video.packets_lost), (sent, 0), "{video:?}");
    assert!(world.more_video.packets > 80);
    assert!(
        !world.observed.iter().any(|o| matches!(o, Observation::ProtocolAnomaly { .. })),
        "{:?}",
        world.observed
    );
}

#[test]
fn an_ice_restart_continues_playing() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(2));
    let before = world.intervals(MediaKind::Video).count();
    world.offer_again(LaterOffer::IceRestart);
    // Longer than any timeouts with lost consent or silence.
    world.run(Duration::from_secs(40));
    assert_eq!(world.ended, None);
    assert!(world.intervals(MediaKind::Video).count() >= before + 39);
    let video = world.total(MediaKind::Video);
    assert_eq!((video.packets_lost, video.packets_unreadable), (0, 0), "{video:?}");
    assert_eq!(world.received.bad, 0);
}

#[test]
fn the_answerer_begins_dtls() {
    let offer = Session::viewer(Instant::now()).unwrap().create_offer().unwrap();
    assert!(offer.contains("a=setup:actpass"), "{offer}");
    for (offered, answered) in [("actpass", "active"), ("active", "passive"), ("passive", "active")]
    {
        let offer = offer.replace("a=setup:actpass", &format!("a=setup:{offered}"));
        let (answer, _) = Session::server(Instant::now()).unwrap().accept_offer(&offer).unwrap();
        let said: Vec<&str> =
            answer.lines().filter_map(|line| line.strip_prefix("a=setup:")).collect();
        assert!(
            !said.is_empty() && said.iter().all(|setup| *setup == answered),
            "{offered}: {said:?}"
        );
    }
}

#[test]
fn bent_descriptions_fail_with_a_reason_and_without_panic() {
    let mut server = Session::server(Instant::now()).unwrap();
    let mut client = Session::viewer(Instant::now()).unwrap();
    let offer = client.create_offer().unwrap();
    server.add_local_candidate(address(SERVER)).unwrap();
    let (answer, _) = server.accept_offer(&offer).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let (mut agreed, mut refused) = (0, 0);
    for round in 0..400 {
        let source = if round % 2 == 0 { &offer } else { &answer };
        let mut lines: Vec<&str> = source.lines().collect();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..lines.len());
            match random.u8(0..3) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[random.usize(..lines.len())]),
                _ => {
                    let line = lines[at];
                    let cut =
                        (0..line.len()).rev().find(|cut| line.is_char_boundary(*cut)).unwrap_or(0);
                    lines[at] = &line[..random.usize(..=cut)];
                }
            }
        }
        let bent = lines.join("\r\n") + "\r\n";
        let mut session = Session::viewer(Instant::now()).unwrap();
        let result = if round % 2 == 0 {
            session.accept_offer(&bent).map(drop)
        } else {
            session.create_offer().unwrap();
            session.accept_answer(&bent).map(drop)
        };
        match result {
            Ok(()) => agreed += 1,
            Err(error) => {
                assert!(
                    !error.to_string().contains("library failed"),
                    "str0m panicked on:\n{bent}"
                );
                refused += 1;
            }
        }
        let _ = Description::parse(&bent);
    }
    assert!(agreed > 0 && refused > 0, "{agreed} {refused}");
}

#[test]
fn the_offer_names_every_codec_and_feedback() {
    let offer =
        Description::parse(&Session::viewer(Instant::now()).unwrap().create_offer().unwrap());
    let formats = || offer.sections.iter().flat_map(|section| &section.formats);
    for name in ["H264", "H265", "VP8", "VP9", "AV1", "opus", "PCMU", "PCMA", "rtx"] {
        assert!(formats().any(|format| format.name.eq_ignore_ascii_case(name)), "{name}");
    }
    let video = formats().find(|format| format.name == "VP8").unwrap().feedback;
    assert!(video.nack && video.pli && video.fir && video.transport_cc);
    let ids = offer.extension_ids();
    for extension in [Extension::AbsCaptureTime, Extension::TransportSequence, Extension::Mid] {
        assert!(ids.id(extension).is_some(), "{extension:?}");
    }
}
