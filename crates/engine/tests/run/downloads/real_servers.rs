//! Downloads from the servers that people run: nginx and Caddy.

use std::path::Path;

use throng_protocol::participant::HttpVersion;
use throng_sim::caddy::Caddy;
use throng_sim::nginx::Nginx;

use super::puller::{
    Act, Event, deliver, delivered, head, ignore, ignored, pull, pull_one, result,
};
use super::servers::bytes;

/// Longer than the windows and buffers of one download.
const LENGTH: u64 = 100_000_000;

fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // A server may drop its rights and read the files as another user.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    std::fs::write(folder.path().join("long"), bytes(0..LENGTH)).unwrap();
    folder
}

/// Reads a part, pauses, reads the rest; a second download uses the same connection.
fn check(url: &str, version: HttpVersion, spoken: http::Version, certificate: &Path) {
    let pem = std::fs::read(certificate).unwrap();
    let url = format!("{url}/long");
    let again = url.clone();
    let mut ticks_in_pause = 0;
    let events = pull(
        |config| config.tls.extra_ca_pem = Some(pem.clone()),
        move |event| match event {
            Event::Start => {
                let demands =
                    [deliver(1000), ignore(50_000_000), deliver(1000)].map(|d| Act::Want(1, d));
                [Act::Get(1, again.clone(), version)].into_iter().chain(demands).collect()
            }
            Event::Tick => {
                ticks_in_pause += 1;
                if ticks_in_pause == 50 { vec![Act::Want(1, ignore(u64::MAX))] } else { vec![] }
            }
            Event::Finished(1, _) => vec![
                Act::Get(2, again.clone(), version),
                Act::Want(2, deliver(9)),
                Act::Want(2, ignore(LENGTH)),
            ],
            Event::Finished(..) => vec![Act::End],
            _ => vec![],
        },
    );
    for event in &events {
        assert!(!matches!(event, Event::Finished(_, Err(_))), "{url} {version:?}: {event:?}");
    }
    let expect = [bytes(0..1000), bytes(50_001_000..50_002_000)].concat();
    assert!(delivered(&events, 1) == expect, "{url} {version:?}");
    assert_eq!(ignored(&events, 1), LENGTH - 2000, "{url} {version:?}");
    assert!(delivered(&events, 2) == bytes(0..9));
    let (first, second) = (head(&events, 1), head(&events, 2));
    assert_eq!(
        (first.status, first.version, first.length),
        (200, spoken, Some(LENGTH)),
        "{url} {version:?}"
    );
    assert!(first.is_new && !second.is_new, "{url} {version:?}");
    let missing = pull_one(&format!("{url}-not"), version, &[ignore(u64::MAX)], |config| {
        config.tls.extra_ca_pem = Some(pem);
    });
    assert_eq!((result(&missing), head(&missing, 1).status), (Ok(()), 404), "{url} {version:?}");
}

#[test]
fn nginx_over_http1_and_http2() {
    if !Nginx::is_installed() {
        return;
    }
    let files = files();
    let nginx = Nginx::serving(files.path()).unwrap();
    let (plain, secure) =
        (format!("http://{}", nginx.plain_address()), format!("https://{}", nginx.address()));
    let certificate = nginx.certificate();
    check(&plain, HttpVersion::Negotiated, http::Version::HTTP_11, &certificate);
    check(&secure, HttpVersion::Http1, http::Version::HTTP_11, &certificate);
    check(&secure, HttpVersion::Http2, http::Version::HTTP_2, &certificate);
    check(&secure, HttpVersion::Negotiated, http::Version::HTTP_2, &certificate);
    // Its UDP port is closed, or silent: TCP serves the request, without a wait that a viewer would
    // notice.
    let port = nginx.address().port();
    check(&secure, HttpVersion::Alternative(port), http::Version::HTTP_2, &certificate);
    let silent = std::net::UdpSocket::bind((nginx.address().ip(), 0)).unwrap();
    let begun = std::time::Instant::now();
    let silent_port = silent.local_addr().unwrap().port();
    check(&secure, HttpVersion::Alternative(silent_port), http::Version::HTTP_2, &certificate);
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
    let no_quic = pull_one(&secure, HttpVersion::Http3, &[], |_| {});
    assert!(result(&no_quic).is_err(), "nginx listens on TCP only");
}

#[test]
fn caddy_over_all_three() {
    if !Caddy::is_installed() {
        return;
    }
    let files = files();
    let caddy = Caddy::serving(files.path()).unwrap();
    let url = format!("https://{}", caddy.address());
    let certificate = caddy.certificate();
    check(&url, HttpVersion::Http1, http::Version::HTTP_11, &certificate);
    check(&url, HttpVersion::Http2, http::Version::HTTP_2, &certificate);
    check(&url, HttpVersion::Http3, http::Version::HTTP_3, &certificate);
    let port = caddy.address().port();
    check(&url, HttpVersion::Alternative(port), http::Version::HTTP_3, &certificate);
}
