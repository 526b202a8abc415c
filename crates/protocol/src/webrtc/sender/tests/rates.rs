//! A sender whose rate is limited.

use super::*;
use throng_media::card::Rung;
use throng_media::rtcp::Arrival;

impl Fixture {
    /// A REMB of the receivers of `sources`.
    fn remb(&mut self, bps: f64, sources: &[u32]) {
        let mut remb = Vec::new();
        let _ = RtcpWriter::compound(&mut remb, Report::Receiver(9), &[], "x")
            .remb(9, bps as u64, sources);
        keys(false).sealer().unwrap().seal_rtcp(&mut remb).unwrap();
        assert!(self.sender.rtcp(self.now, &mut remb));
    }

    /// Advances time by `ms` without a receiver.
    fn alone(&mut self, ms: u64) {
        let _ = self.sent_alone(ms);
    }

    /// The same; returns what was sent of each source meanwhile, bits per second.
    fn sent_alone(&mut self, ms: u64) -> impl Fn(u32) -> f64 + use<> {
        let mut sent: Vec<(u32, usize)> = Vec::new();
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            self.sender.timeout(self.now);
            while let Some(packet) = self.sender.poll_packet(self.now) {
                if !(192..=223).contains(&packet[1]) {
                    sent.push((
                        u32::from_be_bytes(packet[8..12].try_into().unwrap()),
                        packet.len(),
                    ));
                }
            }
        }
        move |ssrc| {
            let of = sent.iter().filter(|(source, _)| *source == ssrc);
            of.map(|(_, bytes)| *bytes as f64 * 8_000.0 / ms as f64).sum()
        }
    }

    fn plays(&self, at: usize, clip: &Arc<Clip>) -> bool {
        Arc::ptr_eq(self.sender.streams[at].clip(), clip)
    }
}

#[test]
fn a_lower_target_bitrate_selects_a_lower_rung() {
    let (low, high) = (picture(500), picture(4_000));
    let mut fixture = Fixture::new(&[high.clone(), low.clone()]);
    fixture.run(500, |_| true);
    assert!(fixture.plays(0, &high));
    fixture.remb(300e3, &[PICTURE]);
    fixture.run(100, |_| true);
    assert!(fixture.plays(0, &low));
    let before = fixture.received().frames_decodable;
    fixture.run(2_000, |_| true);
    assert!(
        fixture.received().frames_decodable - before > 50,
        "the change begins with a key frame"
    );
}

#[test]
fn a_non_adaptive_sender_sends_its_configured_bitrate() {
    let (low, high) = (picture(500), picture(4_000));
    let mut fixture = Fixture::new(&[high.clone(), low]);
    fixture.sender.options.adapts = false;
    fixture.remb(300e3, &[PICTURE]);
    fixture.run(2_100, |_| true);
    assert!(fixture.plays(0, &high) && fixture.received().frames_decodable > 50);
}

#[test]
fn what_is_below_the_lowest_rung_sends_the_lowest() {
    let (low, high) = (picture(500), picture(4_000));
    let mut fixture = Fixture::new(&[low.clone(), high]);
    fixture.remb(1.0, &[PICTURE]);
    let sent = fixture.sent_alone(2_000)(PICTURE);
    assert!(fixture.plays(0, &low) && sent > 0.8 * low.bitrate_bps(), "{sent}");
}

#[test]
fn a_better_picture_comes_back_after_a_while() {
    let (low, high) = (picture(500), picture(4_000));
    let mut fixture = Fixture::new(&[low.clone(), high.clone()]);
    fixture.remb(300e3, &[PICTURE]);
    fixture.alone(100);
    fixture.remb(2e6, &[PICTURE]);
    fixture.alone(1_500);
    assert!(fixture.plays(0, &low), "at once, it would come and go with every word of a receiver");
    fixture.remb(2e6, &[PICTURE]);
    fixture.alone(1_000);
    assert!(fixture.plays(0, &high));
}

/// Janus begins with a quarter, a third and a half of its limit, one packet each (`remb_startup` of
/// its VideoRoom).
#[test]
fn of_limits_that_come_in_a_row_the_last_counts() {
    let (low, high) = (picture(500), picture(4_000));
    let mut fixture = Fixture::new(&[low, high.clone()]);
    fixture.alone(5);
    for part in [4.0, 3.0, 2.0, 1.0] {
        fixture.remb(high.bitrate_bps() / part, &[PICTURE]);
    }
    let keys = |fixture: &Fixture| fixture.sender.streams[0].counters.key_frames_sent;
    let before = keys(&fixture);
    fixture.alone(200);
    assert!(fixture.plays(0, &high) && keys(&fixture) == before);
}

