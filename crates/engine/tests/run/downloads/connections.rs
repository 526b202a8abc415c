//! Laws of the connections: kept, shared, limited, and closed at once when a participant wants no
//! more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throng_protocol::participant::{ChannelError, HttpVersion};

use super::puller::{Act, Event, deliver, head, ignore, pull, result};
use super::servers::{Service, VERSIONS, raw_server, read_head, write};

#[test]
fn the_next_download_uses_the_connection_of_the_last() {
    for (version, _) in VERSIONS {
        let service = Service::start();
        let url = service.url(version, "/fixed/100000");
        let events = pull(service.trusted(), move |event| match event {
            Event::Start => vec![Act::Get(1, url.clone(), version), Act::Want(1, ignore(100_000))],
            Event::Finished(1, _) => {
                vec![Act::Get(2, url.clone(), version), Act::Want(2, ignore(100_000))]
            }
            Event::Finished(..) => vec![Act::End],
            _ => vec![],
        });
        assert!(head(&events, 1).is_new && !head(&events, 2).is_new, "{version:?}");
        assert_eq!(head(&events, 1).local, head(&events, 2).local);
        assert_eq!(service.served.connections.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_seventh_download_over_http1_waits_for_a_connection() {
    let service = Service::start();
    let url = service.url(HttpVersion::Http1, "/fixed/5000000");
    let mut left = 10;
    let events = pull(
        |_| {},
        move |event| match event {
            Event::Start => {
                (1..=10).map(|id| Act::Get(id, url.clone(), HttpVersion::Http1)).collect()
            }
            // All six are open before the first is read.
            Event::Tick if left == 10 => {
                (1..=10).map(|id| Act::Want(id, ignore(5_000_000))).collect()
            }
            Event::Finished(_, result) => {
                assert_eq!(*result, Ok(()));
                left -= 1;
                if left == 0 { vec![Act::End] } else { vec![] }
            }
            _ => vec![],
        },
    );
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Head(..))).count(), 10);
    let [open_max, connections] = [&service.served.open_max, &service.served.connections];
    assert_eq!((open_max.load(Ordering::SeqCst), connections.load(Ordering::SeqCst)), (6, 6));
}

#[test]
fn a_cancelled_download_ends_at_the_server_and_says_no_more() {
    for (version, _) in VERSIONS {
        let service = Service::start();
        let (long, short) =
            (service.url(version, "/fixed/1000000000"), service.url(version, "/fixed/9"));
        let served = Arc::clone(&service.served);
        let (mut is_cancelled, mut is_finished) = (false, false);
        let events = pull(service.trusted(), move |event| match event {
            Event::Start => {
                vec![Act::Get(1, long.clone(), version), Act::Want(1, deliver(100_000_000))]
            }
            Event::Body(1, _) if !is_cancelled => {
                is_cancelled = true;
                // The number may be used again at once.
                vec![Act::Cancel(1), Act::Get(1, short.clone(), version), Act::Want(1, deliver(9))]
            }
            Event::Finished(..) => {
                is_finished = true;
                vec![]
            }
            Event::Tick if is_finished && served.abandoned.load(Ordering::SeqCst) == 1 => {
                vec![Act::End]
            }
            _ => vec![],
        });
        let cancelled = events.iter().position(|event| matches!(event, Event::Body(..))).unwrap();
        let after: Vec<_> = events[cancelled + 1..]
            .iter()
            .filter(|event| !matches!(event, Event::Transport(..)))
            .collect();
        let expect = Event::Body(1, super::servers::bytes(0..9));
        let is_second = matches!(after[..], [Event::Head(..), body, Event::Finished(1, Ok(()))] if *body == expect);
        assert!(is_second, "{version:?}: {after:?}");
        // The stream is reset and the connection goes on; HTTP/1.1 has no other way than to close
        // it.
        let connections = service.served.connections.load(Ordering::SeqCst);
        assert_eq!(connections, if version == HttpVersion::Http1 { 2 } else { 1 }, "{version:?}");
    }
}

#[test]
fn the_end_of_a_session_ends_its_downloads() {
    for (version, _) in VERSIONS {
        let service = Service::start();
        let url = service.url(version, "/fixed/1000000000");
        let mut heads = 0;
        pull(service.trusted(), move |event| match event {
            Event::Start => (1..=3).map(|id| Act::Get(id, url.clone(), version)).collect(),
            Event::Head(..) => {
                heads += 1;
                if heads == 3 { vec![Act::End] } else { vec![] }
            }
            _ => vec![],
        });
        // The run is over, and with it every connection.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while service.served.abandoned.load(Ordering::SeqCst) < 3 {
            assert!(std::time::Instant::now() < until, "{version:?}: a body is still being sent");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced() {
    // Closes every connection after one response: at once, or when the second request has come.
    for waits_for_request in [false, true] {
        let url = raw_server(move |mut stream, _| {
            write(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
            if waits_for_request {
                read_head(&mut stream);
            }
        });
        let url = format!("http://{url}/");
        let events = pull(
            |_| {},
            move |event| match event {
                Event::Start => {
                    vec![Act::Get(1, url.clone(), HttpVersion::Http1), Act::Want(1, deliver(3))]
                }
                Event::Finished(id @ 1..=3, _) => {
                    vec![
                        Act::Get(id + 1, url.clone(), HttpVersion::Http1),
                        Act::Want(id + 1, deliver(3)),
                    ]
                }
                Event::Finished(..) => vec![Act::End],
                _ => vec![],
            },
        );
        for event in &events {
            assert!(!matches!(event, Event::Finished(_, Err(_))), "{waits_for_request}: {event:?}");
        }
        assert!((1..=4).all(|id| head(&events, id).is_new));
    }
}

#[test]
fn a_connection_that_was_new_is_not_tried_again() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let url = raw_server(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let events =
        super::puller::pull_one(&format!("http://{url}/"), HttpVersion::Http1, &[], |_| {});
    assert_eq!(result(&events), Err(ChannelError::Unanswered));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[test]
fn http3_leaves_from_the_address_that_was_dealt() {
    let service = Service::start();
    let trusted = service.trusted();
    let url = service.url(HttpVersion::Http3, "/fixed/1");
    let events = super::puller::pull_one(&url, HttpVersion::Http3, &[deliver(1)], |config| {
        trusted(config);
        config.joins[0].source_ip = Some([127, 0, 0, 7].into());
    });
    assert_eq!(result(&events), Ok(()));
    assert_eq!(head(&events, 1).local.unwrap().ip(), std::net::IpAddr::from([127, 0, 0, 7]));
}
