//! Viewers of a live stream whose server of HTTP/2 is hostile: what browsers do not notice, they do
//! not notice either, and the rest is named and survived.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use throng_observation::{FailureReason, Outcome};
use throng_scenario::PlayerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::echo::{certified, certified_as, serve};
use crate::players::{Watched, http2, watch_with};

/// Segments of a second, and how many of them are listed.
const SEGMENTS: u64 = 10;
const LISTED: u64 = 5;

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Answers,
    /// Answers, and takes no more requests on the connection.
    SaysGoodbye,
    Refuses,
    /// Answers half, and resets the stream.
    BreaksOff,
}

/// Makes the segments; `None` where ffmpeg is not installed.
fn segments(folder: &Path) -> Option<()> {
    let options = format!(
        "-v error -f lavfi -i testsrc2=s=320x180:r=25:d={SEGMENTS} -c:v libx264 -preset ultrafast -g 25 \
         -f hls -hls_time 1 -hls_list_size 0 -hls_segment_filename %d.ts all.m3u8"
    );
    let mut command = Command::new("ffmpeg");
    match command.args(options.split_whitespace()).current_dir(folder).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            throng_sim::skipped("ffmpeg is not installed (scripts/setup.sh test)");
            return None;
        }
    }
    Some(())
}

/// The playlist so long after the first request.
fn playlist(after: Duration) -> String {
    let complete = (LISTED + after.as_secs()).min(SEGMENTS);
    let first = complete - LISTED;
    let mut out = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    out.extend((first..complete).map(|number| format!("#EXTINF:1,\n{number}.ts\n")));
    if complete == SEGMENTS {
        out += "#EXT-X-ENDLIST\n";
    }
    out
}

/// A server of the live stream, the manner of which depends on the number of the request and on the
/// time.
fn server(
    folder: PathBuf,
    manner: impl Fn(usize, Duration) -> Manner + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, requests, manner) =
        (Arc::clone(&connections), Arc::new(AtomicUsize::new(0)), Arc::new(manner));
    let begun = Instant::now();
    let address = serve(move |stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (folder, requests, manner) =
            (folder.clone(), Arc::clone(&requests), Arc::clone(&manner));
        async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let manner = manner(requests.fetch_add(1, Ordering::SeqCst), begun.elapsed());
                if manner == Manner::Refuses {
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                    continue;
                }
                let name = request.uri().path().trim_start_matches('/');
                let bytes = match name {
                    "live.m3u8" => playlist(begun.elapsed()).into_bytes(),
                    name => std::fs::read(folder.join(name)).unwrap_or_default(),
                };
                let head = http::Response::builder()
                    .header("content-length", bytes.len())
                    .body(())
                    .unwrap();
                let Ok(mut body) = respond.send_response(head, false) else { return };
                if manner == Manner::BreaksOff {
                    let _ = body.send_data(bytes[..bytes.len() / 2].to_vec().into(), false);
                    body.send_reset(h2::Reason::INTERNAL_ERROR);
                    continue;
                }
                let _ = body.send_data(bytes.into(), true);
                if manner == Manner::SaysGoodbye {
                    connection.graceful_shutdown();
                }
            }
        }
    });
    (address, connections)
}

fn watch_live(
    manner: impl Fn(usize, Duration) -> Manner + Send + Sync + 'static,
) -> Option<(Watched, usize)> {
    let folder = tempfile::tempdir().unwrap();
    segments(folder.path())?;
    let (address, connections) = server(folder.path().to_owned(), manner);
    let watched = watch_with(&format!("http://{address}/live.m3u8"), &http2(), |_| {});
    Some((watched, connections.load(Ordering::SeqCst)))
}

/// All that was played from the target on, three segments behind the end.
const PLAYED_US: u64 = 7_900_000;

