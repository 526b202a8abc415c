//! Laws of failures: each names what the server did, and how far the body had come.

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_protocol::participant::{ChannelError, HttpVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::puller::{Act, Event, deliver, ignore, pull, pull_one, result};
use super::servers::{Service, VERSIONS, raw_server, write};
use crate::echo::{silent_server, tls_server};

/// Reads half of `/short` or `/broken`, then lets the server end it.
fn pull_half(service: &Service, version: HttpVersion, path: &str) -> Vec<Event> {
    let (url, served) = (service.url(version, path), Arc::clone(&service.served));
    let mut received = 0;
    pull(service.trusted(), move |event| match event {
        Event::Start => vec![Act::Get(1, url.clone(), version), Act::Want(1, deliver(50_000))],
        Event::Body(_, bytes) => {
            received += bytes.len();
            if received < 50_000 {
                return vec![];
            }
            served.release();
            vec![Act::Want(1, ignore(u64::MAX))]
        }
        Event::Finished(..) => vec![Act::End],
        _ => vec![],
    })
}

#[test]
fn a_short_body_is_truncated() {
    for (version, _) in VERSIONS {
        let events = pull_half(&Service::start(), version, "/short/100000");
        let error = result(&events).unwrap_err();
        if version == HttpVersion::Http2 {
            // The library finds the malformed message, and does not say which end it is of.
            assert!(error.to_string().contains("after 50000 of 100000 bytes"), "{error}");
        } else {
            let truncated = ChannelError::Truncated { received: 50_000, expected: 100_000 };
            assert_eq!(error, truncated, "{version:?}");
        }
    }
}

#[test]
fn a_body_that_the_server_breaks_off_says_how_and_after_how_much() {
    for (version, words) in [
        (
            HttpVersion::Http2,
            ["reset the stream (RST_STREAM) after 50000 of 100000 bytes", "internal error"],
        ),
        (HttpVersion::Http3, ["reset the stream after 50000 of 100000 bytes", "H3_INTERNAL_ERROR"]),
    ] {
        let events = pull_half(&Service::start(), version, "/broken/100000");
        let Err(ChannelError::Protocol(said)) = result(&events) else {
            panic!("{version:?}: {events:?}")
        };
        for words in words {
            assert!(said.contains(words), "{version:?}: {said}");
        }
    }
    // HTTP/1.1 can only close the connection.
    let events = pull_half(&Service::start(), HttpVersion::Http1, "/broken/100000");
    assert_eq!(
        result(&events),
        Err(ChannelError::Truncated { received: 50_000, expected: 100_000 })
    );
}

#[test]
fn chunks_that_end_early_or_are_malformed_are_failures() {
    for (body, expect) in [
        ("5\r\nhello\r\n", "closed the connection after 5 bytes of the body, before its end"),
        ("5\r\nhello\r\nzz\r\n", "after 5 bytes of the body: "),
        ("5\r\nhello\r\nffffffffffffffffff\r\n", "after 5 bytes of the body: "),
    ] {
        let url = raw_server(move |mut stream, _| {
            write(
                &mut stream,
                format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
            );
        });
        let events =
            pull_one(&format!("http://{url}/"), HttpVersion::Http1, &[deliver(1000)], |_| {});
        let error = result(&events).unwrap_err().to_string();
        assert!(error.contains(expect), "{body:?}: {error}");
    }
}

/// A server of HTTP/2 that answers the first request with 400 of 1000 bytes, and writes `last` once
/// they are read.
fn pull_400_of_1000_then(last: &'static [u8]) -> ChannelError {
    let is_read = Arc::new(AtomicBool::new(false));
    let read = Arc::clone(&is_read);
    let address = crate::echo::serve(move |mut stream| {
        let read = Arc::clone(&read);
        async move {
            let _ = stream.read(&mut [0; 4096]).await;
            // SETTINGS; HEADERS: `:status 200` and `content-length: 1000` (RFC 7541 appendix A);
            // DATA.
            let head = b"\0\0\0\x04\0\0\0\0\0\0\0\x07\x01\x04\0\0\0\x01\x88\x5c\x041000";
            let _ = stream
                .write_all(&[&head[..], b"\0\x01\x90\0\0\0\0\0\x01", &[7; 400]].concat())
                .await;
            while !read.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let _ = stream.write_all(last).await;
            // A socket that is closed with unread bytes is reset, and what was sent last is lost.
            let _ = stream.shutdown().await;
            while stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {}
        }
    });
    let url = format!("http://{address}/");
    let events = pull(
        |_| {},
        move |event| match event {
            Event::Start => {
                let wants = [deliver(400), ignore(u64::MAX)].map(|demand| Act::Want(1, demand));
                [Act::Get(1, url.clone(), HttpVersion::Http2)].into_iter().chain(wants).collect()
            }
            Event::Body(..) => {
                is_read.store(true, Ordering::SeqCst);
                vec![]
            }
            Event::Finished(..) => vec![Act::End],
            _ => vec![],
        },
    );
    result(&events).unwrap_err()
}

#[test]
fn a_goaway_in_the_middle_of_a_body_is_named() {
    // Of stream 0, so that the first request was not processed: ENHANCE_YOUR_CALM (RFC 9113 section
    // 7).
    let goaway = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0b";
    let said = pull_400_of_1000_then(goaway).to_string();
    assert!(
        said.contains("closed the connection (GOAWAY) after 400 of 1000 bytes of the body"),
        "{said}"
    );
}

#[test]
fn a_connection_of_http2_that_is_closed_truncates_the_body() {
    let truncated = ChannelError::Truncated { received: 400, expected: 1000 };
    assert_eq!(pull_400_of_1000_then(b""), truncated);
}

#[test]
fn more_than_was_announced_is_a_failure() {
    let address = crate::echo::serve(|stream| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        let Some(Ok((_, mut respond))) = connection.accept().await else { return };
        let head = http::Response::builder().header("content-length", 1000).body(()).unwrap();
        let Ok(mut body) = respond.send_response(head, false) else { return };
        let _ = body.send_data(vec![0; 1400].into(), true);
        while connection.accept().await.is_some() {}
    });
    let events =
        pull_one(&format!("http://{address}/"), HttpVersion::Http2, &[ignore(u64::MAX)], |_| {});
    assert!(matches!(result(&events), Err(ChannelError::Protocol(_))), "{events:?}");
}

