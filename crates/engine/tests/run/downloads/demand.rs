//! Laws of the demand, for each version of HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use throng_protocol::participant::{HttpVersion, IGNORED_EVERY};

use super::puller::{
    Act, Event, deliver, delivered, head, ignore, ignored, pull, pull_one, result,
};
use super::servers::{Service, VERSIONS, bytes};

/// Ticks without a byte more after which a server counts as held back.
const STILL_TICKS: u32 = 15;

/// What a server may have sent without being read: the largest socket buffers (`tcp_rmem` is up to
/// 32 MiB in current kernels, `tcp_wmem` 4 MiB) and those of the test server; or a QUIC stream's
/// window.
const UNREAD_MAX: u64 = 48 << 20;

#[test]
fn deliver_and_ignore_are_met_in_order_to_the_byte() {
    let service = Service::start();
    let length = 3_000_000;
    let demands =
        [deliver(10), ignore(1_000_000), deliver(70_001), ignore(5), deliver(1), ignore(u64::MAX)];
    for (version, spoken) in VERSIONS {
        let url = service.url(version, &format!("/fixed/{length}"));
        let events = pull_one(&url, version, &demands, service.trusted());
        assert_eq!(result(&events), Ok(()), "{version:?}");
        let head = head(&events, 1);
        assert_eq!((head.status, head.version, head.length), (200, spoken, Some(length)));
        assert!(head.is_new && head.local.is_some(), "{head:?}");
        let expect =
            [bytes(0..10), bytes(1_000_010..1_070_011), bytes(1_070_016..1_070_017)].concat();
        assert!(delivered(&events, 1) == expect, "{version:?}");
        assert_eq!(ignored(&events, 1), length - expect.len() as u64, "{version:?}");
        // Ignored bytes are reported before the byte that follows them.
        let five = events.iter().position(|event| *event == Event::Ignored(1, 5)).unwrap();
        assert_eq!(events[five + 1], Event::Body(1, bytes(1_070_016..1_070_017)));
        // The figures of the connection come before the end.
        let [.., Event::Transport(1, state), Event::Finished(..)] = events.as_slice() else {
            panic!("{version:?}: {events:?}");
        };
        assert!(state.received_bytes.unwrap() >= length, "{version:?}: {state:?}");
        assert!(
            state.round_trip_us.is_some() && state.retransmitted.is_some(),
            "{version:?}: {state:?}"
        );
    }
}

#[test]
fn a_demand_that_ends_with_the_body_ends_the_download() {
    let service = Service::start();
    for (version, _) in VERSIONS {
        for (path, demands) in [
            ("/fixed/100000", vec![deliver(99_999), ignore(1)]),
            ("/fixed/1", vec![deliver(1)]),
            ("/fixed/0", vec![]),
            ("/redirect", vec![]),
        ] {
            let events =
                pull_one(&service.url(version, path), version, &demands, service.trusted());
            assert_eq!(result(&events), Ok(()), "{version:?} {path}");
            assert!(!matches!(events.last(), Some(Event::Ignored(..))));
        }
    }
}

#[test]
fn a_redirection_is_passed_on_and_not_followed() {
    let service = Service::start();
    for (version, _) in VERSIONS {
        let events = pull_one(&service.url(version, "/redirect"), version, &[], service.trusted());
        let head = head(&events, 1);
        assert_eq!(
            (head.status, head.location.as_deref()),
            (302, Some("/elsewhere")),
            "{version:?}"
        );
    }
}

