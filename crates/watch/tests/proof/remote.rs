//! An agent and its runs: authentication, rows, and misbehaviour of either end.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostId};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_watch::remote::{
    Agent, AgentConfig, AgentError, AgentPolicy, Consent, RemoteAgent, RemoteConfig, RemoteError,
};
use throng_watch::{RowReceiver, Target, WatchConfig};

use crate::recorded::RecordedRows;

const TOKEN: &str = "0123456789abcdef";
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn config(listen: SocketAddr, is_tls: bool) -> AgentConfig {
    let targets = vec![Target::Pid(std::process::id())];
    let watch = WatchConfig { targets, name: Some("server".into()), ..WatchConfig::default() };
    let consent =
        Some(Consent { ports: vec!["8188".into()], users_max: Some(9), ..Consent::default() });
    let policy = AgentPolicy { watch, consent, ..AgentPolicy::default() };
    AgentConfig { listen, token: TOKEN.into(), is_tls, policy }
}

fn client(agent: &Agent) -> RemoteConfig {
    RemoteConfig {
        address: agent.address().to_string(),
        token: TOKEN.into(),
        fingerprint: agent.fingerprint(),
    }
}

fn begin(
    remote: RemoteAgent,
    host: u8,
) -> (throng_watch::remote::RemoteWatch, RowReceiver, Instant) {
    let (sender, rows) = throng_watch::rows(65_536);
    let zero = Instant::now();
    (remote.begin(HostId(host), None, zero, sender), rows, zero)
}

fn until(
    seen: &mut RecordedRows,
    rows: &RowReceiver,
    what: &str,
    is_enough: impl Fn(&RecordedRows) -> bool,
) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_enough(seen) {
        match rows.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(row) => seen.take(row),
            Err(_) => panic!("{what} was not seen; {seen:#?}"),
        }
    }
}

#[test]
fn rows_come_over_with_this_runs_host_times_and_numbers() {
    let agent = Agent::start(config(LOOPBACK, true)).unwrap();
    let remote = RemoteAgent::connect(&client(&agent)).unwrap();
    assert_eq!((remote.name(), remote.targets().len()), ("server", 1));
    assert_eq!(remote.consent().unwrap().ports, ["8188"]);
    let (watching, rows, zero) = begin(remote, 5);
    let mut seen = RecordedRows::default();
    until(&mut seen, &rows, "threads", |seen| !seen.samples("process.threads", &[]).is_empty());
    until(&mut seen, &rows, "the host", |seen| {
        seen.info.as_ref().is_some_and(|info| info.clock_error_us < 100_000)
    });
    assert!(seen.find("process.threads", &[]).all(|series| series.host == HostId(5)));
    let info = seen.info.clone().unwrap();
    assert_eq!((info.host, &*info.name), (HostId(5), "server"));
    // Both ends have one clock here, so the times must be true within the stated error.
    let (now, error) = (zero.elapsed().as_secs_f64(), watching.clock_error_us() as f64 / 1e6);
    let last = seen.last_at();
    assert!(last <= now + error && last > -1.0, "a sample of {last} s at {now} s, error {error}");
    assert_eq!(agent.sessions(), 1);
    watching.stop();
}

#[test]
fn a_client_without_the_token_or_the_certificate_is_refused() {
    let agent = Agent::start(config(LOOPBACK, true)).unwrap();
    let right = client(&agent);
    let wrong_token = RemoteConfig { token: "0123456789abcdeX".into(), ..right.clone() };
    let error = RemoteAgent::connect(&wrong_token).unwrap_err();
    assert!(matches!(&error, RemoteError::Refused { why, .. } if why.contains("token")), "{error}");
    let other = Agent::start(config(LOOPBACK, true)).unwrap();
    let wrong_certificate = RemoteConfig { fingerprint: other.fingerprint(), ..right.clone() };
    let error = RemoteAgent::connect(&wrong_certificate).unwrap_err();
    let theirs = agent.fingerprint().unwrap().to_string();
    assert!(
        matches!(&error, RemoteError::Certificate { why, .. } if why.contains(&theirs)),
        "{error}"
    );
    let no_tls = RemoteConfig { fingerprint: None, ..right.clone() };
    assert!(RemoteAgent::connect(&no_tls).is_err());
    assert!(agent.refused() >= 2);
    assert!(RemoteAgent::connect(&right).is_ok(), "the right one is let in afterwards");
}

