//! The SOCKS 5 proxy (RFC 1928) on loopback through which a browser makes all its TCP connections.
//! Pages, redirects, fetches and WebSockets ask it by name, and the consent guard judges each. ICE
//! does not use it: see `candidates.rs`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throng_observation::untrusted;
use throng_scenario::IpProtocol;

use super::candidates::MayReach;
use super::loopback::{IO_TIMEOUT, LoopbackServer};

/// How long a TCP connection to a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Refusals that are recorded.
const NAMED_MAX: usize = 50;

/// Domains that Chromium contacts by itself, whatever its flags (updates, accounts). They are
/// refused and not recorded, because no server led it there.
const VENDOR_DOMAINS: [&str; 4] = ["google.com", "googleapis.com", "gstatic.com", "gvt1.com"];

/// Replies of RFC 1928 section 6.
const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const REFUSED: u8 = 5;

/// The connections and candidates that browsers were refused, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Arc<Mutex<RefusedNames>>);

#[derive(Debug, Default)]
struct RefusedNames {
    named: BTreeSet<String>,
    unreported: Vec<String>,
}

impl Refusals {
    pub(super) fn add(&self, what: &str) {
        // The server chose the text.
        let what = untrusted::line(what).into_owned();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.named.len() < NAMED_MAX && kept.named.insert(what.clone()) {
            kept.unreported.push(what);
        }
    }

    /// Refusals since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).unreported)
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).named.iter().cloned().collect()
    }
}

/// Where browsers may connect to.
#[derive(Clone)]
pub(super) struct Rules {
    /// The address of the page.
    pub(super) page: SocketAddr,
    /// The target's host as in its URL, and the address that the guard allowed. No other name is
    /// resolved.
    pub(super) host: String,
    pub(super) server: IpAddr,
    pub(super) may_reach: MayReach,
}

impl Rules {
    /// The address of `host` and `port`, or why a browser may not connect to it.
    fn judge(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        let place = format!("{host}:{port}");
        let (host, own) = (bare(host), bare(&self.host));
        let address = match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical(),
            Err(_) if host.eq_ignore_ascii_case(own) => self.server,
            Err(_) => {
                return Err(format!("{place}: only the target's own name ({own}) is looked up"));
            }
        };
        let to = SocketAddr::new(address, port);
        if to == self.page {
            return Ok(to);
        }
        let judged = (self.may_reach)(IpProtocol::Tcp, to);
        judged.map(|()| to).map_err(|why| format!("{place}: {why}"))
    }
}

/// A host without the brackets of IPv6 and the final dot of a fully qualified name.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.')
}

fn is_vendor_domain(host: &str) -> bool {
    let of = |maker: &str| {
        host.strip_suffix(maker).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    VENDOR_DOMAINS.into_iter().any(of)
}

/// Serves until the server is dropped; connections end with their browsers.
pub(super) fn open(rules: Rules, refusals: Refusals) -> std::io::Result<LoopbackServer> {
    LoopbackServer::start("canary-proxy", move |browser, _| {
        // A browser that closes the connection, or does not use SOCKS, gets no answer.
        let _ = serve(browser, &rules, &refusals);
    })
}

/// Serves one connection of a browser until its end.
fn serve(mut browser: TcpStream, rules: &Rules, refusals: &Refusals) -> std::io::Result<()> {
    browser.set_read_timeout(Some(IO_TIMEOUT))?;
    let Some((host, port)) = read_request(&mut browser)? else { return Ok(()) };
    let to = match rules.judge(&host, port) {
        Ok(to) => to,
        Err(what) => {
            if !is_vendor_domain(&host) {
                refusals.add(&what);
            }
            return answer(&mut browser, NOT_ALLOWED);
        }
    };
    let Ok(server) = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT) else {
        return answer(&mut browser, REFUSED);
    };
    answer(&mut browser, SUCCEEDED)?;
    browser.set_read_timeout(None)?;
    // Signalling consists of small messages, which must not wait.
    let _ = browser.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let (back_from, back_to) = (server.try_clone()?, browser.try_clone()?);
    let back = std::thread::Builder::new()
        .name("canary-tunnel".into())
        .spawn(move || pass(&back_from, &back_to))?;
    pass(&browser, &server);
    let _ = back.join();
    Ok(())
}

