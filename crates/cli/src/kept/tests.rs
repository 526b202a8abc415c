use std::fs;

use throng_observation::RunTime;
use throng_observation::run::{Ending, RunInfo};
use throng_scenario::Scenario;
use throng_store::RunFolder;

use super::*;
use crate::args::Common;

#[test]
fn secrets_are_not_kept_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[target]\nurl = \"whep+http://user:hunter2@127.0.0.1/whep\"\n\
                token = \"s3cret\"\n[crowd]\nsize = 1\n";
    let scenario = Scenario::parse(text).unwrap();
    let common = Common { consent_secret: Some("consent-words".into()), ..Default::default() };
    let asked = KeptCommand::view(&common).of(&scenario, &scenario.plan());
    let run = folder.path().join("run");
    let writer = RunFolder::create(&run, &RunInfo::default()).unwrap();
    writer.finish(Ending::Complete, RunTime(1)).unwrap();
    asked.keep(&run);
    for name in ["command.json", "scenario.toml"] {
        let kept = fs::read_to_string(run.join(name)).unwrap();
        for secret in ["s3cret", "hunter2", "consent-words"] {
            assert!(!kept.contains(secret), "{name} has {secret}: {kept}");
        }
    }
    let mut named = asked.secrets.clone();
    named.sort();
    assert_eq!(named, ["--consent-secret", "target.token", "target.url"]);
    let references = Common { consent_secret: Some("env:CONSENT".into()), ..Default::default() };
    let text = text.replace("user:hunter2@", "").replace("s3cret", "env:TOKEN");
    let scenario = Scenario::parse(&text).unwrap();
    let asked = KeptCommand::view(&references).of(&scenario, &scenario.plan());
    assert!(asked.secrets.is_empty(), "{:?}", asked.secrets);
    assert_eq!(asked.consent_secret.as_deref(), Some("env:CONSENT"));
    for (metrics, secrets) in [
        ("http://h/m?token=hunter2\", \"http://me:hunter2@h/m", &["watch.metrics"][..]),
        ("http://h/m#bearer=hunter2", &["watch.metrics"][..]),
        ("http://h/m#bearer=env:TOKEN", &[][..]),
        (
            "http://h/m\"]\n[[watch]]\ncommand = [\"srv\", \"--token\", \"hunter2",
            &["watch.1.command"][..],
        ),
    ] {
        let text = format!("{text}[[watch]]\npid = 1\nmetrics = [\"{metrics}\"]\n");
        let scenario = Scenario::parse(&text).unwrap();
        let asked = KeptCommand::view(&references).of(&scenario, &scenario.plan());
        assert_eq!(asked.secrets, secrets, "{metrics}");
    }
    let conference = |key: &str| {
        let text = format!(
            "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1\"\n\
             [room]\nadmin_key = \"{key}\"\n[crowd]\nsize = 2\n"
        );
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        KeptCommand::view(&Common::default()).of(&scenario, &scenario.plan())
    };
    let asked = conference("hunter2");
    assert_eq!(asked.secrets, ["room.admin_key"]);
    assert!(!asked.scenario.contains("hunter2"), "{}", asked.scenario);
    assert!(conference("env:ADMIN_KEY").secrets.is_empty());
}