#[test]
fn the_end_of_a_body_without_length_is_found_by_further_demand() {
    let service = Service::start();
    for (version, _) in VERSIONS {
        let url = service.url(version, "/chunked/50000");
        let mut ticks = 0;
        let mut is_read = false;
        let events = pull(service.trusted(), move |event| match event {
            Event::Start => vec![Act::Get(1, url.clone(), version), Act::Want(1, deliver(50_000))],
            Event::Body(_, piece) => {
                is_read = is_read || piece.is_empty();
                vec![]
            }
            Event::Tick => {
                ticks += 1;
                if ticks == STILL_TICKS { vec![Act::Want(1, deliver(1))] } else { vec![] }
            }
            Event::Finished(..) => vec![Act::End],
            _ => vec![],
        });
        assert_eq!(result(&events), Ok(()), "{version:?}");
        assert!(delivered(&events, 1) == bytes(0..50_000), "{version:?}");
        assert_eq!(head(&events, 1).length, None);
    }
}

#[test]
fn without_demand_the_server_waits_and_with_demand_it_goes_on() {
    for (version, _) in VERSIONS {
        let service = Service::start();
        let url = service.url(version, "/fixed/1000000000");
        let served = Arc::clone(&service.served);
        let (mut seen, mut still) = (0, 0);
        let mut held = Vec::new();
        let events = pull(service.trusted(), move |event| match event {
            Event::Start => vec![Act::Get(1, url.clone(), version)],
            Event::Tick => {
                let sent = served.sent.load(Ordering::SeqCst);
                still = if sent > 0 && sent == seen { still + 1 } else { 0 };
                seen = sent;
                if still < STILL_TICKS {
                    return vec![];
                }
                still = 0;
                held.push(sent);
                match held.as_slice() {
                    [first] => {
                        assert!(*first < UNREAD_MAX, "{version:?}: {first} bytes were sent unread");
                        vec![Act::Want(1, ignore(100_000_000))]
                    }
                    [first, second, ..] => {
                        let more = second - first;
                        // What is read makes room for more; the buffer of the receiver has grown.
                        assert!(
                            more > 90_000_000 && more < 100_000_000 + UNREAD_MAX,
                            "{version:?}: {more}"
                        );
                        vec![Act::Cancel(1), Act::End]
                    }
                    [] => vec![],
                }
            }
            _ => vec![],
        });
        assert_eq!(ignored(&events, 1), 100_000_000, "{version:?}");
        // Coalesced: not one event a read.
        let reports = events.iter().filter(|event| matches!(event, Event::Ignored(..))).count();
        assert!(
            reports < 10_000 / IGNORED_EVERY.as_millis() as usize,
            "{version:?}: {reports} reports"
        );
        assert!(!events.iter().any(|event| matches!(event, Event::Finished(..))));
    }
}

#[test]
fn of_three_downloads_each_gets_its_own_demand() {
    let service = Service::start();
    for (version, _) in VERSIONS {
        let url = service.url(version, "/fixed/2000000");
        let mut left = 3;
        let events = pull(service.trusted(), move |event| match event {
            Event::Start => (1..=3)
                .flat_map(|id| {
                    let demands = [
                        Act::Want(id, deliver(u64::from(id) * 1000)),
                        Act::Want(id, ignore(u64::MAX)),
                    ];
                    [Act::Get(id, url.clone(), version)].into_iter().chain(demands)
                })
                .collect(),
            Event::Finished(_, result) => {
                assert_eq!(*result, Ok(()));
                left -= 1;
                if left == 0 { vec![Act::End] } else { vec![] }
            }
            _ => vec![],
        });
        for id in 1..=3 {
            assert!(delivered(&events, id) == bytes(0..u64::from(id) * 1000), "{version:?} {id}");
            assert_eq!(ignored(&events, id), 2_000_000 - u64::from(id) * 1000, "{version:?} {id}");
        }
        let numbers = numbers(&events);
        // HTTP/1.1 has a connection for each; the others share one.
        assert_eq!(numbers.len(), if version == HttpVersion::Http1 { 3 } else { 1 }, "{version:?}");
    }
}

/// The numbers of the connections that were seen.
fn numbers(events: &[Event]) -> std::collections::BTreeSet<u32> {
    let of = |event: &Event| match event {
        Event::Transport(_, state) => Some(state.connection),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}
