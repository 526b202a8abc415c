//! Who may use the bus: NKeys and credentials files (JWT), on a server that knows one user. Keys
//! and configurations are those of `tests/data/fleet`.

use std::path::Path;

use throng_sim::nats::Nats;

use super::{Worker, all_are_there, rows};
use crate::throng::{Stage, plain, run};

fn data(name: &str) -> String {
    format!("{}/tests/data/fleet/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// With the right key the fleet plays; with the wrong one it is told that it may not, and no key.
fn opens(configuration: &str, right: [&str; 2], wrong: [&str; 2]) {
    if !Nats::is_installed() {
        return;
    }
    let configuration = std::fs::read_to_string(Path::new(&data(configuration))).unwrap();
    let nats = Nats::start(&configuration).unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let (bus, target) = (nats.url(), stage.target());
    let [right, wrong] = [right, wrong].map(|[flag, file]| [flag.to_owned(), data(file)]);
    let _worker = Worker::start(&bus, "a", &right.each_ref().map(String::as_str));
    let view = |by: &[String; 2]| {
        let view = ["view", &target, "-n", "2", "--for", "4s", "--fleet", &bus, "--workers", "1"];
        view.iter().map(|word| (*word).to_owned()).chain(by.clone()).collect::<Vec<String>>()
    };
    let words = view(&right);
    let ran = run(None, &words.iter().map(String::as_str).collect::<Vec<_>>()).expect_code(0);
    all_are_there(&rows(&ran), 2);
    let words = [view(&wrong), vec!["--output".into(), "/nowhere/run".into()]].concat();
    let output = plain(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(4) && error.contains("authorization violation"),
        "{error}"
    );
    let seed = std::fs::read_to_string(&wrong[1]).unwrap();
    assert!(!error.contains(seed.trim()), "{error}");
}

#[test]
fn an_nkey_opens_the_bus_and_another_one_does_not() {
    opens("nkey.conf", ["--fleet-nkey", "user.nk"], ["--fleet-nkey", "other.nk"]);
}

#[test]
fn a_credentials_file_opens_the_bus_and_a_key_without_one_does_not() {
    opens("jwt.conf", ["--fleet-creds", "user.creds"], ["--fleet-nkey", "user.nk"]);
}
