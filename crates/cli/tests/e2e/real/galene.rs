//! Galène: publishers by WHIP into a room, and its chat by a template.

use std::net::Ipv4Addr;

use throng_sim::namespace::Namespace;
use throng_sim::real::galene::{self, PORT, PROGRAM};

use super::can_run;
use super::table::{self, Row};
use crate::throng::{Running, figure, run};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 5, 1);

const CHAT: &str = r#"
[crowd]
size = 5
arrival = { every = "100ms" }
[crowd.chat]
every = "2s"
[crowd.chat.template]
room = "room"
join = [
  { send = '{"type":"handshake","version":["2"],"id":"{nick}"}', expect = '"handshake"' },
  { send = '{"type":"join","kind":"join","group":"{room}","username":"{nick}","password":""}', expect = '"kind":"join"' },
]
say = '{"type":"chat","source":"{nick}","username":"{nick}","dest":"","value":"{text}"}'
pong = { on = '{"type":"ping"', send = '{"type":"pong"}' }
keep_alive = { every = "15s", send = '{"type":"ping"}', expect = '"pong"' }
refused = ['"kind":"fail"', '"type":"usermessage","kind":"error"']
kicked = '"kind":"kicked"'
[run]
duration = "10s"
warm_up = "0s"
"#;

/// Twenty seconds: a crowd that publishes, and one that chats while it is watched.
#[test]
fn galene_takes_publishers_by_whip_and_passes_on_its_chat() {
    if !can_run(PROGRAM) {
        return;
    }
    let namespace = Namespace::with_veth("galene", ADDRESS).unwrap();
    let server = galene::start(&namespace, ADDRESS).unwrap();
    let whip = format!("whip+http://{ADDRESS}:{PORT}/group/room/.whip");
    let publish = ["view", &whip, "--set", "crowd.subscribe=none", "-n", "3", "--for", "6s"];
    let published = Running::start(Some(&namespace), &publish).wait().expect_code(0);
    let summary = published.summary();
    assert_eq!(figure(&summary, "participants.connected"), 3.0, "{published}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{published}\n{}", server.log());
    // It counts no bytes that can be asked for, and nothing but its own clients plays them.
    assert!(figure(&summary, "sent.bps") > 1e5, "{published}\n{}", server.log());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.toml");
    let head = format!("[target]\nurl = \"chat+ws://{ADDRESS}:{PORT}/ws\"\n");
    std::fs::write(&file, head + CHAT).unwrap();
    let watch = format!("pid={}", server.pid());
    let chatted = run(Some(&namespace), &["run", file.to_str().unwrap(), "--watch", &watch]);
    let chatted = chatted.expect_code(0);
    let summary = chatted.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!((of("joined.reached"), of("reconnects")), (5.0, 0.0), "{chatted}");
    assert_eq!((of("messages_missing"), of("out_of_order")), (0.0, 0.0), "{chatted}");
    assert!(of("messages_sent") > 10.0, "{chatted}");
    assert!(summary["bottleneck"].is_null(), "nothing limits it\n{chatted}");
    let rows = [
        Row::said("WHIP", "takes what publishers send"),
        Row::said("chat by template", "passes on each message"),
    ];
    table::has("Galène", table::Part::Main, &rows);
}
