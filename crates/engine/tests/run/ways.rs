//! The paths to a server: assigned local addresses, TLS certificates that are trusted or not
//! checked.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use throng_engine::TlsOptions;
use throng_observation::{FailureReason, Outcome};

use crate::echo::{EchoTask, Peers, tls_ws_server, udp_echo, ws_server_that_notes};
use crate::play::{play, reason};

#[test]
fn media_and_signalling_both_leave_from_the_address_that_was_dealt() {
    let ips: Vec<IpAddr> = (2..6).map(|n| IpAddr::from([127, 0, 0, n])).collect();
    let deal = |config: &mut throng_engine::RunConfig| {
        config.joins.iter_mut().zip(&ips).for_each(|(join, ip)| join.source_ip = Some(*ip));
    };
    let seen = play(vec![EchoTask::Datagrams(udp_echo()); 4], 1, 400, deal);
    for (who, ip) in (0..).zip(&ips) {
        let local = seen.participants[&who].local_address.clone().unwrap();
        assert!(local.starts_with(&format!("{ip}:")), "{who}: {local}");
    }
    let peers: Peers = Arc::new(Mutex::new(Vec::new()));
    let server = ws_server_that_notes(Arc::clone(&peers));
    let seen = play(vec![EchoTask::WebSocket(format!("ws://{server}/")); 4], 1, 1500, deal);
    assert!(seen.participants.values().all(|row| row.outcome == Some(Outcome::Completed)));
    let mut peers = peers.lock().unwrap().clone();
    peers.sort();
    assert_eq!(peers, ips);
}

#[test]
fn an_address_that_this_machine_does_not_have_is_our_own_failure() {
    let seen = play(vec![EchoTask::Datagrams(udp_echo())], 1, 300, |config| {
        config.joins[0].source_ip = Some([192, 0, 2, 7].into());
    });
    assert_eq!(reason(&seen, 0), Some(&FailureReason::Generator));
}

#[test]
fn tls_is_trusted_with_the_servers_authority_or_with_insecure() {
    let (server, ca_pem) = tls_ws_server();
    for (tls, expect) in [
        (TlsOptions { insecure: true, extra_ca_pem: None }, None),
        (TlsOptions { insecure: false, extra_ca_pem: Some(ca_pem) }, None),
        (TlsOptions::default(), Some(&FailureReason::Tls)),
    ] {
        let seen = play(vec![EchoTask::WebSocket(format!("wss://{server}/"))], 1, 1500, |config| {
            config.tls = tls;
        });
        assert_eq!(reason(&seen, 0), expect, "{:?}", seen.participants[&0].outcome);
    }
}
