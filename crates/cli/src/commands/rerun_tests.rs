use std::fs;

use clap::Parser as _;
use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};

use super::*;
use crate::args::{Arguments, Command, ListenAddress, Outputs};

/// The scenario of a run folder, as a rerun reads it.
fn again(folder: &Path, scenario: &str, sets: &[Override]) -> Scenario {
    let asked_for = Scenario::parse_with(scenario, sets).unwrap_or_else(|error| panic!("{error}"));
    let info = RunInfo { scenario: asked_for.to_toml(), ..RunInfo::default() };
    RunFolder::create(folder, &info).unwrap().finish(Ending::Complete, RunTime(1)).unwrap();
    KeptCommand::view(&Common::default()).of(&asked_for, &asked_for.plan()).keep(folder);
    let earlier = Earlier::read(folder).unwrap();
    let kept = Scenario::parse_with(&earlier.asked.scenario, &[])
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kept.plan(), asked_for.plan(), "the same seeds give the same plan");
    kept
}

#[test]
fn the_plan_of_a_rerun_is_the_plan_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let random = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n\
        [[crowd]]\nname = \"a\"\nsize = 30\narrival = { poisson = { rate = \"5/s\", seed = 77 } }\n\
        stay = { mean = \"20s\", seed = 5, rejoin = true }\n\
        [[crowd]]\nname = \"b\"\nsize = 20\narrival = { burst = { size = 5, every = \"2s\" } }\n";
    let set = Override::parse("crowd.a.size=12").unwrap();
    let kept = again(&folder.path().join("random"), random, &[set]);
    assert_eq!(kept.crowd[0].size, 12);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    for entry in fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            again(&folder.path().join(path.file_stem().unwrap()), &text, &[]);
        }
    }
}

#[test]
fn a_rerun_takes_the_outputs_of_a_run_and_files_are_where_it_was_asked() {
    let line = ["throng", "rerun", "first", "--serve", "7090", "--otlp", "http://127.0.0.1:4318"];
    let files = ["--csv", "--junit", "a.xml", "--markdown", "/dev/stdout", "-o", "again"];
    let asked = Arguments::try_parse_from(line.iter().chain(&files)).unwrap().command;
    let Command::Rerun(asked) = asked else { panic!("{asked:?}") };
    let here = std::env::current_dir().unwrap();
    let outputs = asked.outputs.anywhere();
    assert_eq!(outputs.serve, Some(ListenAddress::of_this_machine(7090)));
    assert_eq!((outputs.otlp_traces, outputs.csv), (10, true));
    assert_eq!(outputs.junit, Some(here.join("a.xml")));
    assert_eq!(outputs.markdown.as_deref(), Some(Path::new("/dev/stdout")));
    assert_eq!(outputs.output, Some(here.join("again")));
}

#[test]
fn a_secret_is_asked_for_with_what_is_kept_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let text = "[target]\nurl = \"whep+http://me:S3CRET@127.0.0.1:7080/whep\"\n\
        token = \"S3CRET\"\n[crowd]\nsize = 1\n\
        [[watch]]\nname = \"cam\"\npid = 1\n\
        metrics = [\"http://me:S3CRET@a/m\", \"http://b/m#bearer=env:TOKEN\"]\n\
        [[watch]]\ncommand = [\"srv\", \"--token\", \"S3CRET\", \"--port\", \"80\"]\n\
        [[watch]]\nname = \"far\"\nagent = \"tcp://127.0.0.1:7081\"\ntoken = \"S3CRET\"\n";
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let info = RunInfo { scenario: scenario.to_toml(), ..RunInfo::default() };
    RunFolder::create(&run, &info).unwrap().finish(Ending::Complete, RunTime(1)).unwrap();
    KeptCommand::view(&Common::default()).of(&scenario, &scenario.plan()).keep(&run);
    let earlier = Earlier::read(&run).unwrap();
    let mut flags: Vec<String> =
        earlier.asked.secrets.iter().map(|secret| earlier.again(secret)).collect();
    flags.sort();
    let cam = r#"["http://…@a/m", "http://b/m#bearer=env:TOKEN"]"#;
    let expect = [
        r#"--set 'watch.1.command=["srv", "--token", "…", "--port", "80"]'"#.to_owned(),
        format!("--set 'watch.cam.metrics={cam}'"),
        "--set 'target.url=whep+http://…@127.0.0.1:7080/whep'".to_owned(),
        "--set target.token=SECRET".to_owned(),
        "--set watch.far.token=SECRET".to_owned(),
    ];
    assert!(expect.iter().all(|flag| flags.contains(flag)) && flags.len() == 5, "{flags:#?}");

    // What is given again is not printed, also if a variable has it.
    let given = format!("watch.cam.metrics={}", cam.replace('…', "me:S3CRET"));
    let again = Rerun {
        run,
        print: true,
        set: vec![given, "target.token=S3CRET".into(), "env:URL".into(), "crowd.size=2".into()],
        consent_secret: None,
        outputs: Outputs::default(),
    };
    let line = earlier.command_line(&again, &[]);
    let shown = format!(
        "--set 'watch.cam.metrics={cam}' --set target.token=SECRET --set env:URL --set crowd.size=2"
    );
    assert!(line.ends_with(&shown), "{line}");
}

/// Its watched commands would run, and its browser start, with the rights of who looks at it.
#[test]
fn a_run_of_another_user_is_not_done_again() {
    if !rustix::process::geteuid().is_root() {
        throng_sim::skipped("it gives files to another user, which needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 1\n";
    again(folder.path(), scenario, &[]);
    for name in ["run.db", SCENARIO, "command.json"] {
        let path = folder.path().join(name);
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let refused = Earlier::read(folder.path()).err().unwrap();
        let said = refused.error.to_string();
        assert_eq!(refused.exit, Exit::Usage, "{said}");
        let whose = format!("{name} belongs to user 65534, and throng runs as user 0");
        assert!(said.contains(&whose), "{said}");
        assert!(
            said.contains("are not run. If all that lies there is yours: chown -h 0 /"),
            "{said}"
        );
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    assert!(Earlier::read(folder.path()).is_ok());
}

/// Links to a run of one's own pass any look, and give way to other files before they are read.
#[test]
fn a_folder_that_all_may_write_is_no_run_of_ones_own_whatever_its_links_lead_to() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = tempfile::tempdir().unwrap();
    let (own, open) = (place.path().join("own"), place.path().join("open"));
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 1\n";
    again(&own, scenario, &[]);
    fs::create_dir(&open).unwrap();
    for name in ["run.db", SCENARIO, "command.json"] {
        symlink(own.join(name), open.join(name)).unwrap();
    }
    assert!(KeptCommand::check_is_own(&open).is_ok());
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let said = KeptCommand::check_is_own(&open).unwrap_err().error.to_string();
    assert!(said.contains("can be written by every user of this machine"), "{said}");
    assert!(KeptCommand::check_is_own(&own).is_ok());
    for name in ["run.db", SCENARIO, "command.json"] {
        fs::remove_file(open.join(name)).unwrap();
    }
    assert!(KeptCommand::check_is_own(&open).is_err(), "files may come");
}
