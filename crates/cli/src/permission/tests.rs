//! Servers that a scenario names beside its target need the same consent, before anything is sent.

use throng_engine::TlsOptions;
use throng_scenario::{ConsentSecret, Plan, Scenario};

use super::judged::{judged, named_policy};
use super::others::{origins, others};
use super::*;
use crate::console::{CliError, Exit};
use crate::watchers::{self, Agents};

/// What the guard says of viewers of a video on loopback, with these keys.
fn judged_here(keys: &str, target: &str) -> Result<Permission, CliError> {
    judged_at("http://127.0.0.1:9/a.m3u8", keys, target)
}

/// The same of a target elsewhere.
fn judged_at(url: &str, keys: &str, target: &str) -> Result<Permission, CliError> {
    let plan = plan_of(url, keys, target);
    permission(&plan, None, &TlsOptions::default(), &Agents::connect(&plan))
}

/// What it says on a host with the addresses 127.0.0.1 and 192.168.7.5, where the names have these
/// addresses.
fn judged_where(plan: &Plan, names: &[(&str, &[&str])]) -> Result<Permission, CliError> {
    let known = |(name, texts): &(&str, &[&str])| ((*name).to_owned(), addresses_of(texts));
    let names = JudgedNames(names.iter().map(known).collect());
    let own = addresses_of(&["127.0.0.1", "192.168.7.5"]);
    judged(plan, None, &TlsOptions::default(), &Agents::connect(plan), (own, names))
}

fn plan_of(url: &str, keys: &str, target: &str) -> Plan {
    let text = format!(
        "[target]\nurl = \"{url}\"\n{target}\n[run]\nduration = \"20s\"\n[crowd]\nsize = 3\n{keys}\n"
    );
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).plan()
}

fn addresses_of(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The policy of a plan on a host with the address 192.168.7.5, before anybody is asked.
fn policy_of(plan: &Plan) -> AddressPolicy {
    let (host, port) = plan.target.host_and_port();
    let own = addresses_of(&["127.0.0.1", "192.168.7.5"]);
    let mut names = JudgedNames::default();
    let addresses = names.resolve(&host, port).ok().unwrap();
    let (others, origins) = (others(plan, &mut names).ok().unwrap(), origins(plan, &mut names));
    named_policy(plan, own, &addresses, others.iter().chain(&origins))
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
        let error = judged_here(&keys, "").err().unwrap_or_else(|| panic!("{keys}"));
        assert_eq!(error.exit, Exit::Target);
        assert!(error.error.to_string().starts_with(expect), "{}", error.error);
    }
}

#[test]
fn the_port_of_a_target_is_watched_only_where_the_target_is_this_host() {
    let plan = |host: &str, watch: &str| {
        let text = format!(
            "[target]\nurl = \"http://{host}/a.m3u8\"\n[crowd]\nsize = 3\n[[watch]]\n{watch}\n"
        );
        Scenario::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).plan()
    };
    let said = |host: &str, watch: &str| {
        let plan = plan(host, watch);
        let is_own = watchers::may_be_own_host(&plan.target);
        watchers::refuse_port_elsewhere(&plan, is_own).err().map(|error| error.error.to_string())
    };
    let refused = said("192.0.2.8:8080", "target = true").unwrap();
    for words in
        ["port 8080 of this host", "192.0.2.8 is no known address", "--port 8080", "agent="]
    {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert!(said("[2001:db8::1]:8080", "target = true").is_some());
    for (host, watch) in [
        ("127.0.0.1:9", "target = true"),
        ("[::1]:9", "target = true"),
        ("localhost:9", "target = true"),
        ("192.0.2.8:8080", "port = 8080"),
    ] {
        assert_eq!(said(host, watch), None, "{host}, {watch}");
    }
    let named = plan("media.example:8080", "target = true");
    assert!(watchers::may_be_own_host(&named.target), "before its name is resolved");
    assert!(watchers::refuse_port_elsewhere(&named, false).is_err(), "it is another host's");
}

#[test]
fn what_is_here_or_in_an_allowed_network_is_permitted() {
    assert!(judged_here(&chat("127.0.0.1:5280"), "").is_ok());
    assert!(
        judged_here(&peers("tracker = \"ws://127.0.0.1/t\", hashes = \"http://127.0.0.1/h\""), "")
            .is_ok()
    );
    let allowed = judged_here(&chat("192.168.7.9:5280"), "allow = [\"192.168.7.0/24\"]");
    assert!(
        allowed.is_ok_and(|permission| permission.is_own_host),
        "the target's clock is that of this host"
    );
}

/// Those of `places` that participants may reach by TCP, those of them that a browser may, and
/// those by UDP.
fn reached<'a>(permission: &Permission, places: &[&'a str]) -> [Vec<&'a str>; 3] {
    let (filter, browser) = (permission.filter(), permission.browser_check());
    let of = |is_permitted: &dyn Fn(SocketAddr) -> bool| {
        let permitted = places.iter().filter(|place| is_permitted(place.parse().unwrap()));
        permitted.copied().collect()
    };
    [
        of(&|to| filter(IpProtocol::Tcp, to)),
        of(&|to| browser(IpProtocol::Tcp, to).is_ok()),
        of(&|to| filter(IpProtocol::Udp, to)),
    ]
}

