//! Laws of requests that a server of HTTP/2 says it did not process: they are repeated, as by
//! Chromium, and their participant sees nothing of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throng_protocol::participant::{ChannelError, HttpVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::puller::{Act, Event, deliver, pull, pull_one, result};
use crate::echo::serve;

/// What a server does with the requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Answers all.
    Answers,
    /// Refuses so many, then answers.
    Refuses(usize),
    /// Says goodbye after each response.
    SaysGoodbye,
    /// Says goodbye instead of a response.
    SendsAway,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// A server whose manner depends on the number of the connection, from 0 on.
fn server(manner: impl Fn(usize) -> Manner + Send + Sync + 'static) -> (SocketAddr, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let (counted, manner) = (Arc::clone(&counts), Arc::new(manner));
    let address = serve(move |stream| {
        let (counts, manner) = (Arc::clone(&counted), Arc::clone(&manner));
        async move {
            let manner = manner(counts.connections.fetch_add(1, Ordering::SeqCst));
            if manner == Manner::SendsAway {
                send_away(stream, &counts).await;
            } else {
                answer(stream, manner, &counts).await;
            }
        }
    });
    (address, counts)
}

async fn answer(stream: TcpStream, manner: Manner, counts: &Counts) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut refused = 0;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        counts.requests.fetch_add(1, Ordering::SeqCst);
        if let Manner::Refuses(count) = manner
            && refused < count
        {
            refused += 1;
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            continue;
        }
        let head = http::Response::builder().header("content-length", 3).body(()).unwrap();
        let Ok(mut body) = respond.send_response(head, false) else { return };
        let _ = body.send_data("abc".into(), true);
        if manner == Manner::SaysGoodbye {
            connection.graceful_shutdown();
        }
    }
}

/// Answers the first request with GOAWAY that names no stream, so that it was not processed.
async fn send_away(mut stream: TcpStream, counts: &Counts) {
    let _ = stream.read(&mut [0; 4096]).await;
    counts.requests.fetch_add(1, Ordering::SeqCst);
    let _ = stream.write_all(b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0").await;
    let _ = stream.shutdown().await;
    while stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {}
}

fn one(address: SocketAddr) -> Result<(), ChannelError> {
    result(&pull_one(&format!("http://{address}/"), HttpVersion::Http2, &[deliver(3)], |_| {}))
}

#[test]
fn a_refused_stream_is_repeated_on_its_connection_twice() {
    for (refused, requests) in [(1, 2), (2, 3)] {
        let (address, counts) = server(move |_| Manner::Refuses(refused));
        assert_eq!(one(address), Ok(()), "{refused}");
        assert_eq!(counts.requests.load(Ordering::SeqCst), requests);
        assert_eq!(counts.connections.load(Ordering::SeqCst), 1);
    }
    let (address, counts) = server(|_| Manner::Refuses(usize::MAX));
    let Err(ChannelError::Protocol(said)) = one(address) else { panic!("answered") };
    assert!(
        said.contains("reset the stream (RST_STREAM) before a response: refused stream"),
        "{said}"
    );
    assert_eq!(counts.requests.load(Ordering::SeqCst), 3);
}

#[test]
fn a_request_that_a_goodbye_leaves_unprocessed_is_repeated_on_another_connection() {
    let (address, counts) =
        server(|number| if number < 2 { Manner::SendsAway } else { Manner::Answers });
    assert_eq!(one(address), Ok(()));
    assert_eq!(counts.connections.load(Ordering::SeqCst), 3);
    let (address, counts) = server(|_| Manner::SendsAway);
    let Err(ChannelError::Protocol(said)) = one(address) else { panic!("answered") };
    assert!(said.contains("closed the connection (GOAWAY) before a response"), "{said}");
    assert_eq!(counts.connections.load(Ordering::SeqCst), 3, "it gives up");
}

#[test]
fn a_goodbye_after_each_response_costs_connections_only() {
    let (address, counts) = server(|_| Manner::SaysGoodbye);
    let url = format!("http://{address}/");
    let get = move |id: u32| {
        vec![Act::Get(id, url.clone(), HttpVersion::Http2), Act::Want(id, deliver(3))]
    };
    let events = pull(
        |_| {},
        move |event| match event {
            Event::Start => get(1),
            Event::Finished(id @ 1..=9, _) => get(id + 1),
            Event::Finished(..) => vec![Act::End],
            _ => vec![],
        },
    );
    let failed: Vec<_> =
        events.iter().filter(|event| matches!(event, Event::Finished(_, Err(_)))).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Finished(..))).count(), 10);
    assert_eq!(counts.requests.load(Ordering::SeqCst), 10, "none is repeated that was answered");
}