/// Copies bytes until one end closes, and then closes the other.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// The host and port that a browser requests (RFC 1928 sections 3 and 4); `None` if it is no
/// CONNECT.
fn read_request(browser: &mut (impl Read + Write)) -> std::io::Result<Option<(String, u16)>> {
    let [version, methods] = read(browser)?;
    if version != 5 {
        return Ok(None);
    }
    std::io::copy(&mut Read::take(&mut *browser, methods.into()), &mut std::io::sink())?;
    // No authentication: the port is on loopback, and opens only what the run may reach anyway.
    browser.write_all(&[5, 0])?;
    let [version, command, _, kind] = read(browser)?;
    if (version, command) != (5, 1) {
        return Ok(None);
    }
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(browser)?).to_string(),
        4 => Ipv6Addr::from(read::<16>(browser)?).to_string(),
        3 => {
            let [length] = read(browser)?;
            let mut name = vec![0; length.into()];
            browser.read_exact(&mut name)?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => return Ok(None),
    };
    Ok(Some((host, u16::from_be_bytes(read(browser)?))))
}

fn read<const N: usize>(from: &mut impl Read) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn answer(browser: &mut impl Write, how: u8) -> std::io::Result<()> {
    // Browsers ignore the bound address.
    browser.write_all(&[5, how, 0, 1, 0, 0, 0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn rules(page: SocketAddr) -> Rules {
        let server = IpAddr::from([198, 51, 100, 8]);
        let may_reach: MayReach = Arc::new(move |_, to| {
            if to.ip() == server { Ok(()) } else { Err(format!("{} has not agreed", to.ip())) }
        });
        Rules { page, host: "Media.example".into(), server, may_reach }
    }

    #[test]
    fn only_the_targets_name_its_address_and_the_page_lead_anywhere() {
        let rules = rules("127.0.0.1:9000".parse().unwrap());
        for (host, port, expect) in [
            ("media.example", 7080, Some("198.51.100.8:7080")),
            ("MEDIA.example.", 443, Some("198.51.100.8:443")),
            ("198.51.100.8", 80, Some("198.51.100.8:80")),
            ("::ffff:198.51.100.8", 80, Some("198.51.100.8:80")),
            ("127.0.0.1", 9000, Some("127.0.0.1:9000")),
            ("127.0.0.1", 9001, None),
            ("198.51.100.9", 7080, None),
            ("[2001:db8::1]", 7080, None),
            ("victim.example", 80, None),
            ("", 80, None),
        ] {
            let found = rules.judge(host, port);
            assert_eq!(
                found.as_ref().ok().map(ToString::to_string).as_deref(),
                expect,
                "{host}:{port} {found:?}"
            );
            assert!(found.is_ok() || found.unwrap_err().starts_with(&format!("{host}:{port}: ")));
        }
    }

    /// Asks for `host`:`port` as Chromium does, by name: the answer, and the connection.
    fn asks(proxy: SocketAddr, host: &str, port: u16) -> (u8, TcpStream) {
        let mut stream = TcpStream::connect(proxy).unwrap();
        stream.write_all(&[5, 1, 0]).unwrap();
        assert_eq!(read::<2>(&mut stream).unwrap(), [5, 0]);
        let length = u8::try_from(host.len()).unwrap();
        let request = [&[5, 1, 0, 3, length], host.as_bytes(), &port.to_be_bytes()].concat();
        stream.write_all(&request).unwrap();
        let [version, how, ..] = read::<10>(&mut stream).unwrap();
        assert_eq!(version, 5);
        (how, stream)
    }

    #[test]
    fn what_is_allowed_is_passed_on_and_what_is_not_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let asked: [u8; 4] = read(&mut stream).unwrap();
            stream.write_all(&asked).unwrap();
        });
        let refusals = Refusals::default();
        let proxy = open(rules(page), refusals.clone()).unwrap();
        let (how, mut stream) = asks(proxy.address, "127.0.0.1", page.port());
        assert_eq!(how, SUCCEEDED);
        stream.write_all(b"ping").unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"ping", "and its end is passed on");
        for _ in 0..2 {
            assert_eq!(asks(proxy.address, "198.51.100.9", 7080).0, NOT_ALLOWED);
        }
        let expect = ["198.51.100.9:7080: 198.51.100.9 has not agreed"];
        assert_eq!(
            (refusals.take(), refusals.take()),
            (expect.map(str::to_owned).to_vec(), Vec::new())
        );
        assert_eq!(asks(proxy.address, "update.googleapis.com", 443).0, NOT_ALLOWED);
        assert_eq!(
            refusals.all(),
            expect,
            "what a browser asks by itself is not the server's doing"
        );
        assert_eq!(asks(proxy.address, "notgoogle.com", 443).0, NOT_ALLOWED);
        assert_eq!(refusals.all().len(), 2);
    }

    #[test]
    fn what_is_no_socks_is_not_answered() {
        for bytes in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[4, 1, 0, 80], &[5, 1, 0, 5, 2, 0, 1], &[5], &[]]
        {
            let mut stream = std::io::Cursor::new(bytes.to_vec());
            assert!(!matches!(read_request(&mut stream), Ok(Some(_))), "{bytes:?}");
        }
    }
}