const LOOPBACK: [&str; 3] = ["127.0.0.1:9200", "127.0.0.1:5280", "[::1]:9200"];
const ELSEWHERE: &str = "allow = [\"192.168.7.0/24\"]";

#[test]
fn a_target_elsewhere_cannot_send_the_crowd_to_this_host() {
    let remote = judged_at("http://192.168.7.9/a.m3u8", "", ELSEWHERE).ok().unwrap();
    assert_eq!(reached(&remote, &LOOPBACK), [[""; 0]; 3]);
    let expect = ["192.168.7.9:22", "192.168.7.8:9"];
    assert_eq!(reached(&remote, &expect), [expect; 3], "its own network was allowed");
    // What the user names to be read is no choice of the target's.
    assert_eq!(remote.source_check()("127.0.0.1".parse().unwrap()), Ok(()));
    let here = judged_here("", "").ok().unwrap();
    assert_eq!(reached(&here, &LOOPBACK), [LOOPBACK; 3]);
    let written = "allow = [\"192.168.7.0/24\", \"127.0.0.0/8\"]";
    let allowed = judged_at("http://192.168.7.9/a.m3u8", "", written).ok().unwrap();
    let expect = ["127.0.0.1:9200", "127.0.0.1:5280"];
    assert_eq!(reached(&allowed, &LOOPBACK), [expect; 3]);
}

#[test]
fn the_network_of_a_target_is_no_consent_of_this_host_in_it() {
    let reached = |url: &str, allow: &str| {
        let policy = policy_of(&plan_of(url, "", allow));
        let places = ["192.168.7.5:9200", "192.168.7.8:9", "127.0.0.1:9200"];
        let is_permitted = |place: &&&str| {
            let to = place.parse().unwrap();
            [IpProtocol::Tcp, IpProtocol::Udp].map(|protocol| policy.permits(protocol, to).is_ok())
                == [true; 2]
        };
        places.iter().filter(is_permitted).copied().collect::<Vec<_>>()
    };
    let elsewhere = "http://192.168.7.9/a.m3u8";
    assert_eq!(reached(elsewhere, ELSEWHERE), ["192.168.7.8:9"]);
    let itself = "allow = [\"192.168.7.0/24\", \"192.168.7.5\"]";
    assert_eq!(reached(elsewhere, itself), ["192.168.7.5:9200", "192.168.7.8:9"]);
    let here = ["192.168.7.5:9200", "127.0.0.1:9200"];
    assert_eq!(reached("http://192.168.7.5/a.m3u8", ""), here, "the target is here");
}

#[test]
fn a_server_that_is_named_here_opens_its_port_to_the_crowd_of_a_target_elsewhere() {
    let chat = judged_at("http://192.168.7.9/a.m3u8", &chat("127.0.0.1:5280"), ELSEWHERE);
    assert_eq!(reached(&chat.ok().unwrap(), &LOOPBACK), [["127.0.0.1:5280"]; 3]);
    for key in [
        "stun = \"stun:127.0.0.1:5280\"",
        "turn = \"turn:127.0.0.1:5280\"\nturn_username = \"u\"\nturn_password = \"p\"",
    ] {
        let target = format!("{ELSEWHERE}\n{key}");
        let named = judged_at("whep+http://192.168.7.9/whep", "", &target).ok().unwrap();
        assert_eq!(reached(&named, &LOOPBACK), [["127.0.0.1:5280"]; 3], "{key}");
    }
}

#[test]
fn an_origin_that_is_named_here_opens_its_port_beside_a_target_elsewhere() {
    let rules = "\"https://cdn.example\" = \"http://127.0.0.1:5280\", \
                 \"https://ads.example\" = \"http://192.168.8.1\"";
    let keys = format!("player = {{ har = \"a.har\", origins = {{ {rules} }} }}");
    let named = judged_at("http://192.168.7.9/a.m3u8", &keys, ELSEWHERE).ok().unwrap();
    assert_eq!(reached(&named, &LOOPBACK), [["127.0.0.1:5280"]; 3]);
    let said = |url: &str| named.host(&Url::parse(url).unwrap());
    assert_eq!(said("http://127.0.0.1:5280/"), Ok(()));
    assert!(said("http://127.0.0.1:9200/").unwrap_err().contains("is this machine"));
    assert!(said("http://192.168.8.1/").unwrap_err().contains("private and not allowed"));
}