#[test]
fn no_head_in_time_is_a_timeout() {
    let service = Service::start();
    for (version, _) in VERSIONS {
        let events = pull_one(&service.url(version, "/silent"), version, &[], service.trusted());
        assert!(
            matches!(result(&events), Err(ChannelError::Timeout(_))),
            "{version:?}: {events:?}"
        );
    }
    let events =
        pull_one(&format!("http://{}/silent", silent_server()), HttpVersion::Http1, &[], |_| {});
    assert!(matches!(result(&events), Err(ChannelError::Timeout(_))), "{events:?}");
}

#[test]
fn a_slow_body_is_reported_as_it_comes() {
    let url = raw_server(|mut stream, _| {
        write(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        for byte in [b"a", b"b", b"c", b"d"] {
            // The server's own pace, slower than ignored bytes are reported.
            std::thread::sleep(Duration::from_millis(350));
            write(&mut stream, byte);
        }
    });
    let events = pull_one(&format!("http://{url}/"), HttpVersion::Http1, &[ignore(4)], |_| {});
    assert_eq!(result(&events), Ok(()));
    let counts: Vec<_> =
        events.iter().filter(|event| matches!(event, Event::Ignored(1, 1))).collect();
    assert_eq!(counts.len(), 4, "{events:?}");
    // One after the first second, one at the end.
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Transport(..))).count(), 2);
}

#[test]
fn an_untrusted_certificate_is_a_failure_of_tls() {
    let service = Service::start();
    let urls = [
        (format!("https://{}/", tls_server()), HttpVersion::Negotiated),
        (format!("https://{}/", tls_server()), HttpVersion::Http2),
        (service.url(HttpVersion::Http3, "/fixed/1"), HttpVersion::Http3),
    ];
    for (url, version) in urls {
        let events = pull_one(&url, version, &[], |_| {});
        assert!(matches!(result(&events), Err(ChannelError::Tls(_))), "{version:?}: {events:?}");
    }
}

#[test]
fn http3_where_nothing_listens_on_udp_is_refused_at_once() {
    // TCP only: UDP on the same port is answered with an ICMP error.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let begun = Instant::now();
    let events = pull_one(&url, HttpVersion::Http3, &[], |config| {
        config.connect_timeout = Duration::from_secs(20);
    });
    let Err(ChannelError::Quic(said)) = result(&events) else { panic!("{events:?}") };
    assert!(said.contains("refused"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn http3_to_a_port_that_is_silent_is_not_answered() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let events = pull_one(&url, HttpVersion::Http3, &[], |_| {});
    let Err(ChannelError::Quic(said)) = result(&events) else { panic!("{events:?}") };
    assert!(said.contains("no answer from 127.0.0.1:"), "{said}");
}

#[test]
fn http2_from_a_server_that_has_only_http1_is_a_clear_failure() {
    let service = Service::start();
    let url = service.url(HttpVersion::Http1, "/fixed/1");
    let events = pull_one(&url, HttpVersion::Http2, &[], |_| {});
    assert!(result(&events).is_err());
}

#[test]
fn an_address_that_is_not_allowed_gets_nothing() {
    for (version, url) in [
        (HttpVersion::Negotiated, "http://192.0.2.1/"),
        (HttpVersion::Http1, "https://192.0.2.1/"),
        (HttpVersion::Http2, "http://192.0.2.1/"),
        (HttpVersion::Http3, "https://192.0.2.1/"),
    ] {
        let events = pull_one(url, version, &[], |_| {});
        assert!(
            matches!(result(&events), Err(ChannelError::NotAllowed(_))),
            "{version:?}: {events:?}"
        );
    }
}
