//! Proofs on servers with a known limit: confirmed, refuted, the same; resources that are shrunk
//! and put back.

mod janus;
mod long;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use throng_sim::lighttpd::Lighttpd;
use throng_sim::namespace::Namespace;
use throng_sim::{not_tested, requires_root, skipped};

use crate::matrix::{said, signal, wait_until};
use crate::throng::{THRONG, figure, plain, started};

/// The file of a proof with its scenario, and a port for its server.
pub(crate) struct Fixture {
    folder: TempDir,
    port: u16,
}

impl Fixture {
    /// `text` is the proof after `scenario`; `{port}` and `{throng}` are replaced in it. Other
    /// tests run at the same time: what they use is no reason to discard a pair.
    pub(crate) fn new(crowd: &str, pairs: u32, text: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let fixture = Self { folder: tempfile::tempdir().unwrap(), port };
        let filled =
            |text: &str| text.replace("{port}", &port.to_string()).replace("{throng}", THRONG);
        std::fs::write(fixture.path("viewers.toml"), filled(crowd)).unwrap();
        let text = format!(
            "scenario = \"viewers.toml\"\npairs = {pairs}\nbusy_difference = 1\n{}",
            filled(text)
        );
        std::fs::write(fixture.path("proof.toml"), text).unwrap();
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.path("out")
    }

    pub(crate) fn start(&self, namespace: Option<&Namespace>, arguments: &[&str]) -> Child {
        let mut command = match namespace {
            Some(namespace) => namespace.command(THRONG),
            None => Command::new(THRONG),
        };
        command.arg("prove").args(arguments);
        started(&mut command)
    }

    fn start_new(&self, namespace: Option<&Namespace>) -> Child {
        let (file, output) = (self.path("proof.toml"), self.output());
        self.start(namespace, &[file.to_str().unwrap(), "--output", output.to_str().unwrap()])
    }

    fn answer(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.output().join("matrix.json")).unwrap())
            .unwrap()
    }

    /// As [`Self::decided`], of servers that serve these shares of the crowd, a cell each: less is
    /// the doing of this machine.
    #[track_caller]
    pub(crate) fn decided_with(&self, ended: &Output, served: &[f64]) -> Value {
        let answer = self.answer();
        for (cell, known) in answer["cells"].as_array().unwrap().iter().zip(served) {
            for run in cell["runs"].as_array().unwrap() {
                let was = figure(run, "figures.served_ratio");
                if was < known - 0.05 {
                    not_tested(&format!(
                        "{was:.2} were served well on a server that serves {known:.2}"
                    ));
                }
            }
        }
        self.decided(ended)
    }

    /// The answer, checked by [`decided`].
    #[track_caller]
    pub(crate) fn decided(&self, ended: &Output) -> Value {
        decided(ended, self.answer())
    }
}

/// `answer` of a proof that ended as it should; the test ends as not tested if this machine was too
/// busy.
#[track_caller]
fn decided(ended: &Output, answer: Value) -> Value {
    let text = said(ended);
    let proofs = answer["proofs"].as_array().unwrap();
    let discarded: Vec<&Value> = proofs
        .iter()
        .flat_map(|proof| proof["pairs"].as_array().unwrap())
        .filter(|pair| !pair["discarded"].is_null())
        .collect();
    if let Some(pair) = discarded.first() {
        let why = pair["discarded"].as_str().unwrap();
        let is_noise = ["the generator was the limit", "processes used", "hypervisor"];
        if is_noise.iter().any(|noise| why.contains(noise)) {
            not_tested(&format!("a pair was discarded: {why}"));
        }
        panic!("{why}\n{text}");
    }
    assert_eq!(ended.status.code(), Some(0), "{text}\n{answer:#}");
    answer
}

/// Viewers of a stage.
pub(crate) fn viewers(count: u32) -> String {
    format!(
        "[target]\nurl = \"whep+http://127.0.0.1:{{port}}/whep\"\n[crowd]\nsize = {count}\narrival = {{ every = \"50ms\" }}\n"
    )
}

/// `[server]` that is a stage with `more` arguments.
pub(crate) fn stage(more: &str, keys: &str) -> String {
    format!(
        "[server]\ncommand = [\"{{throng}}\", \"stage\", \"--listen\", \"127.0.0.1:{{port}}\", {more}]\nready = {{ port = {{port}} }}\n{keys}\n"
    )
}

