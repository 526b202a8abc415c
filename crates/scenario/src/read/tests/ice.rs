//! STUN and TURN servers of a target, and when a relay is used.

use super::{SMALL, read, set};
use crate::IceTransportPolicy;

#[test]
fn a_relay_is_used_where_there_can_be_one_and_the_scenario_or_the_url_asks_for_it() {
    let ome = SMALL.replace("whep+http://127.0.0.1:7080/whep", "ws://127.0.0.1:3333/app/stream");
    let asked = ome.replace("/stream", "/stream?transport=tcp");
    for (text, settings, expect) in [
        (&ome, &[][..], IceTransportPolicy::All),
        (&ome, &["target.ice_transport_policy=relay"], IceTransportPolicy::Relay),
        (&asked, &[], IceTransportPolicy::Relay),
        (&asked, &["target.ice_transport_policy=all"], IceTransportPolicy::All),
    ] {
        let scenario = set(text, settings).unwrap();
        assert_eq!(scenario.target.ice_transport_policy, expect, "{text} {settings:?}");
        assert_eq!(
            read(&scenario.to_toml()).target.ice_transport_policy,
            expect,
            "{text} {settings:?}"
        );
    }
    let janus =
        SMALL.replace("whep+http://127.0.0.1:7080/whep", "janus+ws://127.0.0.1:8188/streaming/1");
    for (text, setting, help) in [
        (&ome, "target.ice_transport_policy=relais", "did you mean \"relay\"?"),
        (
            &janus,
            "target.ice_transport_policy=relay",
            "name one by turn, turn_username and turn_password",
        ),
    ] {
        let error = set(text, &[setting]).unwrap_err().to_string();
        assert!(error.contains(help), "{error}");
    }
}

#[test]
fn a_stun_server_is_an_address_or_on_the_targets_host() {
    let named = SMALL.replace("127.0.0.1:7080", "Media.Example:7080");
    for (text, stun, expect) in [
        (SMALL, "stun:10.0.0.1", "stun:10.0.0.1:3478"),
        (SMALL, "stun:[::1]:9", "stun:[::1]:9"),
        (named.as_str(), "stun:media.EXAMPLE:3479", "stun:media.example:3479"),
    ] {
        let scenario = set(text, &[&format!("target.stun={stun}")]).unwrap();
        assert_eq!(scenario.target.stun.as_ref().unwrap().to_string(), expect);
        assert_eq!(read(&scenario.to_toml()).target.stun, scenario.target.stun, "{stun}");
    }
    assert_eq!(
        set(SMALL, &["target.stun=stun:10.0.0.1", "target.stun="]).unwrap().target.stun,
        None
    );
    for (stun, words) in [
        ("stun:media.example", "names another host than `target.url`"),
        ("turn:10.0.0.1", "is not stun:HOST or stun:HOST:PORT"),
        ("10.0.0.1:3478", "write stun = \"stun:10.0.0.1:3478\""),
    ] {
        let error = set(SMALL, &[&format!("target.stun={stun}")]).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("--set target.stun"), "{error}");
    }
}

#[test]
fn a_turn_server_has_a_credential_and_an_address() {
    let janus =
        SMALL.replace("whep+http://127.0.0.1:7080/whep", "janus+ws://127.0.0.1:8188/videoroom/1");
    let credential = ["target.turn_username=u", "target.turn_password=sesame"];
    let with = |uri: &str| {
        let turn = format!("target.turn={uri}");
        let policy = "target.ice_transport_policy=relay";
        set(&janus, &[&credential[..], &[turn.as_str(), policy]].concat())
    };
    let scenario = with("turns:10.0.0.1:443").unwrap();
    let turn = scenario.target.turn.as_ref().unwrap();
    assert_eq!((turn.uri.as_str(), turn.username.as_str()), ("turns:10.0.0.1:443", "u"));
    let written = scenario.to_toml();
    assert!(!written.contains("sesame") && written.contains("turn_username"), "{written}");
    for (uri, words) in [
        ("turn:relay.example", "names another host than `target.url`"),
        ("stun:10.0.0.1", "not a TURN URI"),
        ("turns:10.0.0.1?transport=udp", "TURN over DTLS is not supported"),
        ("", "announces no relay"),
    ] {
        let error = with(uri).unwrap_err().to_string();
        assert!(error.contains(words), "{uri}: {error}");
    }
    let error = set(&janus, &["target.turn=turn:10.0.0.1"]).unwrap_err().to_string();
    assert!(error.contains("only a part of a TURN server"), "{error}");
}
