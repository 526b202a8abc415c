//! Bad servers: whatever they send, the download fails and the participant goes on.

use std::net::UdpSocket;

use throng_protocol::participant::HttpVersion;

use super::puller::{ignore, pull_one, result};
use super::servers::{raw_server, write};

/// Bytes without meaning, the same every time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn noise_instead_of_a_response_is_a_failure() {
    for seed in 0..20 {
        let url = raw_server(move |mut stream, _| write(&mut stream, noise(seed, 3000)));
        let events =
            pull_one(&format!("http://{url}/"), HttpVersion::Http1, &[ignore(u64::MAX)], |_| {});
        assert!(result(&events).is_err(), "{seed}");
    }
}

#[test]
fn noise_instead_of_frames_is_a_failure() {
    for seed in 0..20 {
        let address = crate::echo::serve(move |mut stream| async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.read(&mut [0; 4096]).await;
            // SETTINGS without content, then frames of all kinds on the first stream.
            let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
            for kind in 0..12 {
                let noise = noise(seed, 40);
                let _ =
                    stream.write_all(&[0, 0, 40, (kind + seed as u8) % 12, 4, 0, 0, 0, 1]).await;
                let _ = stream.write_all(&noise).await;
            }
            let _ = stream.read(&mut [0; 4096]).await;
        });
        let events = pull_one(
            &format!("http://{address}/"),
            HttpVersion::Http2,
            &[ignore(u64::MAX)],
            |_| {},
        );
        assert!(result(&events).is_err(), "{seed}");
    }
}

#[test]
fn noise_instead_of_quic_is_no_answer() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", socket.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        for seed in 0.. {
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { return };
            // Noise, and the client's own packet with a part of it changed.
            let _ = socket.send_to(&noise(seed, 1200), from);
            bytes[seed as usize % length] ^= 0x55;
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    let events = pull_one(&url, HttpVersion::Http3, &[ignore(u64::MAX)], |_| {});
    assert!(result(&events).is_err(), "{events:?}");
}

#[test]
fn frames_of_http3_that_break_its_rules_are_failures() {
    // DATA before HEADERS; HEADERS of noise; a frame of HTTP/2; DATA cut off by the end of the
    // stream.
    let good_head = [0x01, 0x03, 0x00, 0x00, 0xd9];
    let cases: [&[u8]; 5] = [
        &[0x00, 0x02, 1, 2],
        &[0x01, 0x04, 0xff, 0xff, 0xff, 0xff],
        &[0x02, 0x01, 0],
        &[],
        &[&good_head[..], &[0x00, 0x10, 1, 2]].concat(),
    ];
    for (number, answer) in cases.into_iter().enumerate() {
        let (url, change) = http3_answering(answer.to_vec());
        let events = pull_one(&url, HttpVersion::Http3, &[ignore(u64::MAX)], change);
        let result = result(&events);
        // Without Content-Length, what was cut off in the last case cannot be told from what is
        // complete.
        assert!(result.is_err() || number == 4, "{number}: {events:?}");
    }
}

/// A QUIC server whose every stream is answered with `answer` and ended.
fn http3_answering(answer: Vec<u8>) -> (String, impl FnOnce(&mut throng_engine::RunConfig)) {
    let (mut tls, pem) = crate::echo::certified();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(std::sync::Arc::new(crypto));
    let (bound, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let endpoint = quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
            bound.send(endpoint.local_addr().unwrap()).unwrap();
            while let Some(incoming) = endpoint.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    while let Ok((mut stream, mut request)) = connection.accept_bi().await {
                        let _ = request.read_to_end(10_000).await;
                        let _ = stream.write_all(&answer).await;
                        let _ = stream.finish();
                    }
                });
            }
        });
    });
    let url = format!("https://{}/", address.recv().unwrap());
    (url, move |config: &mut throng_engine::RunConfig| config.tls.extra_ca_pem = Some(pem))
}
