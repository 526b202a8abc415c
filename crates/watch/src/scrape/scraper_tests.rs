use super::*;
use crate::RowReceiver;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use throng_observation::RunTime;
use throng_observation::host::{HostEventKind, HostId, HostRow};
use throng_observation::pack::EndpointKind;

/// A server that answers each connection's first request with these bytes, then closes it.
fn server(answer: &'static [u8]) -> SocketAddr {
    serve(move |mut stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(answer);
    })
}

fn serve(mut each: impl FnMut(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(&mut each));
    address
}

fn clock() -> Clock {
    let start = std::time::Instant::now();
    Arc::new(move || RunTime::after_start(start.elapsed()))
}

fn anybody() -> AddressCheck {
    Arc::new(|_| Ok(()))
}

fn start(
    address: SocketAddr,
    allowed: &AddressCheck,
    change: impl FnOnce(&mut Endpoint),
) -> (Scraper, RowReceiver) {
    let url = format!("http://{address}/metrics");
    let mut endpoint = Endpoint::new("e", &url, EndpointKind::OpenMetrics).unwrap();
    endpoint.interval = INTERVAL_MIN;
    change(&mut endpoint);
    let (sender, receiver) = crate::rows::rows(1_000);
    let writer = ReadingWriter::new(HostId(0), sender);
    (Scraper::start(vec![(endpoint, writer)], &clock(), allowed).unwrap(), receiver)
}

/// Waits for the first row for which `wanted` returns a value.
fn wait<T>(receiver: &RowReceiver, mut wanted: impl FnMut(&HostRow) -> Option<T>) -> T {
    let until = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(std::time::Instant::now())) {
            Ok(row) => {
                if let Some(found) = wanted(&row) {
                    return found;
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                panic!("it did not come")
            }
        }
    }
}

fn trouble(row: &HostRow) -> Option<String> {
    match row {
        HostRow::Event(event) if event.kind == HostEventKind::Unreadable => {
            Some(event.detail.clone())
        }
        _ => None,
    }
}

fn says(address: SocketAddr, expect: &str) {
    let (_scraper, receiver) =
        start(address, &anybody(), |endpoint| endpoint.timeout = Duration::from_secs(1));
    let said = wait(&receiver, trouble);
    assert!(said.contains(expect), "{said}");
}

