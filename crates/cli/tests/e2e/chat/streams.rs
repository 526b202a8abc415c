//! Streams that break, and nicknames that change, on a real Prosody.

use std::time::Duration;

use throng_observation::ChatCounters;
use throng_sim::cut::CutRelay;
use throng_sim::prosody::{ACCOUNTS, ANONYMOUS, Prosody, ROOMS};
use throng_store::RunFolder;

use super::chat;
use crate::throng::{Running, figure};

#[test]
fn visitors_of_prosody_choose_a_nickname_and_everybody_still_hears_them() {
    if !Prosody::is_installed() {
        return;
    }
    let server = Prosody::start("").unwrap();
    let keys = "{ every = \"2s\", nick_change = \"100%\", nick_change_within = \"6s\", vcards = \"none\" }";
    let ran = chat(&server.target("stage"), 10, 14, keys).expect_code(0);
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!(
        (of("nick_changes"), of("messages_missing"), of("reconnects")),
        (10.0, 0.0, 0.0),
        "{ran}"
    );
    // Everybody is told of everybody's change twice: the old name goes, the new one comes.
    let (joins, changes) = (10.0 * 11.0 / 2.0, 10.0 * 2.0 * 10.0);
    assert!(of("presences_received") >= joins + changes, "{ran}");
    assert_eq!(of("occupants_max"), 9.0, "the others, none of them twice: {ran}");
    assert!(ran.stdout.contains("10 nicknames changed"), "{ran}");
}

/// In the request of those that stay.
const SPARED: &str = "who=talker";

const TALKERS: u64 = 2;
/// Of each kind of those that are cut off.
const CUT_OFF: u64 = 3;

/// Participants with the account, anonymous ones, and those that stay and talk.
fn scenario(relay: &CutRelay) -> String {
    let through = |user: &str, domain: &str| {
        let place = relay.address();
        format!("xmpp+ws://{user}{place}/xmpp-websocket?room=stage@{ROOMS}&domain={domain}")
    };
    let (account, anonymous) = (through("ada:secret@", ACCOUNTS), through("", ANONYMOUS));
    let direct = format!("{anonymous}&{SPARED}");
    format!(
        "[target]\nurl = \"{direct}\"\n[run]\nduration = \"22s\"\nwarm_up = \"0s\"\n\
         [[crowd]]\nname = \"talkers\"\nsize = {TALKERS}\nchat = {{ every = \"1s\", vcards = \"none\" }}\n\
         [[crowd]]\nname = \"accounts\"\nsize = {CUT_OFF}\nurl = \"{account}\"\nchat = {{ vcards = \"none\" }}\n\
         [[crowd]]\nname = \"visitors\"\nsize = {CUT_OFF}\nurl = \"{anonymous}\"\nchat = {{ vcards = \"none\" }}\n"
    )
}

/// Over 20 s: a run of 22 s, in which connections are cut and made again.
#[test]
fn accounts_resume_their_stream_on_prosody_and_visitors_come_anew_as_conversejs_does() {
    if !Prosody::is_installed() {
        return;
    }
    let server = Prosody::start_managed().unwrap();
    let relay = CutRelay::start(server.address(), SPARED).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.toml");
    std::fs::write(&file, scenario(&relay)).unwrap();
    let mut running = Running::start(None, &["run", file.to_str().unwrap()]);
    running.when_connected(8);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(relay.cut(), 6);
    let ran = running.wait();
    let summary = ran.summary();
    let of = |key: &str| figure(&summary, &format!("chat.{key}"));
    assert_eq!((of("reconnects"), of("resumes")), (6.0, 3.0), "{ran}\n{}", server.log());
    assert_eq!((of("duplicates"), of("out_of_order")), (0.0, 0.0), "{ran}");
    let run = RunFolder::read(ran.folder()).unwrap();
    // Cohorts have their order in the file.
    let sum = |cohort: u16, count: fn(&ChatCounters) -> u64| -> u64 {
        let rows = run.chat.iter().filter(|row| row.cohort.0 == cohort);
        rows.map(|row| count(&row.counters)).sum()
    };
    let due = |cohort| sum(cohort, |counters| counters.messages_due);
    let missing = |cohort| sum(cohort, |counters| counters.messages_missing);
    assert_eq!([missing(0), missing(1)], [0, 0], "{ran}");
    // What is on its way to visitors at the cut was due to them and never comes: one message of
    // each talker at most. What is said in the seconds without a connection would be more.
    assert!(missing(2) <= TALKERS * CUT_OFF, "{}\n{ran}", missing(2));
    let slowest = |cohort: u16| {
        let rows = run.chat.iter().filter(|row| row.cohort.0 == cohort);
        rows.filter_map(|row| row.delay_us.quantile(1.0)).max().unwrap()
    };
    // What was said in the three seconds without a connection came late to accounts, and is not due
    // to visitors.
    assert!((2_000_000..9_000_000).contains(&slowest(1)), "{}\n{ran}", slowest(1));
    assert!(
        slowest(2) < 2_000_000 && due(2) < due(1),
        "{} {} {}\n{ran}",
        slowest(2),
        due(2),
        due(1)
    );
    assert!(ran.stdout.contains("6 reconnects, 3 of them resumed"), "{ran}");
}