#[test]
fn a_limit_on_pictures_leaves_the_sound_its_rate() {
    for (sources, is_high) in [(&[PICTURE][..], true), (&[PICTURE, SOUND], false), (&[], false)] {
        let (low, high) = (picture(500), picture(4_000));
        let ladder = Ladder::new(vec![low.clone(), high.clone()]).unwrap();
        let speech = throng_media::card::speech().unwrap();
        let tracks = vec![track(MediaKind::Audio, speech), track(MediaKind::Video, ladder)];
        let mut fixture = Fixture::new(std::slice::from_ref(&low)).sending(tracks);
        // The lowest limit that the high rung alone fits.
        fixture.remb(high.bitrate_bps() / 1.19, sources);
        fixture.alone(100);
        assert!(fixture.plays(1, if is_high { &high } else { &low }), "{sources:?}");
    }
}

#[test]
fn sizes_of_a_simulcast_go_from_the_largest_down_and_come_back() {
    let sizes = [("f", 4_000), ("h", 2_000), ("q", 500)].map(|(rid, bytes)| (rid, picture(bytes)));
    let tracks = sizes.iter().zip(0..).map(|((rid, clip), at)| {
        let usual = plan(MediaKind::Video);
        let (ssrc, rid) = (PICTURE + 2 * at, Some((*rid).to_owned()));
        let repeats = Some((97, ssrc + 1));
        SentTrack {
            plan: SendPlan { ssrc, rid, repeats, ..usual },
            ..track(MediaKind::Video, clip.clone())
        }
    });
    let mut fixture = Fixture::new(&[picture(500)]).sending(tracks.collect());
    // Full, half, quarter.
    let mut shown = |bps: f64| {
        fixture.remb(bps, &[PICTURE]);
        fixture.alone(1_500);
        fixture.remb(bps, &[PICTURE]);
        fixture.alone(1_000);
        let sent = fixture.sent_alone(1_000);
        [0, 2, 4].map(|at| sent(PICTURE + at) > 0.0)
    };
    assert_eq!(shown(2e6), [true, true, true]);
    assert_eq!(shown(1e6), [false, true, true]);
    assert_eq!(shown(1e3), [false, false, true], "the smallest is always sent");
    assert_eq!(shown(700e3), [false, true, true]);
    assert_eq!(shown(2e6), [true, true, true]);
    let keys = fixture.sender.streams[0].counters.key_frames_sent;
    let frames = fixture.sender.streams[0].counters.frames_sent;
    assert!(keys >= 2 && frames < 30 * 13, "{keys} of {frames}");
}

#[test]
fn a_mute_picture_takes_no_share() {
    let (low, high) = (picture(500), picture(4_000));
    let ladder = Ladder::new(vec![low.clone(), high.clone()]).unwrap();
    let other = SentTrack {
        plan: SendPlan {
            mid: "2".into(),
            ssrc: PICTURE + 2,
            repeats: None,
            ..plan(MediaKind::Video)
        },
        ..track(MediaKind::Video, ladder.clone())
    };
    let mut fixture = Fixture::new(std::slice::from_ref(&low))
        .sending(vec![track(MediaKind::Video, ladder), other]);
    fixture.remb(high.bitrate_bps() * 1.2, &[PICTURE]);
    fixture.alone(100);
    assert!(fixture.plays(0, &low) && fixture.plays(1, &low), "half for each");
    fixture.alone(2_000);
    fixture.sender.streams[1].set_muted(true);
    fixture.remb(high.bitrate_bps() * 1.2, &[PICTURE]);
    fixture.alone(100);
    assert!(fixture.plays(0, &high), "all for the one that is left");
}

#[test]
fn a_screen_has_its_rungs_and_the_picture_after_it() {
    let card = |rung| Ladder::new(throng_media::card::ladder(rung, Codec::Vp8).unwrap()).unwrap();
    let rung = |rung| throng_media::card::picture(rung, Codec::Vp8).unwrap();
    let usual = track(MediaKind::Video, card(Rung::P240));
    let mut fixture = Fixture::new(&[picture(500)]).sending(vec![usual]);
    fixture.alone(100);
    assert!(fixture.plays(0, &rung(Rung::P240)));
    fixture.sender.show(&card(Rung::P720));
    fixture.alone(100);
    assert!(fixture.plays(0, &rung(Rung::P720)));
    fixture.remb(1.2e6, &[PICTURE]);
    fixture.alone(100);
    assert!(fixture.plays(0, &rung(Rung::P360)));
    // The limit also applies to the next video, before a frame of it is sent.
    fixture.sender.show(&card(Rung::P240));
    fixture.sender.show(&card(Rung::P720));
    fixture.alone(100);
    assert!(fixture.plays(0, &rung(Rung::P360)));
}

