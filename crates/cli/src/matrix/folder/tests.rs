use super::super::options::Kind;
use super::records::RECORD;
use super::*;

/// The folder of a proof with two variants, whose file is in `place` with `scenario`.
fn proof(place: &Path, scenario: &str) -> (MatrixPlan, MatrixFolder) {
    let file = place.join("proof.toml");
    std::fs::write(place.join("viewers.toml"), scenario).unwrap();
    let variants = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    std::fs::write(&file, format!("scenario = \"viewers.toml\"\nhold = \"5s\"\n{variants}"))
        .unwrap();
    let options = Options { kind: Kind::Proof, is_sequential: true, ..Options::default() };
    let plan = MatrixPlan::read(&file, options).unwrap_or_else(|stop| panic!("{:#}", stop.error));
    let folder = MatrixFolder::create(&place.join("out"), &plan)
        .unwrap_or_else(|stop| panic!("{:#}", stop.error));
    (plan, folder)
}

/// A test that waits for a writer does not end.
#[test]
fn pipes_and_links_at_the_names_of_its_files_are_not_read() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = MatrixFolder { path: place.path().to_owned() };
    std::fs::write(place.path().join(DECIDED), "{\"pairs\":3}").unwrap();
    assert_eq!(folder.decided(), Some(3));
    std::fs::rename(place.path().join(DECIDED), outside.path().join("a")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("a"), place.path().join(DECIDED)).unwrap();
    assert_eq!(folder.decided(), None);
    for name in [RECORD, CHOSEN, SCENARIO] {
        let made = std::process::Command::new("mkfifo").arg(place.path().join(name)).status();
        assert!(made.unwrap().success());
        let error = folder.text(name).unwrap_err().error.to_string();
        assert!(error.ends_with("is no ordinary file"), "{error}");
    }
}

/// A folder of another user names them, and a report reads them.
#[test]
fn the_files_that_a_folder_names_are_no_pipes() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
    let (_, folder) = proof(place.path(), scenario);
    let (named, moved) = (place.path().join("viewers.toml"), place.path().join("moved.toml"));
    std::fs::rename(&named, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &named).unwrap();
    assert!(folder.stored_plan().is_ok(), "who names a link means where it leads");
    std::fs::remove_file(&named).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&named).status().unwrap().success());
    let error = folder.stored_plan().map(drop).unwrap_err().error.to_string();
    assert!(error.ends_with("viewers.toml: is no ordinary file"), "{error}");
}

#[test]
fn a_copy_without_secrets_is_not_run_in_place_of_its_file() {
    let place = tempfile::tempdir().unwrap();
    let scenario =
        "[target]\nurl = \"whep+http://me:S3CRET@127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
    let (plan, folder) = proof(place.path(), scenario);
    assert!(folder.plan(&[]).is_ok(), "its file has all");
    std::fs::remove_file(&plan.file).unwrap();
    let refused = folder.plan(&[]).map(drop).unwrap_err().error.to_string();
    let flag = "--set 'target.url=whep+http://…@127.0.0.1:7080/whep'";
    assert!(refused.contains(flag), "{refused}");
    assert!(folder.stored_plan().is_ok(), "a report needs no secrets");
    let again = "target.url=whep+http://me:S3CRET@127.0.0.1:7080/whep".to_owned();
    assert!(folder.plan(&[again]).is_ok());
}

#[test]
fn lists_with_secrets_are_given_again_when_the_file_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n\
        [[watch]]\ncommand = [\"server\", \"--token\", \"S3CRET\"]\n\
        metrics = [\"http://me:S3CRET@h/m\", \"http://me:S3CRET@h/n\"]\n";
    let (plan, folder) = proof(place.path(), scenario);
    std::fs::remove_file(&plan.file).unwrap();
    let refused = folder.plan(&[]).map(drop).unwrap_err().error.to_string();
    let flag = r#"--set 'watch.metrics=["http://…@h/m", "http://…@h/n"]'"#;
    assert!(refused.contains(flag), "{refused}");
    let metrics = r#"watch.metrics=["http://me:S3CRET@h/m", "http://me:S3CRET@h/n"]"#;
    for (command, is_same) in [
        (r#"watch.command=["server", "--token", "S3CRET"]"#, true),
        (r#"watch.command=["other", "--token", "S3CRET"]"#, false),
        (r#"watch.command=["server", "--token", "…"]"#, false),
        (r#"watch.command=["S3CRET"]"#, false),
    ] {
        let given = [metrics, command].map(str::to_owned);
        assert_eq!(folder.plan(&given).is_ok(), is_same, "{command}");
    }
    assert!(folder.plan(&[metrics.to_owned()]).is_err(), "the command is missing");
}

/// A number behind a flag that is named like a secret's was hidden.
#[test]
fn a_matrix_of_a_version_that_hid_more_is_continued() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n\
        [[watch]]\ncommand = [\"server\", \"--max-keys\", \"5\"]\n";
    let (plan, folder) = proof(place.path(), scenario);
    for (kept, is_same) in [
        (scenario.replace("\"5\"]", "\"…\"]"), true),
        (scenario.replace("size = 5", "size = 6"), false),
    ] {
        std::fs::write(folder.path.join(SCENARIO), &kept).unwrap();
        assert_eq!(folder.check_unchanged(&plan).is_ok(), is_same, "{kept}");
    }
}
