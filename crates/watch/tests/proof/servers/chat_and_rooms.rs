//! Prosody and LiveKit: their metrics, and their packs' thread descriptions.

use throng_observation::pack::{EndpointKind, packs_of_process};
use throng_watch::packs;
use throng_watch::scrape::Credentials;

use super::harness::{Server, Watched, free_port, installed};

#[test]
fn prosodys_rooms_and_clients_are_read() {
    let Some(prosody) = installed("prosody") else { return };
    let port = free_port();
    let config = format!(
        r#"run_as_root = true
daemonize = false
pidfile = "@/pid"
data_path = "@"
log = {{ info = "*console" }}
interfaces = {{ "127.0.0.1" }}; c2s_ports = {{ }}; s2s_ports = {{ }}
http_ports = {{ {port} }}; http_interfaces = {{ "127.0.0.1" }}; https_ports = {{ }}
modules_enabled = {{ "disco"; "saslauth"; "posix"; "websocket"; "bosh"; "http_openmetrics"; }}
modules_disabled = {{ "s2s"; "tls"; "offline"; }}
statistics = "internal"; statistics_interval = 1; openmetrics_allow_ips = {{ "127.0.0.1" }}
http_default_host = "localhost"
authentication = "anonymous"
storage = "memory"
VirtualHost "localhost"
Component "conference.localhost" "muc"
"#
    );
    let server = Server::start(
        &prosody,
        &["--config", "@/prosody.cfg.lua", "-F"],
        &[("prosody.cfg.lua", &config)],
        port,
    );
    let mut watched = Watched::new();
    let url = format!("http://localhost:{port}/metrics");
    let _scraper = watched.scrape("prosody", EndpointKind::OpenMetrics, &url, Credentials::None);
    assert_eq!(watched.wait(&["prosody_mod_muc__live_room"], |_| true), 0.0);
    assert!(watched.values(&["_created"]).is_empty());
    let pid = std::fs::read_to_string(server.folder.path().join("pid")).unwrap();
    let thread = std::fs::read_to_string(format!("/proc/{}/comm", pid.trim())).unwrap();
    let all = packs::built_in();
    let meaning =
        packs_of_process(&all, thread.trim()).find_map(|pack| pack.thread_meaning(thread.trim()));
    assert!(meaning.unwrap().remedy.as_ref().unwrap().contains("single-threaded"), "{thread}");
}

#[test]
fn livekits_rooms_and_cpu_are_read() {
    let Some(livekit) = installed("livekit-server") else { return };
    let (port, udp, metrics) = (free_port(), free_port(), free_port());
    let config = format!(
        "port: {port}\nbind_addresses: [ \"127.0.0.1\" ]\nkeys: {{ devkey: secret_secret_secret_secret_secret_32 }}\n\
         rtc: {{ node_ip: 127.0.0.1, use_external_ip: false, udp_port: {udp}, tcp_port: 0, enable_loopback_candidate: true }}\n\
         prometheus: {{ port: {metrics} }}\n"
    );
    let _server = Server::start(&livekit, &["--config", "@/conf"], &[("conf", &config)], metrics);
    let mut watched = Watched::new();
    let url = format!("http://127.0.0.1:{metrics}/metrics");
    let _scraper = watched.scrape("livekit", EndpointKind::OpenMetrics, &url, Credentials::None);
    assert_eq!(watched.wait(&["livekit_room_total"], |_| true), 0.0);
    watched.wait(&["process_cpu_seconds_total"], |cores| (0.0..4.0).contains(&cores));
    assert!(watched.wait(&["process_resident_memory_bytes"], |_| true) > 1e6);
}
