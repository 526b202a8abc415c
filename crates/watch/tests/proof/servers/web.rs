//! nginx, lighttpd and Caddy: their access logs and status pages match the requests sent.

use std::process::Command;
use std::time::{Duration, Instant};

use throng_observation::pack::EndpointKind;
use throng_watch::logs::{LogSource, Tail};
use throng_watch::scrape::Credentials;

use super::harness::{Server, Watched, free_port, get, installed};

const SEGMENT_BYTES: usize = 10_000;

/// Waits until the server has written this number of lines into its access log: some buffer lines
/// for seconds.
fn logged(server: &Server, lines: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    let log = server.folder.path().join("access.log");
    loop {
        let bytes = std::fs::read(&log).unwrap_or_default();
        let written = bytes.iter().filter(|byte| **byte == b'\n').count();
        if written >= lines {
            return;
        }
        assert!(Instant::now() < until, "{written} of {lines} lines are logged");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Requests of known sizes, until they are in the log.
fn ask(server: &Server, port: u16) {
    for _ in 0..20 {
        assert!(get(port, "/a.ts").len() > SEGMENT_BYTES);
        get(port, "/a.m3u8?_HLS_msn=1");
    }
    for _ in 0..5 {
        get(port, "/missing.ts");
    }
    logged(server, 2 * 20 + 5);
}

/// Each second of a log has the bytes of its requests, and no request is lost.
fn check(watched: &mut Watched, protocol: &str) {
    let protocol = &format!("protocol={protocol}");
    let segments =
        watched.values(&["access.requests", "uri_group=hls_segment", "status=2xx", protocol]);
    let bytes = watched.values(&["access.bytes", "uri_group=hls_segment", protocol]);
    assert!(segments.iter().sum::<f64>() > 5.0, "{segments:?}; {:?}", watched.events);
    // For a missing segment the server sends an error page of some hundred bytes.
    let ratio = bytes.iter().sum::<f64>() / segments.iter().sum::<f64>();
    // Rounding makes the sum of several seconds' rates slightly too small.
    let fits = SEGMENT_BYTES as f64 - 1.0..1.2 * SEGMENT_BYTES as f64;
    assert!(fits.contains(&ratio), "{ratio} bytes a segment");
    assert!(
        watched
            .values(&["access.requests", "uri_group=hls_segment", "status=4xx"])
            .iter()
            .sum::<f64>()
            > 0.5
    );
    assert!(
        watched
            .values(&["access.requests", "uri_group=hls_playlist", "status=2xx"])
            .iter()
            .sum::<f64>()
            > 5.0
    );
    assert!(watched.values(&["access.lines_unparsed"]).is_empty());
    assert_eq!(watched.events, [] as [&str; 0]);
}

fn site() -> (String, String) {
    ("x".repeat(SEGMENT_BYTES), "#EXTM3U\n".to_owned())
}

fn nginx(format: &str) -> Option<(Server, u16)> {
    let nginx = installed("nginx")?;
    let port = free_port();
    let gone = free_port();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let config = format!(
        r#"{user} daemon off; worker_processes 2; pid @/pid; error_log @/error.log info;
events {{ worker_connections 64; }}
http {{
  log_format json escape=json '{{"uri":"$request_uri","status":$status,"bytes_sent":$bytes_sent,'
    '"protocol":"$server_protocol","request_time":$request_time}}';
  access_log @/access.log {format};
  client_body_temp_path @/b; proxy_temp_path @/p; fastcgi_temp_path @/f; uwsgi_temp_path @/u; scgi_temp_path @/s;
  server {{
    listen 127.0.0.1:{port}; root @;
    location = /basic_status {{ access_log off; stub_status; }}
    location /chat/ {{ proxy_pass http://127.0.0.1:{gone}; }}
  }}
}}"#
    );
    let (segment, playlist) = site();
    let files = [("conf", config.as_str()), ("a.ts", &segment), ("a.m3u8", &playlist)];
    Some((
        Server::start(&nginx, &["-p", "@", "-e", "@/error.log", "-c", "@/conf"], &files, port),
        port,
    ))
}

#[test]
fn nginx_in_both_formats_is_accounted() {
    for format in ["combined", "json"] {
        let Some((server, port)) = nginx(format) else { return };
        let mut watched = Watched::new();
        let mut tail = Tail::new();
        watched.access(&mut tail, server.folder.path().join("access.log"), &["generic"]);
        ask(&server, port);
        tail.stop();
        check(&mut watched, "h1");
    }
}

#[test]
fn the_502s_of_nginx_are_seen_with_their_reason() {
    let Some((server, port)) = nginx("combined") else { return };
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let path = server.folder.path();
    watched.lines(
        &mut tail,
        "error",
        LogSource::File(path.join("error.log")),
        &["nginx", "generic"],
    );
    watched.lines(
        &mut tail,
        "access",
        LogSource::File(path.join("access.log")),
        &["nginx", "generic"],
    );
    for _ in 0..8 {
        assert!(get(port, "/chat/ws").starts_with(b"HTTP/1.1 502"));
    }
    tail.stop();
    assert!(watched.values(&["pattern=upstream_refused"])[0] > 0.0);
    assert!(watched.values(&["pattern=status_502"])[0] > 0.0);
    let kept = watched.events.iter().find(|event| event.starts_with("upstream_refused")).unwrap();
    assert!(kept.contains("connect() failed (111: "), "{kept}");
}

#[test]
fn a_rotated_log_of_nginx_is_followed() {
    let Some((server, port)) = nginx("combined") else { return };
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let log = server.folder.path().join("access.log");
    watched.access(&mut tail, log.clone(), &["generic"]);
    get(port, "/a.ts");
    std::fs::rename(&log, server.folder.path().join("access.log.1")).unwrap();
    // This still goes into the old file; then nginx opens the new one.
    get(port, "/a.ts");
    let pid = std::fs::read_to_string(server.folder.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-USR1", pid.trim()]).status().unwrap().success());
    while !log.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..4 {
        get(port, "/a.m3u8");
    }
    tail.stop();
    assert!(watched.values(&["access.requests", "hls_segment"]).iter().sum::<f64>() > 0.0);
    assert!(watched.values(&["access.requests", "hls_playlist"]).iter().sum::<f64>() > 0.0);
}

#[test]
fn the_status_page_of_nginx_counts_requests() {
    let Some((_server, port)) = nginx("combined") else { return };
    let mut watched = Watched::new();
    let url = format!("http://127.0.0.1:{port}/basic_status");
    let _scraper = watched.scrape("nginx", EndpointKind::NginxStatus, &url, Credentials::None);
    watched.wait(&["nginx_connections_active"], |value| value >= 1.0);
    for _ in 0..30 {
        get(port, "/a.m3u8");
    }
    watched.wait(&["nginx_http_requests_total"], |rate| rate > 10.0);
}

#[test]
fn lighttpd_is_accounted_and_its_status_page_read() {
    let Some(lighttpd) = installed("lighttpd") else { return };
    let port = free_port();
    let config = format!(
        r#"server.modules = ( "mod_accesslog", "mod_status" )
server.document-root = "@"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "@/error.log"
accesslog.filename = "@/access.log"
status.status-url = "/server-status"
"#
    );
    let (segment, playlist) = site();
    let files = [("conf", config.as_str()), ("a.ts", &segment), ("a.m3u8", &playlist)];
    let server = Server::start(&lighttpd, &["-D", "-f", "@/conf"], &files, port);
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    watched.access(&mut tail, server.folder.path().join("access.log"), &["generic"]);
    ask(&server, port);
    tail.stop();
    check(&mut watched, "h1");
    let mut watched = Watched::new();
    let url = format!("http://127.0.0.1:{port}/server-status?auto");
    let _scraper =
        watched.scrape("lighttpd", EndpointKind::LighttpdStatus, &url, Credentials::None);
    watched.wait(&["lighttpd_connections_busy"], |value| value >= 1.0);
    for _ in 0..30 {
        get(port, "/a.ts");
    }
    watched.wait(&["lighttpd_requests_total"], |rate| rate > 10.0);
}

#[test]
fn caddy_is_accounted_by_protocol_and_its_metrics_read() {
    let Some(caddy) = installed("caddy") else { return };
    let (port, admin) = (free_port(), free_port());
    let config = format!(
        "{{\n admin 127.0.0.1:{admin}\n auto_https off\n default_bind 127.0.0.1\n servers {{\n  protocols h1 h2c\n  metrics\n }}\n}}\n\
         http://127.0.0.1:{port}, http://localhost:{port} {{\n root * @\n file_server\n log {{\n  output file @/access.log\n }}\n}}\n"
    );
    let (segment, playlist) = site();
    // Caddy creates its log with the first line: before that, a missing file would be reported.
    let files = [
        ("Caddyfile", config.as_str()),
        ("a.ts", &segment),
        ("a.m3u8", &playlist),
        ("access.log", ""),
    ];
    let arguments = ["run", "--config", "@/Caddyfile", "--adapter", "caddyfile"];
    let server = Server::start(&caddy, &arguments, &files, port);
    let mut watched = Watched::new();
    let mut tail = Tail::new();
    let log = server.folder.path().join("access.log");
    watched.access(&mut tail, log, &["generic"]);
    ask(&server, port);
    if installed("curl").is_some() {
        let url = format!("http://127.0.0.1:{port}/a.ts");
        let curl = Command::new("curl")
            .args(["-s", "--http2-prior-knowledge", "-o", "/dev/null", &url])
            .status();
        assert!(curl.unwrap().success());
        logged(&server, 2 * 20 + 5 + 1);
        tail.stop();
        // Its bytes are not checked: over h2c Caddy 2.6 logs `"size":0` for one answer of ten.
        let requests = watched.values(&["access.requests", "protocol=h2"]);
        assert!(requests.iter().sum::<f64>() > 0.5, "{requests:?}; {:?}", watched.events);
    } else {
        tail.stop();
    }
    check(&mut watched, "h1");
    assert!(!watched.values(&["access.response_time"]).is_empty());
    let mut watched = Watched::new();
    let url = format!("http://127.0.0.1:{admin}/metrics");
    let _scraper = watched.scrape("caddy", EndpointKind::OpenMetrics, &url, Credentials::None);
    watched.wait(&["go_goroutines"], |value| value > 1.0);
    for _ in 0..30 {
        get(port, "/a.ts");
    }
    watched.wait(&["caddy_http_requests_total"], |rate| rate > 10.0);
    assert!(watched.values(&["_bucket"]).is_empty());
}