#[test]
fn what_is_wrong_with_an_endpoint_is_said() {
    says(
        server(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"),
        "a web page",
    );
    says(
        server(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.9/x?token=y\r\nContent-Length: 0\r\n\r\n"),
        "redirects to http://192.0.2.9/x?token=…",
    );
    says(server(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), "401; give its credentials");
    says(
        server(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nno met"),
        "not Prometheus or OpenMetrics text",
    );
    says(server(b"\x16\x03\x01\x02\x00garbage\r\n\r\n"), "HTTP:");
    says(server(b""), "HTTP:");
    says(server(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx 1"), "HTTP:");
    let hanging = serve(std::mem::forget);
    says(hanging, "no answer within 1000 ms");
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    says(closed, "no connection to 127.0.0.1");
}

/// Reads an endpoint twice over one connection, which it answers with these; the requests that it
/// got, and what the second reading was.
fn read_twice(answers: [&'static str; 2]) -> (usize, Result<Round, ScrapeError>) {
    let (request_sender, asked) = std::sync::mpsc::channel();
    let address = serve(move |mut stream| {
        for answer in answers {
            match stream.read(&mut [0; 4096]) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            request_sender.send(()).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let url = format!("http://{address}/metrics");
    let endpoint = Endpoint::new("e", &url, EndpointKind::OpenMetrics).unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let second = runtime.block_on(async {
        let mut connection = None;
        assert!(read(&endpoint, &mut connection, &anybody()).await.is_ok());
        read(&endpoint, &mut connection, &anybody()).await
    });
    (asked.try_iter().count(), second)
}

#[test]
fn only_a_kept_connection_that_was_closed_is_opened_once_more() {
    const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ngauge 7\n";
    let (asked, second) = read_twice([GOOD, "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n"]);
    assert!(
        matches!(&second, Err(ScrapeError::Fetch(FetchError::Status { status: 503, .. }))),
        "{:?}",
        second.err()
    );
    assert_eq!(asked, 2, "what was answered is not asked again");
    // The answer breaks off, and a new connection has the whole one.
    let (asked, second) = read_twice([GOOD, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ng"]);
    assert!(second.is_ok(), "{:?}", second.err());
    assert_eq!(asked, 3);
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let endless = serve(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while stream.write_all(chunk.as_bytes()).is_ok() {}
    });
    let (_scraper, receiver) = start(endless, &anybody(), |_| {});
    let said = wait(&receiver, trouble);
    assert!(said.contains("longer than"), "{said}");
}

#[test]
fn an_address_that_may_not_be_asked_is_not_connected_to() {
    let (request_sender, asked) = std::sync::mpsc::channel();
    let address = serve(move |_| request_sender.send(()).unwrap());
    let nobody: AddressCheck = Arc::new(|address| Err(format!("{address} has not agreed")));
    let (_scraper, receiver) = start(address, &nobody, |_| {});
    assert!(wait(&receiver, trouble).contains("127.0.0.1 has not agreed"));
    assert!(asked.try_recv().is_err());
}

#[test]
fn a_hanging_endpoint_delays_no_other_and_a_recovery_is_reported() {
    let mut count = 0;
    let address = serve(move |mut stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        count += 1;
        let body = format!("x_total {}\ngauge 7\n", count * 10);
        let status = if count == 2 { "503 Down" } else { "200 OK" };
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
    });
    let hanging = serve(std::mem::forget);
    let endpoint = |name: &str, address| {
        let mut endpoint =
            Endpoint::new(name, &format!("http://{address}/"), EndpointKind::OpenMetrics).unwrap();
        endpoint.interval = INTERVAL_MIN;
        endpoint
    };
    let (sender, receiver) = crate::rows::rows(1_000);
    let endpoints = [("hangs", hanging), ("answers", address)].map(|(name, address)| {
        (endpoint(name, address), ReadingWriter::new(HostId(0), sender.clone()))
    });
    let scraper = Scraper::start(endpoints.into(), &clock(), &anybody()).unwrap();
    wait(&receiver, |row| {
        matches!(row, HostRow::Series(series) if series.metric == "gauge").then_some(())
    });
    wait(&receiver, |row| trouble(row).filter(|said| said.contains("answers: it answers 503")));
    wait(&receiver, |row| {
        matches!(row, HostRow::Sample(sample) if sample.value.is_nan()).then_some(())
    });
    wait(&receiver, |row| {
        matches!(row, HostRow::Event(event) if event.detail.contains("again")).then_some(())
    });
    wait(&receiver, |row| {
        matches!(row, HostRow::Series(series) if series.metric == "x_total").then_some(())
    });
    let stopping = std::time::Instant::now();
    scraper.stop();
    assert!(
        stopping.elapsed() < Duration::from_secs(3),
        "the one that hangs does not hold the end up"
    );
}

#[test]
fn credentials_are_not_shown_and_not_allowed_in_an_address() {
    let shown = format!("{:?}", Credentials::Basic("hush".into()));
    assert!(!shown.contains("hush"));
    let cases = [
        ("http://u:p@h/", EndpointKind::OpenMetrics, "credentials are not allowed"),
        ("ftp://h/", EndpointKind::OpenMetrics, "is not http"),
        ("ws://h/", EndpointKind::OpenMetrics, "only Janus"),
        ("nonsense", EndpointKind::OpenMetrics, "relative URL"),
    ];
    for (url, kind, expect) in cases {
        let error = Endpoint::new("e", url, kind).unwrap_err().to_string();
        assert!(error.contains(expect), "{url}: {error}");
    }
}
