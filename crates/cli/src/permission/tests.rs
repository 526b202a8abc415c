//! Servers that a scenario names beside its target need the same consent, before anything is sent.

use throng_scenario::Scenario;

use super::*;

/// What the guard says of viewers of a video on loopback, with these keys.
fn judged(keys: &str, target: &str) -> Result<Permission, CliError> {
    let text = format!(
        "[target]\nurl = \"http://127.0.0.1:9/a.m3u8\"\n{target}\n[run]\nduration = \"20s\"\n[crowd]\nsize = 3\n{keys}\n"
    );
    let plan = Scenario::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).plan();
    permission(&plan, None, &TlsOptions::default(), &Agents::connect(&plan))
}

fn chat(host: &str) -> String {
    format!("chat = {{ url = \"xmpp+ws://{host}/ws?room=a@b\" }}")
}

fn peers(keys: &str) -> String {
    format!("player = {{ p2p = {{ {keys} }} }}")
}

#[test]
fn chats_trackers_and_hashes_elsewhere_are_refused_before_the_run_as_a_target_is() {
    for (keys, expect) in [
        (
            chat("192.168.7.9:5280"),
            "chat.url of viewers (192.168.7.9:5280): 192.168.7.9 is private and not allowed: add its network to target.allow",
        ),
        (
            peers("tracker = \"wss://192.0.2.8/tracker/socket\""),
            "player.p2p.tracker of viewers (192.0.2.8:443): 192.0.2.8 is public and has not consented",
        ),
        (
            peers("hashes = \"http://[2001:db8::1]/segments-sha256.json\""),
            "player.p2p.hashes of viewers ([2001:db8::1]:80): 2001:db8::1 is public and has not consented",
        ),
        (chat("224.0.0.1"), "chat.url of viewers (224.0.0.1:80): 224.0.0.1 is a multicast address"),
    ] {
        let error = judged(&keys, "").err().unwrap_or_else(|| panic!("{keys}"));
        assert_eq!(error.exit, Exit::Target);
        assert!(error.error.to_string().starts_with(expect), "{}", error.error);
    }
}

#[test]
fn what_is_here_or_in_an_allowed_network_is_permitted() {
    assert!(judged(&chat("127.0.0.1:5280"), "").is_ok());
    assert!(
        judged(&peers("tracker = \"ws://127.0.0.1/t\", hashes = \"http://127.0.0.1/h\""), "")
            .is_ok()
    );
    let allowed = judged(&chat("192.168.7.9:5280"), "allow = [\"192.168.7.0/24\"]");
    assert!(
        allowed.is_ok_and(|permission| permission.is_own_host),
        "the target's clock is that of this host"
    );
}