#[test]
fn the_run_has_the_addresses_that_were_judged_for_each_host_that_is_named() {
    let keys = format!(
        "{}\n{}",
        chat("127.0.0.1:5280"),
        "player = { har = \"a.har\", origins = { \"https://cdn.example\" = \"http://127.0.0.3\" } }"
    );
    let named = judged_at("http://localhost:9/a.m3u8", &keys, "").ok().unwrap();
    let names = named.names();
    let hosts: Vec<&str> = names.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(hosts, ["localhost", "127.0.0.1", "127.0.0.3"]);
    assert!(names.iter().flat_map(|(_, addresses)| addresses).all(IpAddr::is_loopback));
    assert!(names.iter().all(|(_, addresses)| !addresses.is_empty()));
    // A host whose answer has changed since: what was judged counts.
    let mut named = named;
    named.names = JudgedNames(vec![("cdn.example".into(), addresses_of(&["127.0.0.9"]))]);
    assert_eq!(named.host(&Url::parse("http://cdn.example/").unwrap()), Ok(()));
}

#[test]
fn a_proof_of_media_at_any_port_is_no_consent_for_a_server_beside_the_target() {
    let terms = "tester = lab\ntarget = 192.0.2.8:443\nexpires = 2026-12-31\nmax_users = 7\nmax_bit_rate = 9Mbit/s\n";
    let sealed = ConsentProof::sealed(terms, &ConsentSecret::new([9; 32]), 1_798_000_000).unwrap();
    let proof = ConsentProof::parse(&sealed).unwrap();
    let agents = Agents::connect(&plan_of("http://127.0.0.1/a.m3u8", "", ""));
    let mut named = judged_here("", "").ok().unwrap();
    let mut policy = AddressPolicy::default();
    policy.prove(&proof, "192.0.2.8".parse().unwrap());
    named.policy = Arc::new(policy.clone());
    for (port, is_agreed) in [(443, true), (9200, false)] {
        let plan = plan_of("http://192.0.2.8:1/a.m3u8", &chat(&format!("192.0.2.8:{port}")), "");
        let said =
            others(&plan, &mut JudgedNames::default()).ok().unwrap()[0].judge(&policy, &agents);
        assert_eq!(said.is_ok(), is_agreed, "{port}");
        let url = Url::parse(&format!("http://192.0.2.8:{port}/")).unwrap();
        let of_origin = named.host(&url);
        assert_eq!(of_origin.is_ok(), is_agreed, "{port}");
        for said in [said.err().map(|error| error.error.to_string()), of_origin.err()] {
            let words = "has not agreed to load on tcp port 9200";
            assert_eq!(said.is_some_and(|said| said.contains(words)), !is_agreed, "{port}");
        }
    }
}

#[test]
fn a_name_of_several_machines_gets_its_load_where_it_is_allowed_and_says_where_it_is_not() {
    let plan = plan_of("http://media.example/a.m3u8", "", ELSEWHERE);
    let all = ["192.168.7.5", "127.0.0.1", "192.168.7.9", "192.168.8.1", "203.0.113.7"];
    let named = judged_where(&plan, &[("media.example", &all)]).ok().unwrap();
    let places = all.map(|address| format!("{address}:80"));
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    assert_eq!(reached(&named, &places), [["192.168.7.9:80"]; 3]);
    assert_eq!(named.servers(), ["192.168.7.9:80".parse::<SocketAddr>().unwrap()]);
    assert!(!named.is_own_host());
    let said = named.left_out().join("\n");
    for words in [
        "192.168.7.5 gets no load: 192.168.7.5 is this machine",
        "127.0.0.1 gets no load: 127.0.0.1 is this machine",
        "192.168.8.1 gets no load: 192.168.8.1 is private and not allowed",
        "203.0.113.7 gets no load: 203.0.113.7 is public and has not consented",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!((named.left_out().len(), named.target_addresses()), (4, 5), "{said}");
    for (none, expect) in [
        (&["203.0.113.7", "192.168.7.5"][..], "192.168.7.5 is this machine"),
        (&["192.168.8.1"], "192.168.8.1 is private"),
        (&["203.0.113.7"], "203.0.113.7 is public"),
    ] {
        let error = judged_where(&plan, &[("media.example", none)]).err().unwrap();
        assert_eq!(error.exit, Exit::Target);
        assert!(error.error.to_string().starts_with(expect), "{}", error.error);
    }
}

#[test]
fn a_server_beside_the_target_that_is_several_machines_is_reached_where_it_is_allowed() {
    let plan = plan_of("http://192.168.7.9/a.m3u8", &chat("chat.example:5280"), ELSEWHERE);
    let all: &[&str] = &["127.0.0.1", "192.168.7.8", "192.168.8.1"];
    let named = judged_where(&plan, &[("chat.example", all)]).ok().unwrap();
    let places = ["127.0.0.1:5280", "192.168.7.8:5280", "192.168.8.1:5280"];
    assert_eq!(reached(&named, &places), [["192.168.7.8:5280"]; 3]);
    let said = named.left_out().join("\n");
    for words in ["chat.url of viewers: 127.0.0.1 gets no load", "192.168.8.1 is private"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let none = judged_where(&plan, &[("chat.example", &["192.168.8.1", "192.168.8.2"])]);
    let error = none.err().unwrap().error.to_string();
    assert!(error.starts_with("chat.url of viewers (chat.example:5280): 192.168.8.1"), "{error}");
}
