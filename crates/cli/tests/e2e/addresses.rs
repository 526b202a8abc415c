//! Addresses of every kind: IPv6, those of a server on all addresses, local addresses that this
//! host does not have.

use crate::throng::{Stage, figure, plain, run};

fn play(target: &str, more: &[&str]) {
    let view =
        ["view", target, "-n", "4", "--every", "50ms", "--for", "3s", "--objective", "failed < 1%"];
    let ran = run(None, &[&view[..], more].concat()).expect_code(0);
    assert_eq!(figure(&ran.summary(), "participants.playing"), 4.0, "{target}: {ran}");
}

#[test]
fn viewers_play_over_ipv6() {
    let stage = Stage::start(None, "[::1]:0", &[]);
    assert!(stage.whep.starts_with("http://[::1]:"), "{}", stage.whep);
    play(&stage.target(), &[]);
    play(&stage.target(), &["--source-ip", "::1"]);
}

#[test]
fn a_stage_on_all_addresses_is_reached_where_it_says() {
    for (media_ip, url) in [("::1", "http://[::1]:"), ("127.0.0.1", "http://127.0.0.1:")] {
        let stage = Stage::start(None, "[::]:0", &["--listen-any", "--media-ip", media_ip]);
        assert!(stage.whep.starts_with(url), "what it prints can be used: {}", stage.whep);
        play(&stage.target(), &[]);
    }
}

#[test]
fn a_source_address_that_is_not_ours_is_refused_before_anything_is_sent() {
    // TEST-NET-3 (RFC 5737) is on no host.
    let output = plain(&["view", "whep+http://127.0.0.1:9/whep", "--source-ip", "203.0.113.7"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in
        ["source address 203.0.113.7", "--source-ip", "127.0.0.1", "ip addr add 203.0.113.7"]
    {
        assert!(said.contains(words), "{words} is not in: {said}");
    }
}

#[test]
fn a_number_that_is_none_is_named_with_its_flag_and_what_is_expected() {
    let output = plain(&["view", "whep+http://127.0.0.1:9/whep", "-n", "x"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["'x'", "-n", "a whole number from 1 to 1000000"] {
        assert!(said.contains(words), "{words} is not in: {said}");
    }
}