#[test]
fn an_agent_that_would_not_be_safe_does_not_start() {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    assert!(matches!(Agent::start(config(any, false)), Err(AgentError::Plain(_))));
    let short = AgentConfig { token: "short".into(), ..config(LOOPBACK, true) };
    assert!(matches!(Agent::start(short), Err(AgentError::Token)));
    let nowhere = SocketAddr::from(([192, 0, 2, 1], 9));
    assert!(matches!(Agent::start(config(nowhere, true)), Err(AgentError::Listen(..))));
}

#[test]
fn the_loss_of_an_agent_is_known_at_once_and_its_return_too() {
    let agent = Agent::start(config(LOOPBACK, false)).unwrap();
    let listen = agent.address();
    let remote = RemoteAgent::connect(&client(&agent)).unwrap();
    let presence = remote.presence();
    let (watching, rows, _) = begin(remote, 0);
    let mut seen = RecordedRows::default();
    until(&mut seen, &rows, "rows", |seen| seen.max("process.threads", &[]).is_some());
    assert!(presence.is_present());
    let stopped_at = Instant::now();
    drop(agent);
    while presence.is_present() {
        assert!(stopped_at.elapsed() < Duration::from_secs(4), "the loss was not seen");
        std::thread::sleep(Duration::from_millis(5));
    }
    until(&mut seen, &rows, "the loss", |seen| seen.said(HostEventKind::Watcher, "was stopped"));
    let again = Agent::start(config(listen, false)).unwrap();
    until(&mut seen, &rows, "the return", |seen| seen.said(HostEventKind::Watcher, "is back"));
    let series = |seen: &RecordedRows| seen.find("process.threads", &[]).count();
    until(&mut seen, &rows, "rows again", |seen| series(seen) == 2);
    let ended = seen.samples("process.threads", &[]).iter().any(|(_, value)| value.is_nan());
    assert!(ended && presence.is_present());
    watching.stop();
    drop(again);
}

#[test]
fn a_flood_a_silent_client_and_rubbish_do_not_keep_the_right_one_out() {
    let agent = Agent::start(config(LOOPBACK, true)).unwrap();
    let address = agent.address();
    let is_over = AtomicBool::new(false);
    for rubbish in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 0, 7], b""] {
        TcpStream::connect(address).unwrap().write_all(rubbish).unwrap();
    }
    let met = std::thread::scope(|scope| {
        // Silent connections take all slots of unknown addresses and reconnect again and again.
        // They leave some of each second's rate: a flood from the client's own address could take
        // that too.
        scope.spawn(|| {
            let mut silent = std::collections::VecDeque::new();
            while !is_over.load(Relaxed) {
                silent.extend(TcpStream::connect(address));
                if silent.len() > 40 {
                    silent.pop_front();
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        std::thread::sleep(Duration::from_secs(2)); // all places are taken by then
        let met: Vec<_> = (0..5)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(200));
                RemoteAgent::connect(&client(&agent)).map(|remote| remote.is_present())
            })
            .collect();
        is_over.store(true, Relaxed);
        met
    });
    // On a busy machine one connection may be too slow for its slot.
    assert!(met.iter().filter(|met| matches!(met, Ok(true))).count() >= 3, "{met:?}");
    assert!(agent.is_running());
}

