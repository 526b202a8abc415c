//! What pages and scripts say of the tests is true: each test that a table of promises names is
//! there, and a proof that was skipped is no pass.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn each_test_that_a_promise_or_a_verdict_names_is_there() {
    let root = root();
    let sources = ["crates", "ring", "lab"].into_iter().flat_map(|part| sources(&root.join(part)));
    let known: BTreeSet<String> =
        sources.flat_map(|file| tests_of(&std::fs::read_to_string(file).unwrap())).collect();
    for page in ["docs/security.md", "docs/verdicts.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let (named, without) = named(&text);
        assert!(without.is_empty(), "{page} has rows that name no test: {without:#?}");
        assert!(named.len() > 100, "{page}: the tables have another form: {} names", named.len());
        let missing: Vec<&String> = named.difference(&known).collect();
        assert!(missing.is_empty(), "{page} names tests that are not there: {missing:#?}");
    }
}

#[test]
fn names_of_tests_are_found_in_tables_of_tests_alone() {
    let page = "| Promise | Test |\n|---|---|\n| `not_this_one` | `one_is_kept` (e2e), throng-a \
                `b::two_of_them`, `scripts/a_b_c.sh`, plant `task_limit` |\n\n`not_that_one`\n\n\
                | A | Excluded by |\n|---|---|\n| a | `nor_this_one` |\n\n\
                | A | Test |\n|---|---|\n| none | plant `task_limit` |\n| as above | the same |\n";
    let (tests, without) = named(page);
    assert_eq!(Vec::from_iter(tests), ["one_is_kept", "two_of_them"]);
    assert_eq!(without, ["| none | plant `task_limit` |"]);
}

#[test]
fn a_function_is_a_test_by_its_attribute_alone() {
    let source = "#[test]\npub fn a_b(x: u8) {}\n\nfn none() {\n    #[test]\n    #[ignore]\n    // Why.\n    \
                  fn c() {}\n}\n\n#[tokio::test(flavor = \"a\")]\nasync fn d<T>() {}\n\
                  fn nor_this() {}\n#[cfg(test)]\nfn nor_that() {}\n// #[test]\n// fn of";
    assert_eq!(tests_of(source), ["a_b", "c", "d"]);
}

/// The tests in the last columns of tables that call it so, and the rows there that have none.
fn named(page: &str) -> (BTreeSet<String>, Vec<&str>) {
    let (mut all, mut without, mut is_of_tests) = (BTreeSet::new(), Vec::new(), None);
    for line in page.lines() {
        if !line.starts_with('|') {
            is_of_tests = None;
            continue;
        }
        let last = line.trim_matches('|').rsplit(" | ").next().unwrap_or_default().trim();
        if *is_of_tests.get_or_insert(last == "Test") {
            let names: Vec<_> = last.split('`').skip(1).step_by(2).filter_map(test_name).collect();
            // The head, the line below it, and what the row above has proved.
            let needs_none = last == "Test" || last == "the same" || line.starts_with("|---");
            without.extend((names.is_empty() && !needs_none).then_some(line));
            all.extend(names);
        }
    }
    (all, without)
}

/// Of `throng-report module::name_of_a_test`; keys and plants are shorter, and paths have slashes.
fn test_name(code: &str) -> Option<String> {
    let name = code.rsplit([' ', ':']).next()?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_name && name.matches('_').count() >= 2).then(|| name.to_owned())
}

/// The names of the functions of a source that have an attribute which makes them tests:
/// `#[test]`, or one of a library that ends so or has arguments.
fn tests_of(text: &str) -> Vec<String> {
    let (mut tests, mut is_test) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(name) = function_name(line) {
            tests.extend(is_test.then(|| name.to_owned()));
        }
        // Attributes of one function are not parted by code or by an empty line.
        let ends_item = line.is_empty() || line.ends_with(['{', '}', ';']);
        let is_its = line.starts_with("#[") && (line.contains("test]") || line.contains("test("));
        is_test = !ends_item && (is_test || is_its);
    }
    tests
}

/// The name of the function that begins in a line.
fn function_name(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, after) = rest.split_at(end);
    (!before.starts_with("//") && after.starts_with(['(', '<'])).then_some(name)
}

/// Source files below a folder, without what cargo builds there.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.join("CACHEDIR.TAG").exists() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// `bash` at the root of the repository, as the first script.
fn bash(arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.args(arguments).current_dir(root()).env_remove("THRONG_STEPS");
    command
}

#[test]
fn a_step_that_was_skipped_is_told_from_one_that_passed() {
    let script = "source scripts/steps.sh; skips() { return 77; }; fails() { return 3; }; \
                  slow() { sleep 0.2; }; step some each slow skips slow; step all slow; \
                  each skips fails slow || echo \"ended with $?\"";
    let ran = bash(&["-euc", script]).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}");
    for expect in ["  some (skipped, or a part of it)\n", "  all\n", "ended with 3\n"] {
        assert!(said.contains(expect), "{expect}: {said}");
    }
}

#[test]
fn a_proof_without_a_nightly_toolchain_ends_as_skipped() {
    let folder = tempfile::tempdir().unwrap();
    // Stable cargo does all that it is asked.
    let stable = "case $1 in +*) exit 1 ;; esac";
    for (name, script) in [("cargo", stable), ("rustc", "echo host: x86_64-unknown-linux-gnu")] {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    for words in [
        &["ring/scripts/miri.sh"][..],
        &["ring/scripts/sanitizers.sh"],
        &["scripts/net.sh", "miri"],
        &["scripts/net.sh", "address", "thread"],
        &["scripts/fuzz.sh"],
    ] {
        let ran = bash(words).env("PATH", &path).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status.code(), Some(77), "{words:?}: {said}");
        assert!(said.contains("skipped"), "{words:?}: {said}");
    }
}
