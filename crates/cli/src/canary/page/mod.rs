//! The page with which browsers join, served on a loopback port: `http://127.0.0.1` is a secure
//! context, in which a page may use a camera. The only other resource is the consent guard.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::candidates::{MayReach, filter_candidates};
use super::loopback::{IO_TIMEOUT, LoopbackServer};
use super::proxy::Refusals;

/// The page with its script.
const PAGE: &str = concat!(
    include_str!("index.html"),
    include_str!("canary.js"),
    include_str!("whep.js"),
    include_str!("janus.js"),
    include_str!("livekit.js"),
    "</script></body></html>\n"
);

/// The longest body. A session description has some kilobytes, that of a large conference some
/// hundred.
const BODY_BYTES_MAX: u64 = 4 << 20;
/// The longest request line and headers.
const HEAD_BYTES_MAX: u64 = 64 << 10;
/// How long a connection may wait for its request. Chromium keeps connections that it opened in
/// advance for a minute (`ClientSocketPoolManager::unused_idle_socket_timeout`) and sends a request
/// on one of them at any time: had the server closed it just then, the request would fail, and the
/// browser with it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves the page until the server is dropped.
pub(super) fn serve(may_reach: MayReach, refusals: Refusals) -> std::io::Result<LoopbackServer> {
    LoopbackServer::start("canary-page", move |stream, address| {
        // A client that is not a browser of this run gets no answer.
        let _ = answer(stream, address, &may_reach, &refusals);
    })
}

/// Answers the one request of a connection.
fn answer(
    stream: TcpStream,
    address: SocketAddr,
    may_reach: &MayReach,
    refusals: &Refusals,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut writer = stream.try_clone()?;
    let response = respond(&mut BufReader::new(stream), address, may_reach, refusals)?;
    writer.write_all(response.as_bytes())
}

/// The response to the request read from `reader` (RFC 9112).
fn respond(
    reader: &mut impl BufRead,
    address: SocketAddr,
    may_reach: &MayReach,
    refusals: &Refusals,
) -> std::io::Result<String> {
    let mut head = reader.take(HEAD_BYTES_MAX);
    let mut request = String::new();
    head.read_line(&mut request)?;
    let (mut length, mut is_for_us) = (0, false);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(u64::MAX);
        }
        // DNS rebinding: a page of another site whose name resolves to this address sends that name
        // as host.
        is_for_us |= name.eq_ignore_ascii_case("host") && value.trim() == address.to_string();
    }
    let what = request.split_ascii_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(match what.as_str() {
        _ if !is_for_us => response("403 Forbidden", "text/plain", 0, ""),
        "GET /" => response("200 OK", "text/html; charset=utf-8", 0, PAGE),
        "POST /guard" if length <= BODY_BYTES_MAX => {
            let mut body = Vec::new();
            reader.take(length).read_to_end(&mut body)?;
            let (kept, refused) = filter_candidates(&String::from_utf8_lossy(&body), &**may_reach);
            let count = refused.len();
            refused.iter().for_each(|what| refusals.add(what));
            response("200 OK", "text/plain; charset=utf-8", count, &kept)
        }
        "POST /guard" => response("413 Content Too Large", "text/plain", 0, ""),
        _ => response("404 Not Found", "text/plain", 0, ""),
    })
}

fn response(status: &str, kind: &str, refused: usize, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nX-Refused: \
         {refused}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_connection_opened_in_advance_delays_no_other_and_is_served_later() {
        let server = serve(Arc::new(|_, _| Ok(())), Refusals::default()).unwrap();
        let connect = || TcpStream::connect(server.address).unwrap();
        let ask = |mut stream: TcpStream| {
            stream.set_read_timeout(Some(IO_TIMEOUT)).unwrap();
            write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).map(|_| said)
        };
        let (early, late) = (connect(), connect());
        for stream in [late, early] {
            let said = ask(stream).unwrap();
            assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
        }
    }

    #[test]
    fn own_browsers_get_the_page_and_the_guards_answer_and_others_nothing() {
        let address: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        let loopback: MayReach =
            Arc::new(
                |_, to| {
                    if to.ip().is_loopback() { Ok(()) } else { Err("has not agreed".into()) }
                },
            );
        let refusals = Refusals::default();
        let guard = "POST /guard HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nContent-Length: 37\r\n\r\n\
                     a=candidate:1 1 udp 1 192.0.2.1 9 typ";
        for (request, status, holds) in [
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n", "200 OK", "protocols.livekit"),
            ("GET / HTTP/1.1\r\nHost: evil.example:9000\r\n\r\n", "403 Forbidden", ""),
            ("GET / HTTP/1.1\r\n\r\n", "403 Forbidden", ""),
            ("GET /etc HTTP/1.1\r\nhost: 127.0.0.1:9000\r\n\r\n", "404 Not Found", ""),
            (guard, "200 OK", "X-Refused: 1"),
            (
                "POST /guard HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nContent-Length: 99999999999\r\n\r\n",
                "413 Content Too Large",
                "",
            ),
            ("", "403 Forbidden", ""),
        ] {
            let said = respond(&mut request.as_bytes(), address, &loopback, &refusals).unwrap();
            assert!(
                said.starts_with(&format!("HTTP/1.1 {status}\r\n")) && said.contains(holds),
                "{request}: {said}"
            );
        }
        assert_eq!(refusals.all(), ["candidate 192.0.2.1:9: has not agreed"]);
    }
}