#[test]
fn a_share_that_begins_while_muted_may_send_all_layers_after() {
    let mut fixture = Fixture::new(&[picture(500)]);
    let screen = picture(4_000);
    let ladder = Ladder::new(vec![picture(500), screen.clone()]).unwrap();
    fixture.sender.set_muted(MediaKind::Video, true);
    fixture.sender.show(&ladder);
    fixture.run(1_500, |_| true);
    fixture.sender.set_muted(MediaKind::Video, false);
    fixture.run(2_500, |_| true);
    assert!(fixture.plays(0, &screen));
}

/// A path with a queue of half a second before its bottleneck; its receiver sends transport-wide
/// feedback and a report.
struct Narrow {
    bps: f64,
    free_at: Instant,
    number: u16,
    under_way: Vec<(Instant, u16)>,
    lost: u32,
    reports: u8,
}

impl Narrow {
    fn new(bps: f64, now: Instant) -> Self {
        Self { bps, free_at: now, number: 0, under_way: Vec::new(), lost: 0, reports: 0 }
    }

    /// Advances time by `seconds`; returns what was sent meanwhile, bits per second, and how many
    /// packets were lost.
    fn carry(&mut self, fixture: &mut Fixture, seconds: u64) -> (f64, u32) {
        let (mut sent, lost_before) = (0, self.lost);
        for ms in 0..seconds * 1_000 {
            fixture.now += Duration::from_millis(1);
            fixture.sender.timeout(fixture.now);
            while let Some(packet) = fixture.sender.poll_packet(fixture.now) {
                if !(192..=223).contains(&packet[1]) {
                    sent += packet.len();
                    self.take(fixture.now, packet.len());
                }
            }
            if ms % 100 == 0 {
                self.report(fixture);
            }
        }
        (sent as f64 * 8.0 / seconds as f64, self.lost - lost_before)
    }

    fn take(&mut self, now: Instant, bytes: usize) {
        self.number = self.number.wrapping_add(1);
        if self.free_at.saturating_duration_since(now) > Duration::from_millis(500) {
            self.lost += 1;
            return;
        }
        self.free_at =
            self.free_at.max(now) + Duration::from_secs_f64(bytes as f64 * 8.0 / self.bps);
        self.under_way.push((self.free_at + Duration::from_millis(10), self.number));
    }

    fn report(&mut self, fixture: &mut Fixture) {
        let there: Vec<_> =
            self.under_way.iter().copied().filter(|(at, _)| *at <= fixture.now).collect();
        self.under_way.retain(|(at, _)| *at > fixture.now);
        let clock = fixture.sender.options.clock;
        let arrival = |(at, sequence): (Instant, u16)| Arrival {
            sequence,
            arrived_us: clock.unix_ns(at) / 1_000,
        };
        let arrivals: Vec<_> = there.into_iter().map(arrival).collect();
        let mut bytes = Vec::new();
        let _ = RtcpWriter::compound(&mut bytes, Report::Receiver(9), &[], "x").transport_feedback(
            9,
            PICTURE,
            &mut self.reports,
            &arrivals,
        );
        keys(false).sealer().unwrap().seal_rtcp(&mut bytes).unwrap();
        assert!(fixture.sender.rtcp(fixture.now, &mut bytes));
    }
}

#[test]
fn a_wide_path_is_sent_all_that_is_wanted() {
    let rungs = [500, 1_000, 2_000, 4_000].map(picture);
    let mut fixture = Fixture::new(&rungs);
    let mut path = Narrow::new(20e6, fixture.now);
    let wanted = rungs[3].bitrate_bps();
    let (sent, lost) = path.carry(&mut fixture, 30);
    assert!((0.99..1.1).contains(&(sent / wanted)) && lost == 0, "{sent} of {wanted}, {lost} lost");
    assert!(fixture.plays(0, &rungs[3]));
}

#[test]
fn a_path_of_half_what_is_wanted_is_sent_less_than_it_carries() {
    let rungs = [500, 1_000, 1_500, 2_000, 4_000].map(picture);
    let mut fixture = Fixture::new(&rungs);
    let half = rungs[4].bitrate_bps() / 2.0;
    let mut path = Narrow::new(half, fixture.now);
    path.carry(&mut fixture, 5);
    let (sent, _) = path.carry(&mut fixture, 60);
    assert!((half / 1.5..half).contains(&sent), "{sent} of {half}");
    // When the path widens, the wanted rate is reached.
    path.bps = 20e6;
    path.carry(&mut fixture, 60);
    assert!(fixture.plays(0, &rungs[4]));
}