#[test]
fn a_goodbye_after_each_response_and_refused_streams_are_not_noticed() {
    type Case = (&'static str, fn(usize) -> Manner, std::ops::RangeInclusive<usize>);
    let cases: [Case; 2] = [
        ("goodbye", |_| Manner::SaysGoodbye, 10..=40),
        (
            "refused",
            |number| if number % 3 == 0 { Manner::Refuses } else { Manner::Answers },
            1..=1,
        ),
    ];
    for (what, manner, expect) in cases {
        let Some((watched, connections)) = watch_live(move |number, _| manner(number)) else {
            return;
        };
        assert_eq!(watched.outcome, Outcome::Completed, "{what}");
        let counters = watched.counters;
        assert_eq!(
            (counters.requests_failed, counters.missed, counters.skipped_us),
            (0, 0, 0),
            "{what}"
        );
        assert!(counters.played_us >= PLAYED_US, "{what}: {counters:?}");
        assert_eq!(watched.events, Vec::<String>::new(), "{what}");
        assert!(expect.contains(&connections), "{what}: {connections} connections");
    }
}

#[test]
fn a_flood_of_refused_streams_and_bodies_that_break_off_are_named_and_survived() {
    let flood = |_, after: Duration| {
        if (2_000..3_500).contains(&after.as_millis()) { Manner::Refuses } else { Manner::Answers }
    };
    let Some((watched, _)) = watch_live(flood) else { return };
    assert_eq!(watched.outcome, Outcome::Completed);
    // A player repeats a request after a second, each with two repeats of its own.
    let counters = watched.counters;
    assert!((1..=8).contains(&counters.requests_failed), "{counters:?}");
    assert!(counters.played_us >= PLAYED_US && counters.skipped_us == 0, "{counters:?}");

    let breaks =
        |number: usize, _| if number % 4 == 3 { Manner::BreaksOff } else { Manner::Answers };
    let Some((watched, connections)) = watch_live(breaks) else { return };
    assert_eq!(watched.outcome, Outcome::Completed);
    let counters = watched.counters;
    assert!((2..=8).contains(&counters.requests_failed), "{counters:?}");
    assert!(counters.played_us >= PLAYED_US && counters.skipped_us == 0, "{counters:?}");
    assert_eq!(connections, 1, "a stream that is reset leaves its connection");
}

#[test]
fn a_server_that_refuses_every_stream_ends_the_viewer_and_says_why() {
    let Some((watched, connections)) = watch_live(|_, _| Manner::Refuses) else { return };
    let Outcome::Failed(failure) = watched.outcome else { panic!("{:?}", watched.outcome) };
    assert_eq!(failure.reason, FailureReason::Protocol);
    let is_named = failure.detail.contains("HTTP/2: ") && failure.detail.contains("refused stream");
    assert!(is_named && failure.detail.starts_with("http://"), "{failure}");
    assert_eq!(connections, 1);
}

#[test]
fn tls_that_does_not_come_up_is_named_by_its_cause() {
    let expired = certified_as("127.0.0.1", Some(2020));
    let other = certified_as("other.example", None);
    for (what, (tls, pem), expect) in
        [("expired", expired, "expired"), ("of another name", other, "not valid for name")]
    {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let address = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let _ = acceptor.accept(stream).await;
            }
        });
        assert_tls_fails(what, address, pem, expect);
    }
    // Closed after the client's first message, and in the middle of the server's.
    for (what, answer) in
        [("cut at once", &b""[..]), ("cut in a record", &[22, 3, 3, 0, 122, 2, 0, 0])]
    {
        let address = serve(move |mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        });
        assert_tls_fails(what, address, certified().1, "handshake");
    }
}

#[track_caller]
fn assert_tls_fails(what: &str, address: SocketAddr, pem: Vec<u8>, expect: &str) {
    let url = format!("https://{address}/live.m3u8");
    let watched =
        watch_with(&url, &PlayerConfig::default(), |config| config.tls.extra_ca_pem = Some(pem));
    let Outcome::Failed(failure) = watched.outcome else { panic!("{what}: {:?}", watched.outcome) };
    assert_eq!(failure.reason, FailureReason::Tls, "{what}: {failure}");
    assert!(failure.detail.to_lowercase().contains(expect), "{what}: {failure}");
    // Once more after a second, as hls.js does.
    assert_eq!(watched.counters.requests_failed, 2, "{what}");
}