/// Ten viewers on a server that takes five, whatever it has.
/// 70 s: eight runs, one after the other, each on a new server.
#[test]
fn more_workers_are_refuted_where_another_limit_holds_and_a_placebo_is_the_same() {
    let server = stage(
        "\"--workers\", \"{{workers}}\", \"--max-viewers\", \"5\"",
        "watch = \"none\"\nenv = { VARIANT = \"{{variant}}\" }",
    );
    let text = format!(
        "hold = \"3s\"\n[variables]\nworkers = 1\n{server}[[variant]]\nname = \"one\"\n\
         [[variant]]\nname = \"four\"\nvariables = {{ workers = 4 }}\nrelieves = \"cpu\"\n\
         [[variant]]\nname = \"placebo\"\n"
    );
    let fixture = Fixture::new(&viewers(10), 2, &text);
    let ended = fixture.start_new(None).wait_with_output().unwrap();
    let answer = fixture.decided_with(&ended, &[0.5, 0.5, 0.5]);
    let outcome =
        |index: usize| answer["proofs"][index]["outcome"].as_str().unwrap_or_default().to_owned();
    let text = said(&ended);
    assert_eq!((outcome(0).as_str(), outcome(1).as_str()), ("refuted", "same"), "{text}");
    for proof in answer["proofs"].as_array().unwrap() {
        let control = proof["control"]["ratio"].as_f64().unwrap();
        assert!((control - 1.0).abs() < 0.05, "A/A {control}: {proof:#}\n{text}");
        assert_eq!(proof["pairs"].as_array().unwrap().len(), 2);
    }
    assert!(text.contains("cpu does not limit one"), "{text}");
    // From the folder alone, with the same exit code.
    let remade = plain(&["report", fixture.output().to_str().unwrap()]);
    assert_eq!((remade.status.code(), fixture.answer()), (Some(0), answer), "{}", said(&remade));
    let wrong = plain(&["matrix", "--resume", fixture.output().to_str().unwrap()]);
    assert!(said(&wrong).contains("throng prove --resume"), "{}", said(&wrong));
}

/// A file that leaves open what is measured, of a server that takes five viewers against one that
/// takes twenty: a search of the first finds a crowd that it does not serve, and two pairs of holds
/// decide. Two minutes: a search of a minute or more, and four runs of 7 s, or eight.
#[test]
fn the_crowd_that_is_held_is_found_by_a_search_of_the_baseline() {
    let server = stage("\"--workers\", \"1\", \"--max-viewers\", \"{{most}}\"", "watch = \"none\"");
    let text = format!(
        "hold = \"3s\"\nfind = {{ budget = \"1m\", start = 5, ceiling = 12 }}\n{server}[[variant]]\nname = \"five\"\n\
         variables = {{ most = 5 }}\n[[variant]]\nname = \"twenty\"\nvariables = {{ most = 20 }}\n\
         relieves = {{ finding = \"configured_ceiling\" }}\nmore = 4\n"
    );
    let fixture = Fixture::new(&viewers(2), 4, &text);
    let ended = fixture.start_new(None).wait_with_output().unwrap();
    let text = said(&ended);
    let chosen = std::fs::read_to_string(fixture.output().join("chosen.json")).unwrap();
    let chosen: Value = serde_json::from_str(&chosen).unwrap();
    let Some(users) = chosen["choice"]["hold"]["users"].as_u64() else {
        not_tested(&format!("the search of this machine found no limit of five: {chosen}"));
    };
    assert!((6..=12).contains(&users), "{chosen}");
    let answer = fixture.decided_with(&ended, &[5.0 / users as f64, 1.0]);
    let proof = &answer["proofs"][0];
    assert_eq!(proof["outcome"], "confirmed", "{proof:#}\n{text}");
    assert!(
        answer["notes"][0].as_str().unwrap().starts_with(&format!("held: {users} users; five"))
    );
    let runs = answer["cells"].as_array().unwrap().iter();
    for run in runs.flat_map(|cell| cell["runs"].as_array().unwrap()) {
        let command = run["command"].as_str().unwrap();
        assert!(command.contains(&format!("crowd.size={users}")), "{command}");
    }
    assert!(fixture.output().join("cells/01_variant=five/0/run.db").exists(), "a run of its own");
    let page = std::fs::read_to_string(fixture.output().join("report.html")).unwrap();
    assert!(page.contains(">Proof</a></h2>") && page.contains("confirmed"));
    let output = fixture.output();
    let place = ["prove", "--resume", output.to_str().unwrap()];
    let resumed = |more: &[&str]| said(&plain(&[&place[..], more].concat()));
    let planned = resumed(&["--plan"]);
    assert!(planned.contains(&format!("held: {users} users")), "{planned}");
    let again = resumed(&[]);
    assert!(!again.contains("[search of five]") && again.contains("confirmed"), "{again}");
}