/// Opens connections from `from` one after another without pause, holds and counts them until
/// `is_over`.
fn flood(from: Ipv4Addr, to: SocketAddr, is_over: &AtomicBool, connected: &AtomicUsize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut held = std::collections::VecDeque::new();
        while !is_over.load(Relaxed) {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            if let Ok(stream) = socket.connect(to).await {
                connected.fetch_add(1, Relaxed);
                held.push_back(stream);
            }
            if held.len() > 40 {
                held.pop_front();
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    });
}

#[test]
fn three_addresses_that_flood_keep_the_right_one_neither_out_nor_in_the_dark() {
    let agent = Agent::start(config(LOOPBACK, true)).unwrap();
    let (address, right) = (agent.address(), client(&agent));
    let (is_over, connected) = (AtomicBool::new(false), AtomicUsize::new(0));
    let met = std::thread::scope(|scope| {
        for last in 2..=4 {
            let (is_over, connected) = (&is_over, &connected);
            scope.spawn(move || flood(Ipv4Addr::new(127, 0, 0, last), address, is_over, connected));
        }
        std::thread::sleep(Duration::from_secs(2));
        let before = connected.load(Relaxed);
        // The first address is new; the others come from an address that authenticated before.
        let met: Vec<_> = (0..5)
            .map(|_| {
                let began = Instant::now();
                let met = RemoteAgent::connect(&right).map(|remote| remote.is_present());
                (met, began.elapsed())
            })
            .collect();
        let is_flood = before > 300;
        is_over.store(true, Relaxed);
        assert!(is_flood, "{before} connections in 2 s are no flood");
        met
    });
    assert!(met.iter().all(|(met, _)| *met == Ok(true)), "{met:?}");
    assert!(met.iter().skip(1).all(|(_, took)| *took < Duration::from_secs(2)), "{met:?}");
    assert!(agent.refused() > 100 && agent.is_running(), "{}", agent.refused());
}

