//! Streams that throng publishes to a real server and viewers play by another protocol of it: all
//! frames are passed on, and the server counts the bytes that throng says it sent.

use std::time::{Duration, Instant};

use throng_sim::real::RealServer;
use throng_sim::real::mediamtx::CERTIFICATE;

use super::table::Row;
use super::{View, by};
use crate::throng::{Running, figure};

/// The card in H.264, which all of them take.
const MEDIA: &str = "crowd.publish={ video = \"240p\", codec = \"h264\" }";
/// Its frames a second.
const FPS: f64 = 20.0;
/// More than [`COUNTED_WITHIN`], what viewers play, and all starts: the publishers are interrupted
/// when the viewers are done.
const TIME: &str = "60s";
const COUNTED_WITHIN: Duration = Duration::from_secs(8);
/// Servers look at what comes until they know its tracks, and offer the stream then.
const OFFERED_AFTER: Duration = Duration::from_secs(4);
/// While the counters are read; some are new every three seconds only.
const COUNTED_FOR: Duration = Duration::from_secs(8);

/// A stream, and who plays it.
pub(super) struct Published<'t> {
    /// As the table names it.
    pub(super) protocol: &'static str,
    pub(super) url: String,
    pub(super) viewers: View<'t>,
    /// Bytes of it that the server has received, by its own counter; 0 before there is one.
    pub(super) received: Box<dyn Fn() -> f64 + 't>,
}

impl Published<'_> {
    fn start(&self, server: &RealServer<'_>) -> Running {
        let transport = if self.protocol.ends_with(" over UDP") { by("udp") } else { by("tcp") };
        let certificate = server.file(CERTIFICATE).to_string_lossy().into_owned();
        let mut arguments = vec!["view", &self.url, "-n", "1", "--for", TIME, "--set", MEDIA];
        // Other protocols are refused with these.
        if self.url.contains("rtsp://") || self.url.contains("rtsps://") {
            arguments.extend(["--set", &transport]);
        }
        if self.url.contains("rtsps://") {
            arguments.extend(["--tls-ca", &certificate]);
        }
        Running::start(Some(server.namespace()), &arguments)
    }

    #[track_caller]
    fn wait_until_counted(&self, server: &RealServer<'_>) {
        let until = Instant::now() + COUNTED_WITHIN;
        while (self.received)() <= 0.0 {
            let log = server.log();
            assert!(Instant::now() < until, "{}: nothing is received\n{log}", self.protocol);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Publishes all of them at once, and plays each.
#[track_caller]
pub(super) fn all_are_played(server: &RealServer<'_>, streams: &[Published<'_>]) -> Vec<Row> {
    let publishers: Vec<Running> = streams.iter().map(|stream| stream.start(server)).collect();
    streams.iter().for_each(|stream| stream.wait_until_counted(server));
    std::thread::sleep(OFFERED_AFTER);
    let viewers: Vec<Running> =
        streams.iter().map(|stream| stream.viewers.start(server.namespace())).collect();
    let counted_bps = counted_bps(streams);
    let viewed = viewers.into_iter().map(Running::wait).collect::<Vec<_>>();
    publishers.iter().for_each(|publisher| publisher.signal("INT"));
    let published = publishers.into_iter().map(|publisher| publisher.wait().expect_code(130));
    let mut rows = Vec::new();
    for (((stream, ran), by), counted_bps) in
        streams.iter().zip(published).zip(viewed).zip(counted_bps)
    {
        let (protocol, summary) = (stream.protocol, ran.summary());
        assert_eq!(figure(&summary, "participants.failed"), 0.0, "{protocol}\n{ran}");
        let sent_bps = figure(&summary, "sent.bps");
        // A transport stream and the headers of each protocol are counted by one side only.
        assert!(
            (0.8..1.4).contains(&(counted_bps / sent_bps)),
            "{protocol}: {sent_bps} sent, the server counts {counted_bps}\n{ran}\n{}",
            server.log()
        );
        // Sound inside a transport stream (SRT) comes in bursts.
        stream.viewers.passed_on(by, FPS);
        rows.push(Row::published(protocol, stream.viewers.protocol, FPS));
    }
    rows
}

/// Bits per second that the server counts of each: between two moments at which its counter
/// changed by much. What it says at first may be old.
fn counted_bps(streams: &[Published<'_>]) -> Vec<f64> {
    let mut changes: Vec<Vec<(Instant, f64)>> = streams.iter().map(|_| Vec::new()).collect();
    let until = Instant::now() + COUNTED_FOR;
    while Instant::now() < until {
        for (stream, changes) in streams.iter().zip(&mut changes) {
            let bytes = (stream.received)();
            if changes.last().is_none_or(|(_, before)| *before != bytes) {
                changes.push((Instant::now(), bytes));
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let of_one = |(stream, changes): (&Published<'_>, Vec<(Instant, f64)>)| {
        // Where video is counted every three seconds, sound is new between.
        let grown = |pair: &&[(Instant, f64)]| pair[1].1 - pair[0].1;
        let most = changes.windows(2).map(|pair| grown(&pair)).fold(0.0, f64::max);
        let whole = changes.windows(2).filter(|pair| grown(pair) * 2.0 >= most);
        let whole: Vec<(Instant, f64)> = whole.map(|pair| pair[1]).collect();
        let [(began, before), .., (ended, after)] = whole[..] else {
            panic!("{}: too few counts: {changes:?}", stream.protocol)
        };
        (after - before) * 8.0 / (ended - began).as_secs_f64()
    };
    streams.iter().zip(changes).map(of_one).collect()
}