/// Six viewers on a line that is enough for them, and not when it is shrunk; in a namespace, whose
/// line nobody else has. The first throng is killed while the line is shrunk. 70 s: eight runs, one
/// after the other, each on a new server.
#[test]
fn a_shrunk_line_is_confirmed_and_put_back_even_after_a_kill() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::new("prove").unwrap();
    let shrink =
        "[shrink]\nresource = \"network\"\nto = 0.3\ninterface = \"lo\"\nrate = \"14Mbit/s\"\n";
    let text =
        format!("hold = \"3s\"\n{}{shrink}", stage("\"--workers\", \"1\"", "watch = \"none\""));
    let fixture = Fixture::new(&viewers(6), 2, &text);
    let line = || {
        let shown = namespace.command("tc").args(["qdisc", "show", "dev", "lo"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let mut child = fixture.start_new(Some(&namespace));
    wait_until("the line is limited", || line().contains("tbf"));
    signal(&child, "KILL");
    child.wait().unwrap();
    assert!(line().contains("tbf"), "nobody could undo it");
    let output = fixture.output();
    let resumed = fixture.start(Some(&namespace), &["--resume", output.to_str().unwrap()]);
    let ended = resumed.wait_with_output().unwrap();
    let text = said(&ended);
    if text.contains("the line of lo cannot be limited") {
        skipped("this kernel has no token bucket filter");
        return;
    }
    assert!(text.contains("this folder left this machine changed"), "{text}");
    assert!(!line().contains("tbf"), "{}", line());
    let answer = fixture.decided(&ended);
    let [accused, placebo] = [0, 1].map(|index| &answer["proofs"][index]);
    assert_eq!(
        (&accused["outcome"], &placebo["outcome"]),
        (&"confirmed".into(), &"same".into()),
        "{text}"
    );
    assert_eq!(accused["shrink"]["resource"], "network");
    assert_eq!(placebo["shrink"]["is_placebo"], true);
    assert!(accused["effect"]["ratio"].as_f64().unwrap() < 0.5, "{accused:#}");
}

/// A second proof of the same line is refused while the first one shrinks it; a filter that is
/// removed by hand spoils the run, which says so. 15 s: a run until it fails, and what is refused.
#[test]
fn a_line_is_shrunk_by_one_proof_and_is_seen_when_it_is_not_as_it_was() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::new("alone").unwrap();
    let shrink =
        "[shrink]\nresource = \"network\"\nto = 0.3\ninterface = \"lo\"\nrate = \"14Mbit/s\"\n";
    let text =
        format!("hold = \"3s\"\n{}{shrink}", stage("\"--workers\", \"1\"", "watch = \"none\""));
    let [first, second] = [0; 2].map(|_| Fixture::new(&viewers(2), 2, &text));
    let tc = |arguments: &[&str]| {
        let shown = namespace.command("tc").args(arguments).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let line = || tc(&["qdisc", "show", "dev", "lo"]);
    let running = first.start_new(Some(&namespace));
    let record = || {
        let cells = std::fs::read_dir(first.output().join("cells")).into_iter().flatten().flatten();
        let mut files = cells.map(|cell| cell.path().join("1/record.json"));
        files.find_map(|file| std::fs::read_to_string(file).ok())
    };
    wait_until("the line is limited, or cannot be", || {
        line().contains("tbf") || record().is_some()
    });
    if !line().contains("tbf") {
        signal(&running, "INT");
        running.wait_with_output().unwrap();
        skipped("this kernel has no token bucket filter");
        return;
    }
    let refused = second.start_new(Some(&namespace)).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("another throng shrinks the line of lo"), "{text}");
    assert!(!second.output().exists(), "{text}");
    assert!(line().contains("tbf"), "the filter of the first stays: {}", line());
    tc(&["qdisc", "del", "dev", "lo", "root"]);
    wait_until("the run ended", || record().is_some());
    signal(&running, "INT");
    let ended = running.wait_with_output().unwrap();
    let record = record().unwrap();
    assert!(record.contains("somebody else changed the line of lo"), "{record}\n{}", said(&ended));
    assert!(record.contains("and is no filter"), "{record}");
}

/// A folder that another user has filled: neither its journal nor its files are run.
#[test]
fn a_proof_of_another_user_is_not_continued() {
    let fixture = Fixture::new(&viewers(2), 2, "hold = \"2s\"\n");
    let output = fixture.output();
    let path = |name: &str| output.join(name);
    std::fs::create_dir(&output).unwrap();
    std::fs::copy(fixture.path("proof.toml"), path("matrix.toml")).unwrap();
    std::fs::copy(fixture.path("viewers.toml"), path("scenario.toml")).unwrap();
    let options = serde_json::json!({
        "file": fixture.path("proof.toml"),
        "options": { "kind": "proof", "set": [], "allow_target": [], "threads": null },
    });
    std::fs::write(path("options.json"), options.to_string()).unwrap();
    let undo = serde_json::json!({
        "change": 0,
        "undo": { "command": { "words": ["touch", path("undone")], "cwd": output } },
    });
    std::fs::write(path("journal.jsonl"), format!("{undo}\n")).unwrap();
    let place = output.to_str().unwrap();
    let is_refused = |expect: &str| {
        for flag in ["--resume", "--undo"] {
            let ended = plain(&["prove", flag, place]);
            assert_eq!(ended.status.code(), Some(2), "{flag}: {}", said(&ended));
            assert!(said(&ended).contains(expect), "{flag}: {}", said(&ended));
            assert!(!path("undone").exists(), "{flag}");
        }
    };
    if requires_root() {
        for stranger in ["journal.jsonl", "options.json", "matrix.toml"] {
            std::os::unix::fs::chown(path(stranger), Some(4711), None).unwrap();
            is_refused(&format!("{stranger} belongs to user 4711"));
            is_refused("If all that lies there is yours: chown -h 0 /");
            std::os::unix::fs::chown(path(stranger), Some(0), None).unwrap();
        }
        std::os::unix::fs::chown(&output, Some(4711), None).unwrap();
        is_refused("belongs to user 4711");
        std::os::unix::fs::chown(&output, Some(0), None).unwrap();
    }
    let mode =
        |mode: u32| <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode);
    std::fs::set_permissions(&output, mode(0o777)).unwrap();
    is_refused("can be written by every user of this machine");
    std::fs::set_permissions(&output, mode(0o755)).unwrap();
    let undone = plain(&["prove", "--undo", place]);
    assert_eq!(undone.status.code(), Some(0), "{}", said(&undone));
    assert!(path("undone").exists() && said(&undone).contains("nothing is left changed"));
}

