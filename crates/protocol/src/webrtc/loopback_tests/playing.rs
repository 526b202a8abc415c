//! The measurements, reports and requests of a viewer that plays.

use super::*;

#[test]
fn a_first_flight_before_the_server_listens_is_soon_sent_again() {
    let mut world = World::new();
    world.dtls_lost = 1;
    world.start();
    let started = world.now;
    while world.sealer.is_none() {
        world.run(Duration::from_millis(1));
    }
    let joined_ms = (world.now - started).as_millis();
    assert!(
        (35..150).contains(&joined_ms),
        "{joined_ms} ms, as a browser's 50 and not RFC 6347's 1,000"
    );
}

#[test]
fn a_viewer_connects_plays_reports_and_leaves() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(6));
    let expect = [
        Phase::Started,
        Phase::Negotiated,
        Phase::IceConnected,
        Phase::DtlsConnected,
        Phase::FirstPacket,
        Phase::FirstFrame,
    ];
    assert_eq!(world.phases(), expect);
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(5));
    assert_eq!(world.ended, Some(Outcome::Completed));
    assert!(world.signalling.0.lock().unwrap().said_goodbye);
    assert_eq!(world.received.byes, 1);
    assert_eq!(world.received.bad, 0);

    let (video, audio) = (world.total(MediaKind::Video), world.total(MediaKind::Audio));
    assert_eq!(video.packets_original, u64::from(world.video.packets), "all of {video:?}");
    assert_eq!(audio.packets_original, u64::from(world.audio.packets));
    assert_eq!((video.packets_lost, video.nack_sent, video.packets_unreadable), (0, 0, 0));
    assert!(world.received.fractions_lost.iter().all(|lost| *lost == 0));
    assert!(
        (4..=12).contains(&world.received.fractions_lost.len()),
        "{} reports",
        world.received.fractions_lost.len()
    );
    assert!(
        world.received.last_sr.iter().filter(|compact| **compact != 0).count() >= 3,
        "LSR is filled"
    );
    let sent = (world.video.packets + world.audio.packets) as usize;
    assert!(
        world.received.reported_arrived > sent * 9 / 10 && world.received.reported_missing == 0,
        "arrivals are reported"
    );
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn lost_packets_are_asked_for_and_recovered() {
    let mut world = World::new();
    world.lose = |retransmission, count| !retransmission && count % 20 == 7;
    world.start();
    world.run(Duration::from_secs(6));
    let lost_on_the_way = world.video.packets / 20;
    world.plays = false;
    world.viewer.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(5));
    let video = world.total(MediaKind::Video);
    assert!(
        video.nack_sent > 0 && video.packets_recovered + 2 >= u64::from(lost_on_the_way),
        "{video:?}"
    );
    assert!(world.received.nacked.len() as u64 >= video.packets_recovered);
    let repeats = video.repeat_ratio();
    assert!(repeats.is_some_and(|share| (0.01..0.2).contains(&share)), "{repeats:?} of {video:?}");
    assert!(world.received.reported_missing > 0, "transport feedback shows the gaps");
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn loss_that_stays_is_reported_and_a_key_frame_is_asked_for() {
    let mut world = World::new();
    world.lose = |retransmission, count| count > 60 && (retransmission || count % 10 == 3);
    world.start();
    world.run(Duration::from_secs(8));
    let (first, last) =
        (world.received.lost_of[0], world.received.lost_of[world.received.lost_of.len() - 1]);
    let ratio = f64::from(last.0 - first.0) / f64::from(last.1 - first.1);
    assert!((0.05..0.15).contains(&ratio), "a tenth is lost, {ratio} is reported");
    assert!(world.received.plis > 0, "a picture cannot be decoded and no key frame is asked for");
    let video = world.total(MediaKind::Video);
    assert_eq!(video.pli_sent, world.received.plis as u64);
    assert!(video.packets_lost > 0);
    // Janus uses only the first report block to find the medium of a datagram, and drops datagrams
    // without one.
    assert!(
        world.received.nacked.len() > 100 && world.received.astray == 0,
        "{} requests",
        world.received.astray
    );
}

#[test]
fn requests_without_a_report_take_nothing_from_the_next_report() {
    let mut world = World::new();
    world.edit_answer = |answer| answer.replace("a=rtcp-mux\r\n", "a=rtcp-mux\r\na=rtcp-rsize\r\n");
    world.lose = |retransmission, count| count > 60 && (retransmission || count % 10 == 3);
    world.start();
    world.run(Duration::from_secs(8));
    let fractions = &world.received.fractions_lost;
    assert!(
        world.received.nacked.len() > 100 && fractions.len() <= 16,
        "{} reports",
        fractions.len()
    );
    let mean =
        fractions.iter().map(|lost| f64::from(*lost) / 256.0).sum::<f64>() / fractions.len() as f64;
    assert!((0.05..0.15).contains(&mean), "a tenth is lost, {mean} is reported");
}

#[test]
fn each_stream_reports_for_itself_as_often_as_a_browsers() {
    let mut world = World::new();
    world.start();
    world.run(Duration::from_secs(30));
    let (video, audio) = (world.received.fractions_lost.len(), world.received.audio_reports);
    assert!((22..=38).contains(&video), "{video} reports of the picture");
    assert!((4..=9).contains(&audio), "{audio} reports of the sound");
    assert_eq!(world.received.crowded_reports, 0);
}

#[test]
fn reordered_packets_are_counted_and_neither_lost_nor_late() {
    let mut world = World::new();
    world.delay = |count| count % 10 == 4;
    world.start();
    world.run(Duration::from_secs(5));
    world.plays = false;
    world.run(Duration::from_millis(10));
    world.viewer.handle(world.now, Input::Leave { others_follow: false });
    world.run(Duration::from_millis(5));
    let video = world.total(MediaKind::Video);
    assert_eq!(video.packets_original, u64::from(world.video.packets), "{video:?}");
    assert_eq!((video.packets_lost, video.packets_late), (0, 0), "{video:?}");
    // The last of a frame's three packets is followed by none that could overtake it.
    let overtaken =
        (1..=world.video.packets).filter(|count| count % 10 == 4 && count % 3 != 0).count();
    assert_eq!(video.packets_reordered, overtaken as u64, "{video:?}");
    assert!(video.frames_decodable > 100, "{video:?}");
}

#[test]
fn a_peer_without_transport_feedback_gets_remb() {
    let mut world = World::new();
    world.edit_answer = |answer| answer.replace(" transport-cc", " goog-remb");
    world.start();
    world.run(Duration::from_secs(5));
    assert!(
        world.received.bandwidth_estimates >= 3,
        "{} estimates",
        world.received.bandwidth_estimates
    );
    assert_eq!((world.received.reported_arrived, world.received.bad), (0, 0));
}

#[test]
fn a_peer_that_knows_no_pli_is_asked_by_fir() {
    let mut world = World::new();
    world.edit_answer = |answer| answer.replace(" nack pli", " nack");
    world.lose = |retransmission, count| count > 60 && (retransmission || count % 10 == 3);
    world.start();
    world.run(Duration::from_secs(8));
    assert!(
        world.received.firs > 0 && world.received.plis == 0 && world.received.bad == 0,
        "{} FIR",
        world.received.firs
    );
}
