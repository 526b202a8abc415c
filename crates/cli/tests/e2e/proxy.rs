//! WHEP behind a real reverse proxy: TLS with a certificate that needs --tls-ca, HTTP/2.

use throng_sim::nginx::Nginx;

use crate::throng::{Stage, figure, run};

#[test]
fn viewers_come_through_a_proxy_that_speaks_tls_and_http_2() {
    if !Nginx::is_installed() {
        return;
    }
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let nginx = Nginx::before(stage.whep.trim_end_matches("/whep")).unwrap();
    let target = format!("whep+https://{}/whep", nginx.address());
    let view = ["view", &target, "-n", "5", "--every", "50ms", "--for", "4s"];

    let distrusted = run(None, &view).expect_code(3);
    assert_eq!(figure(&distrusted.summary(), "failures.tls"), 5.0, "{distrusted}");

    let certificate = nginx.certificate().display().to_string();
    let ran = run(None, &[&view[..], &["--tls-ca", &certificate]].concat()).expect_code(0);
    assert_eq!(figure(&ran.summary(), "participants.playing"), 5.0, "{ran}");
    let requests = nginx.requests().unwrap();
    let count = |line: &str| requests.iter().filter(|request| request.starts_with(line)).count();
    assert!(count("POST HTTP/2.0 201") >= 5 && count("DELETE HTTP/2.0") >= 5, "{requests:?}");
    assert!(requests.iter().all(|request| request.contains("HTTP/2.0")), "{requests:?}");
}