/// Ten viewers of ten films on a disk that reads less than they need, and in memory.
/// 70 s: ten films are made, and four runs follow, each after 5 s of an idle server.
#[test]
fn films_in_memory_for_films_on_a_slow_disk_confirm_the_disk() {
    if !requires_root() || !Lighttpd::is_installed() {
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let films = made.path().to_str().unwrap();
    let media = [
        "media",
        "make",
        "--bitrate",
        "1M",
        "--count",
        "10",
        "--seconds",
        "20",
        "--size",
        "320x180",
    ];
    let media = plain(&[&media[..], &["--output", films]].concat());
    if !media.status.success() {
        skipped("ffmpeg makes no films (scripts/setup.sh test)");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/campus-study/storage.sh");
    let setup = |kind: &str| {
        format!(
            "setup = [{{ run = [\"sh\", \"{script}\", \"up\", \"{kind}\", \"{films}\", \"10\", \"{{{{dir}}}}/films\"], \
             undo = [\"sh\", \"{script}\", \"down\", \"{{{{dir}}}}/films\"] }}]\n"
        )
    };
    let text = format!(
        "hold = \"5s\"\n[server]\ncommand = [\"/usr/sbin/lighttpd\", \"-D\", \"-f\", \"{{{{dir}}}}/lighttpd.conf\"]\n\
         ready = {{ port = {{port}} }}\nfile = [{{ template = \"lighttpd.conf.in\", path = \"{{{{dir}}}}/lighttpd.conf\" }}]\n\
         [[variant]]\nname = \"disk\"\nserver = {{ disk = {{ path = \"{{{{dir}}}}/films\", read = \"6Mbit/s\" }} }}\n{}\
         [[variant]]\nname = \"tmpfs\"\nrelieves = \"disk\"\n{}",
        setup("disk"),
        setup("tmpfs")
    );
    let crowd = "[target]\nurl = \"http://127.0.0.1:{port}/movie-{stream}.mp4\"\n[crowd]\nsize = 10\nstreams = 10\n\
                 arrival = { every = \"50ms\" }\nplayer = { buffer = \"2s\" }\n";
    let fixture = Fixture::new(crowd, 2, &text);
    let configuration = format!(
        "server.bind = \"127.0.0.1\"\nserver.port = {}\nserver.document-root = \"{{{{dir}}}}/films\"\n\
         server.errorlog = \"{{{{dir}}}}/error.log\"\nmimetype.assign = ( \".mp4\" => \"video/mp4\" )\n",
        fixture.port
    );
    std::fs::write(fixture.path("lighttpd.conf.in"), configuration).unwrap();
    let ended = fixture.start_new(None).wait_with_output().unwrap();
    let text = said(&ended);
    for missing in ["no loop device", "cannot be mounted", "control group"] {
        if text.contains(missing) {
            skipped(&format!("{missing}: a slow disk cannot be made here"));
            return;
        }
    }
    let answer = fixture.decided(&ended);
    let proof = &answer["proofs"][0];
    assert_eq!(
        (&proof["outcome"], &proof["relieves"]),
        (&"confirmed".into(), &"disk".into()),
        "{text}"
    );
    if answer["cells"][0]["finding"].is_null() {
        not_tested("other tests used this machine's disks, so that no run names the slow one");
    }
    assert_eq!(answer["cells"][0]["finding"], "disk_read", "{proof:#}\n{text}");
    assert_eq!(proof["finding"], Value::Null, "{proof:#}");
}

#[test]
fn a_proof_is_checked_before_anything_starts() {
    let server = stage("\"--workers\", \"1\"", "");
    for (text, arguments, expect) in [
        (format!("hold = \"2s\"\n{server}"), &[][..], "there is nothing to compare"),
        (format!("hold = \"2s\"\n{server}"), &["--shrink", "memory"], "[server] has no `memory`"),
        (
            format!("hold = \"2s\"\n{server}"),
            &["--shrink", "cups"],
            "no resource that can be shrunk",
        ),
        (
            format!(
                "hold = \"2s\"\n{server}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = {{ \"crowd.sise\" = 3 }}\n"
            ),
            &[],
            "unknown key `sise`",
        ),
    ] {
        let fixture = Fixture::new(&viewers(2), 2, &text);
        let (file, output) = (fixture.path("proof.toml"), fixture.output());
        let place = ["prove", file.to_str().unwrap(), "--output", output.to_str().unwrap()];
        let ended = plain(&[&place[..], arguments].concat());
        assert_eq!(ended.status.code(), Some(2), "{}", said(&ended));
        assert!(said(&ended).contains(expect), "{expect}\n{}", said(&ended));
        assert!(!output.exists());
    }
    let fixture = Fixture::new(&viewers(2), 2, &format!("hold = \"2s\"\n{server}"));
    let planned = plain(&[
        "prove",
        fixture.path("proof.toml").to_str().unwrap(),
        "--plan",
        "--shrink",
        "cpu",
    ]);
    let text = said(&planned);
    assert!(
        planned.status.success() && text.contains("2 variants, 2 pairs each, 8 runs"),
        "{text}"
    );
    assert!(
        text.contains("variant=cpu-at-0.8") && text.contains("variant=nofile-at-0.8"),
        "{text}"
    );
}