#[test]
fn an_agent_that_closes_or_stays_silent_is_not_reported_as_another_one() {
    let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
    let agent = Agent::start(config(LOOPBACK, true)).unwrap();
    let there =
        RemoteConfig { address: listener.local_addr().unwrap().to_string(), ..client(&agent) };
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let error = RemoteAgent::connect(&there).unwrap_err();
    assert!(matches!(error, RemoteError::Closed { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("busy refusing unauthenticated") && !said.contains("fingerprint"),
        "{said}"
    );
    // A service that accepts connections and never answers.
    let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
    let there =
        RemoteConfig { address: listener.local_addr().unwrap().to_string(), ..client(&agent) };
    let error = RemoteAgent::connect(&there).unwrap_err();
    assert!(
        matches!(error, RemoteError::Silent { .. }) && !error.to_string().contains("fingerprint"),
        "{error}"
    );
}

#[test]
fn silent_connections_do_not_lock_out_the_right_one() {
    let agent = Agent::start(config(LOOPBACK, false)).unwrap();
    // All slots are held by silent connections for seconds.
    let silent: Vec<_> = (0..16).map(|_| TcpStream::connect(agent.address()).unwrap()).collect();
    let until = Instant::now() + Duration::from_secs(4);
    let remote = loop {
        // The rate of this address may be used up for a moment; the silent connections outlast
        // that.
        match RemoteAgent::connect(&client(&agent)) {
            Ok(remote) => break remote,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(remote.is_present() && agent.refused() >= 1);
    drop(silent);
}

/// A frame as a client sends it.
fn frame(json: &str) -> Vec<u8> {
    let mut bytes = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
    bytes.push(1);
    bytes.extend(json.as_bytes());
    bytes
}

#[test]
fn a_run_that_stops_reading_loses_rows_and_then_its_session() {
    let mut config = config(LOOPBACK, false);
    config.policy.watch.period = Duration::from_millis(20);
    config.policy.watch.fast_period = None;
    config.policy.watch.cpu_ratio_max = 10.0;
    let agent = Agent::start(config).unwrap();
    let mut stream = TcpStream::connect(agent.address()).unwrap();
    stream.write_all(&frame(&format!(r#"{{"Hello":{{"version":1,"token":"{TOKEN}"}}}}"#))).unwrap();
    stream.write_all(&frame(r#""Begin""#)).unwrap();
    let mut welcome = [0; 64];
    stream.read_exact(&mut welcome).unwrap();
    // Pings alone keep the session, but nothing is read: the buffers of the kernel fill, then the
    // queue.
    let until = Instant::now() + Duration::from_secs(25);
    while agent.sessions() > 0 {
        assert!(Instant::now() < until, "the session still runs");
        let _ = stream.write_all(&frame(r#"{"Ping":{"number":1}}"#));
        std::thread::sleep(Duration::from_millis(100));
        if Instant::now() + Duration::from_secs(12) > until {
            break; // the kernel's buffers may hold more than this watcher says
        }
    }
    assert!(agent.is_running());
    assert!(RemoteAgent::connect(&client(&agent)).is_ok());
}

#[test]
fn an_agent_in_another_network_namespace_is_reached_by_tls_and_token_alone() {
    if !requires_root() {
        return;
    }
    let (here, there) = (Ipv4Addr::new(10, 73, 9, 1), Ipv4Addr::new(10, 73, 9, 2));
    let (ours, theirs) = Namespace::pair("watch", here, there).unwrap();
    let agent = theirs.enter(|| Agent::start(config((there, 0).into(), true))).unwrap().unwrap();
    let right = client(&agent);
    ours.enter(|| {
        let plain = RemoteConfig { fingerprint: None, ..right.clone() };
        assert!(matches!(RemoteAgent::connect(&plain), Err(RemoteError::Plain(_))));
        let stranger = RemoteConfig { token: "another-token-of-16".into(), ..right.clone() };
        assert!(matches!(RemoteAgent::connect(&stranger), Err(RemoteError::Refused { .. })));
        // Nothing is sent in clear text: plain TCP shows neither the token nor the targets.
        let mut plain = TcpStream::connect(agent.address()).unwrap();
        plain
            .write_all(&frame(&format!(r#"{{"Hello":{{"version":1,"token":"{TOKEN}"}}}}"#)))
            .unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("Welcome"), "{answer:?}");
        let remote = RemoteAgent::connect(&right).unwrap();
        assert_eq!(remote.peer().ip(), there);
        let (watching, rows, _) = begin(remote, 0);
        let mut seen = RecordedRows::default();
        until(&mut seen, &rows, "rows", |seen| seen.max("process.threads", &[]).is_some());
        watching.stop();
    })
    .unwrap();
}

#[test]
fn an_agents_command_output_and_later_processes_reach_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let janus = folder.path().join("janus");
    std::fs::copy("/bin/sleep", &janus).unwrap();
    let script = format!(
        "sleep 3; {} 60 & while sleep 0.2; do echo 'Discarding too old outgoing packet (age=1us)'; done",
        janus.display()
    );
    let mut config = config(LOOPBACK, false);
    config.policy.watch.targets = vec![crate::outputs::shell(&script)];
    let agent = Agent::start(config).unwrap();
    // Two runs at a time: each gets all rows.
    for (watching, rows, _) in
        [0, 1].map(|host| begin(RemoteAgent::connect(&client(&agent)).unwrap(), host))
    {
        let mut seen = RecordedRows::default();
        until(&mut seen, &rows, "its lines", |seen| {
            let labels = [("log", "sh stdout"), ("pattern", "old_packet_discarded")];
            seen.max("log.lines", &labels).is_some_and(|rate| rate > 0.0)
        });
        let fact = throng_observation::pack::PACKS_FACT;
        let knows_janus = |seen: &RecordedRows| {
            let facts = seen.info.as_ref().map(|info| &info.facts);
            facts
                .and_then(|facts| facts.get(fact))
                .is_some_and(|packs| packs.contains("\"pack\":\"janus\""))
        };
        until(&mut seen, &rows, "what is known of it", knows_janus);
        watching.stop();
    }
}
