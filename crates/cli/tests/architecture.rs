//! ARCHITECTURE.md is true: its crate list and dependency table match the manifests, and pure
//! crates stay pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Knows = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Dependencies of each crate under `[dependencies]`; test-only ones are free.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let mut crates = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest: toml::Table =
            std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(manifest["package"]["name"].as_str(), Some(format!("throng-{name}").as_str()));
        let dependencies = manifest["dependencies"].as_table().unwrap().keys().cloned().collect();
        crates.insert(name, dependencies);
    }
    crates
}

fn ours(dependencies: &BTreeSet<String>) -> BTreeSet<String> {
    dependencies.iter().filter_map(|d| d.strip_prefix("throng-")).map(str::to_owned).collect()
}

/// The rows of the `| crate | knows |` table.
fn map() -> Knows {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text
        .split("| crate | knows |\n|---|---|\n")
        .nth(1)
        .expect("the table is in ARCHITECTURE.md");
    table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let knows =
                cells[1].split(',').map(str::trim).filter(|k| !k.is_empty()).map(str::to_owned);
            (cells[0].to_owned(), knows.collect())
        })
        .collect()
}

#[test]
fn the_map_equals_the_manifests() {
    let territory: Knows =
        manifests().iter().map(|(name, deps)| (name.clone(), ours(deps))).collect();
    assert_eq!(map(), territory);
}

#[test]
fn every_crate_has_its_paragraph_and_invariant() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for name in manifests().keys() {
        let paragraph = text
            .split_once(&format!("- **{name}** ("))
            .and_then(|(_, rest)| rest.split("\n- **").next())
            .unwrap_or_else(|| panic!("{name} has no paragraph in ARCHITECTURE.md"));
        assert!(paragraph.contains("*Invariant:*"), "{name} has no invariant in ARCHITECTURE.md");
    }
}

#[test]
fn pure_crates_know_no_io() {
    const IO: [&str; 9] = [
        "tokio",
        "mio",
        "socket2",
        "libc",
        "hyper",
        "rusqlite",
        "tokio-tungstenite",
        "nix",
        "rustix",
    ];
    let manifests = manifests();
    for name in ["observation", "analysis", "scenario", "media", "protocol", "report"] {
        let impure: Vec<_> = manifests[name].iter().filter(|d| IO.contains(&d.as_str())).collect();
        assert!(impure.is_empty(), "{name} is pure but depends on {impure:?}");
    }
}

/// Messages contain no Rust debug output: `Some(1008)` or `None` shows how a value is stored, not
/// what it means.
#[test]
fn nothing_that_is_said_shows_how_it_is_held() {
    let root = root();
    for file in ["crates", "ring/core", "ring/c"]
        .into_iter()
        .flat_map(|folder| rust_files(&root.join(folder)))
    {
        let path = file.strip_prefix(&root).unwrap().to_string_lossy();
        let is_said =
            path.contains("/src/") && !path.starts_with("crates/sim/") && !path.contains("test");
        if !is_said {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in before_tests(&text).lines().enumerate() {
            let is_debug = line.contains(":?}") || line.contains(":#?}");
            let is_checked = line.trim_start().starts_with("//") || line.contains("assert");
            assert!(!is_debug || is_checked, "{path}:{}: {}", number + 1, line.trim());
        }
    }
}

/// Nobody can show the secrets of a URL who has no other than throng's own: only what sends one, or
/// tells something apart by it, has it in clear, and is a file or folder that stands here.
#[test]
fn a_url_is_in_clear_only_where_it_is_sent() {
    const OWN: &str = "crates/observation/src/shown_url.rs";
    const CLEAR: [(&str, &str); 28] = [
        ("crates/cli/src/canary/page_config.rs", "browsers join by it"),
        ("crates/cli/src/exporter/otlp/collector.rs", "the path of a collector"),
        ("crates/cli/src/fleet/manifest/mod.rs", "a password is refused, a user is kept"),
        ("crates/cli/src/matrix/run/server.rs", "the request by which a server is ready"),
        ("crates/engine/src/sockets/websocket.rs", "requests for WebSockets"),
        ("crates/fleet/src/bus/mod.rs", "the login to a bus"),
        ("crates/protocol/src/chat/event_stream/link.rs", "a token is sought in a path"),
        ("crates/protocol/src/factory/chat.rs", "rooms of different servers are told apart"),
        ("crates/protocol/src/ingest/place.rs", "application, key and stream id"),
        ("crates/protocol/src/participant/fetches.rs", "requests of HTTP"),
        ("crates/protocol/src/peertube/calls.rs", "Referer"),
        ("crates/protocol/src/peertube/visitor.rs", "names of videos and swarms"),
        ("crates/protocol/src/player/download/cookies.rs", "a cookie is for a path"),
        ("crates/protocol/src/player/download/cors.rs", "Referer"),
        ("crates/protocol/src/player/lane/segment_download.rs", "files are told apart"),
        ("crates/protocol/src/player/manifest/hls.rs", "variables that are in the query"),
        ("crates/protocol/src/player/manifest/playlist.rs", "directives go into the query"),
        ("crates/protocol/src/player/manifest/rendition_report.rs", "playlists are told apart"),
        ("crates/protocol/src/player/p2p/hashes/list.rs", "a list has names of segments"),
        ("crates/protocol/src/player/viewer/mod.rs", "an ending tells the format"),
        ("crates/protocol/src/player/viewer/peers.rs", "swarms are told apart"),
        ("crates/protocol/src/recognition/given.rs", "a path is asked, and written into a file"),
        ("crates/protocol/src/rtsp/client.rs", "requests of RTSP"),
        ("crates/protocol/src/signalling/livekit/config.rs", "the query of a WebSocket"),
        ("crates/protocol/src/signalling/ome.rs", "a relay is asked for in the query"),
        ("crates/scenario/src/har/", "what was recorded is repeated"),
        ("crates/scenario/src/target/", "a target is read, and written in its own way"),
        ("crates/watch/src/scrape/fetch.rs", "requests of scrapes"),
    ];
    let root = root();
    let mut clear = BTreeSet::new();
    for file in rust_files(&root.join("crates")) {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if path == OWN || !path.contains("/src/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = before_tests(&text);
        assert!(!names_other_url(code), "{path}: a URL is `throng_observation::Url`");
        if code.contains("in_clear") {
            let place = CLEAR.iter().find(|(place, _)| path.starts_with(place));
            clear.insert(place.map_or(path, |(place, _)| (*place).to_owned()));
        }
    }
    let expect: BTreeSet<String> = CLEAR.map(|(place, _)| place.to_owned()).into_iter().collect();
    assert_eq!(clear, expect);
}

/// Whether code names the type of the crate `url`, by itself or in a list, or takes all of that
/// crate or another name for it, by which the type could be named unseen.
fn names_other_url(code: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_between = |c: char| !is_of_word(c) && c != '*';
    let is_renamed = code.lines().map(str::trim_start).any(|line| {
        let renames = ["use url as ", "extern crate url"];
        !line.starts_with("//") && renames.iter().any(|words| line.contains(words))
    });
    let is_named = code.match_indices("url::").any(|(at, crate_name)| {
        let rest = &code[at + crate_name.len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split(';').next(),
            None => rest.split(is_between).next(),
        };
        let mut names = names.unwrap_or_default().split(is_between);
        !code[..at].ends_with(is_of_word) && names.any(|name| ["Url", "*", "self"].contains(&name))
    });
    is_renamed || is_named
}

#[test]
fn the_url_of_the_crate_is_found_in_lists_and_in_types() {
    for code in [
        "use url::Url;",
        "use url::{Host,\n    Url};",
        "use url::{form_urlencoded::{Parse, parse}, Url};",
        "fn f(of: &url::Url) {}",
        "fn f(of: *const url::Url) {}",
        "use url::*;",
        "use url::{*};",
        "use url as other;",
        "pub(crate) use url as other;",
        "use url::{self as other};",
        "use url::{Host, self as other};",
        "extern crate url as other;",
    ] {
        assert!(names_other_url(code), "{code}");
    }
    for code in [
        "use url::{Host, Origin};\nuse crate::Url;",
        "shown_url::Url",
        "url::Position",
        "Url::parse(a)",
        "// who may use url as it is",
    ] {
        assert!(!names_other_url(code), "{code}");
    }
}

/// A pipe in a folder that others can write into keeps whoever opens it by name waiting, and a link
/// leads to any file: `throng_folder` opens neither. What the user named himself may be both, and
/// stands here, as what the kernel has does.
#[test]
fn a_file_is_opened_by_its_name_only_where_the_user_or_the_kernel_named_it() {
    const BY_NAME: [(&str, &str); 24] = [
        ("crates/cli/src/canary/host_cpu.rs", "/proc"),
        ("crates/cli/src/commands/compare/mod.rs", "--junit and --html"),
        ("crates/cli/src/commands/consent.rs", "--output"),
        ("crates/cli/src/commands/ipc.rs", "--sizes"),
        ("crates/cli/src/commands/man.rs", "the folder for the pages of the manual"),
        ("crates/cli/src/commands/price.rs", "a file of prices"),
        ("crates/cli/src/commands/profile.rs", "--against and --output"),
        ("crates/cli/src/commands/requests.rs", "an access log"),
        ("crates/cli/src/console/interrupt.rs", "/proc"),
        ("crates/cli/src/console/keys.rs", "the terminal"),
        ("crates/cli/src/doctor/facts.rs", "/proc and /sys"),
        ("crates/cli/src/fleet/ssh.rs", "in a folder that it has made"),
        ("crates/cli/src/init/file.rs", "the scenario to write, which may be a device"),
        (
            "crates/cli/src/kept/command.rs",
            "media of a scenario, which rerun takes of its own alone",
        ),
        ("crates/cli/src/matrix/plan/overrides.rs", "templates of a matrix that is run"),
        ("crates/cli/src/media/clips.rs", "media of a scenario that is run"),
        ("crates/cli/src/media/pages.rs", "recordings of a scenario that is run"),
        ("crates/cli/src/named_file.rs", "files for answers, such as --markdown"),
        ("crates/cli/src/report/mod.rs", "--junit"),
        ("crates/cli/src/scenario.rs", "a scenario, which may be a pipe"),
        ("crates/cli/src/secrets.rs", "file:PATH, which may be a pipe"),
        ("crates/cli/src/session/prepare.rs", "--tls-ca"),
        ("crates/cli/src/watch/mod.rs", "--output"),
        ("crates/fleet/src/bus/mod.rs", "the key of a bus"),
    ];
    let root = root();
    let mut by_name = BTreeSet::new();
    for name in ["cli", "fleet", "store", "report"] {
        for file in rust_files(&root.join("crates").join(name).join("src")) {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if opens_by_name(before_tests(&std::fs::read_to_string(&file).unwrap())) {
                by_name.insert(path);
            }
        }
    }
    let expect: BTreeSet<String> = BY_NAME.map(|(path, _)| path.to_owned()).into_iter().collect();
    assert_eq!(by_name, expect);
}

/// Whether code opens a file by its name to read it, or to write into what may be there already.
fn opens_by_name(code: &str) -> bool {
    const FUNCTIONS: [&str; 4] = ["read", "read_to_string", "write", "copy"];
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let names = |text: &str, call: &str| {
        text.match_indices(call).any(|(at, _)| {
            !text[..at].ends_with(is_of_word) && !text[at + call.len()..].starts_with(is_of_word)
        })
    };
    let lines: Vec<&str> =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = lines.join("\n");
    let mut lists = code.split("fs::{").skip(1).filter_map(|list| list.split('}').next());
    let is_imported = lists.any(|list| FUNCTIONS.iter().any(|one| names(list, one)))
        || code.contains("fs::*")
        || code.contains("std::fs as ");
    let calls = FUNCTIONS.map(|function| format!("fs::{function}"));
    let is_called = calls.iter().any(|call| names(&code, call))
        || ["File::open", "File::create"].iter().any(|call| names(&code, call));
    // What is made new is made through no link.
    let opens = ["File::options", "OpenOptions::new"];
    let opened = lines.iter().filter(|line| opens.iter().any(|call| names(line, call))).count();
    is_imported || is_called || opened > code.matches("create_new(true)").count()
}

#[test]
fn what_opens_a_file_by_its_name_is_found() {
    for code in [
        "let text = std::fs::read_to_string(path)?;",
        "paths.map(fs::read)",
        "let file = File::open(path)?;",
        "use std::fs::{self, read};",
        "use std::{fs::{self,\n    write}, io};",
        "use std::fs::*;",
        "use std::fs as files;",
        "std::fs::write(path, text)?;",
        "let file = File::create(path)?;",
        "fs::copy(from, to)?;",
        "File::options().append(true).open(path)",
        "let mut options = OpenOptions::new();",
        "File::options().create_new(true).open(a)?;\nFile::options().append(true).open(b)?;",
    ] {
        assert!(opens_by_name(code), "{code}");
    }
    for code in [
        "throng_folder::read(path)?.read_to_string(&mut text)",
        "fs::read_dir(path)",
        "SpoolFile::open(file)",
        "use std::fs::{self, read_dir};",
        "use std::io::{Read, Write, copy};",
        "File::create_new(path)?.write(bytes)",
        "// as fs::read(path) does",
        "File::options().write(true).create_new(true).open(path)",
    ] {
        assert!(!opens_by_name(code), "{code}");
    }
}

/// rustfmt keeps code within the width of rustfmt.toml, but leaves comments, long strings and what
/// macros are given as they are. Tests may have longer lines of code, such as recorded input.
#[test]
fn production_lines_have_at_most_100_columns() {
    let root = root();
    let mut wide = Vec::new();
    for file in ["crates", "ring", "bench", "lab", "fuzz"]
        .into_iter()
        .flat_map(|folder| files_with_tests(&root.join(folder)))
    {
        let path = file.strip_prefix(&root).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let of_production = if is_of_tests(path) { 0 } else { before_tests(&text).lines().count() };
        wide.extend(text.lines().enumerate().filter_map(|(index, line)| {
            let is_held = index < of_production || line.trim_start().starts_with("//");
            (is_held && line.chars().count() > 100)
                .then(|| format!("{}:{}", path.display(), index + 1))
        }));
    }
    assert!(wide.is_empty(), "lines of more than 100 columns: {wide:#?}");
}

/// All lines of Python, and comments of shell scripts and of configuration. Other lines of these
/// have messages, patterns and documents, which would not be the same in two lines.
#[test]
fn lines_of_scripts_have_at_most_100_columns() {
    const FOLDERS: [&str; 10] = [
        ".config", "bench", "crates", "deploy", "docs", "examples", "fuzz", "lab", "ring",
        "scripts",
    ];
    let root = root();
    let mut files: Vec<PathBuf> = FOLDERS
        .into_iter()
        .flat_map(|folder| files_of(&root.join(folder), &["sh", "py", "toml"]))
        .collect();
    files.extend(["Cargo.toml", "clippy.toml", "deny.toml"].map(|name| root.join(name)));
    let mut wide = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let is_python = path.extension().is_some_and(|extension| extension == "py");
        let text = std::fs::read_to_string(&file).unwrap();
        wide.extend(text.lines().enumerate().filter_map(|(index, line)| {
            let is_held = is_python || line.trim_start().starts_with('#');
            (is_held && line.chars().count() > 100)
                .then(|| format!("{}:{}", path.display(), index + 1))
        }));
    }
    assert!(wide.is_empty(), "lines of more than 100 columns: {wide:#?}");
}

/// The text of a file above the tests in it.
fn before_tests(text: &str) -> &str {
    const TESTS: &str = "\n#[cfg(test)]\n";
    let begins = |rest: &str| {
        rest.lines().next().is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    };
    text.match_indices(TESTS)
        .find(|(at, _)| begins(&text[at + TESTS.len()..]))
        .map_or(text, |(at, _)| &text[..at])
}

/// Time is an input of the core: no pure crate reads a clock outside its tests.
#[test]
fn pure_crates_read_no_clock() {
    for name in ["observation", "analysis", "scenario", "media", "protocol", "report"] {
        for file in rust_files(&root().join("crates").join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for clock in ["Instant::now()", "SystemTime::now()"] {
                let read =
                    code.lines().any(|l| l.contains(clock) && !l.trim_start().starts_with("//"));
                assert!(!read, "{} reads {clock}", file.display());
            }
        }
    }
}

/// What throng starts ends with it, also after a second Ctrl-C (by the registry) and after `kill
/// -9` (by a signal of the kernel): who starts a process uses both, or stands here with the reason.
#[test]
fn who_starts_a_process_has_it_in_the_registry_and_ended_by_the_kernel() {
    const EXCEPTIONS: [(&str, &str); 7] = [
        ("crates/cli/src/canary/browser_run.rs", "crates/browser starts what it is given"),
        ("crates/cli/src/fleet/clock_source.rs", "chronyc has a second for its answer"),
        ("crates/ipc/src/harness/pass.rs", "child.rs beside it starts what it is given"),
        ("crates/ipc/src/harness/python.rs", "Python says its version"),
        ("crates/rig/src/machine.rs", "tc lists what it knows"),
        ("crates/rig/src/setup.rs", "a step, or what undoes it, is not left half done"),
        ("crates/watch/src/sampler/service.rs", "systemctl lists what it knows"),
    ];
    let root = root();
    let starts = |text: &str| {
        text.lines().any(|line| {
            let is_comment = line.trim_start().starts_with("//");
            // The other one describes the command line.
            let line = line.replace("clap::Command::new(", "");
            line.contains("Command::new(") && !is_comment
        })
    };
    let ends = |text: &str| {
        // `confine` of a rig is the way to the second for its servers.
        let by_kernel = ["end_with_this_thread(", "end_throng_with_this_thread(", "confine("];
        text.contains("Started::group") && by_kernel.iter().any(|call| text.contains(call))
    };
    let mut outlive = BTreeSet::new();
    for file in rust_files(&root.join("crates")) {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let text = before_tests(&text);
        // Tests start servers by crates/sim.
        if path.contains("/src/") && !path.starts_with("crates/sim/") && starts(text) && !ends(text)
        {
            outlive.insert(path);
        }
    }
    let exceptions: BTreeSet<String> =
        EXCEPTIONS.map(|(path, _)| path.to_owned()).into_iter().collect();
    assert_eq!(outlive, exceptions);
}

/// Modules of the cli use each other in one direction, at each depth: each can be read after those
/// below it. The module of a folder stands above those in it; `main.rs` is above all.
#[test]
fn modules_of_the_cli_form_no_circle() {
    let source = root().join("crates/cli/src");
    let files = rust_files(&source);
    let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(&source, file)).collect();
    let mut uses: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for file in &files {
        let own = module(&source, file);
        for path in named(&std::fs::read_to_string(file).unwrap(), &own) {
            let is_module = path.get(..1).is_none_or(|first| modules.contains(first));
            assert!(is_module, "{}: {} is in main.rs", own.join("::"), path.join("::"));
            // The two that stand side by side: what this file is of, and what it names.
            let same = own.iter().zip(&path).take_while(|(own, named)| own == named).count();
            if let (Some(from), Some(to)) = (own.get(..=same), path.get(..=same))
                && modules.contains(to)
            {
                uses.entry(from.to_vec()).or_default().insert(to.to_vec());
            }
        }
    }
    // Whoever uses none that is left is below all others: without these, nothing is left.
    while let Some(lowest) = uses
        .iter()
        .find(|(_, used)| used.iter().all(|module| !uses.contains_key(module)))
        .map(|(module, _)| module.clone())
    {
        uses.remove(&lowest);
    }
    assert!(uses.is_empty(), "modules use each other in circles: {uses:#?}");
}

#[test]
fn paths_of_modules_are_found_in_lists_and_from_above() {
    let own = ["a", "b"].map(str::to_owned);
    let text = "use crate::{self_made, x::{y, z as _}};\nuse super::super::c;\n\
                // crate::comment\nfn f() { super::d::e(); }\n\
                #[cfg(test)]\nmod tests {\n    use crate::t;\n}\n";
    let named: Vec<String> = named(text, &own).iter().map(|path| path.join("::")).collect();
    assert_eq!(named, ["self_made", "x::y", "x::z", "c", "a::d::e"]);
}

/// The path of a file's module, from the root of its crate.
fn module(source: &Path, file: &Path) -> Vec<String> {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let mut parts: Vec<String> =
        path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|name| ["main", "mod"].contains(&name.as_str())) {
        parts.pop();
    }
    parts
}

/// What a file of the module `own` names by `crate::` and `super::`, outside its tests.
fn named(text: &str, own: &[String]) -> Vec<Vec<String>> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut all = Vec::new();
    while let Some(at) = ["crate::", "super::"].iter().filter_map(|word| code.find(word)).min() {
        let mut rest = code.split_off(at);
        let mut base = own.to_vec();
        if let Some(below) = rest.strip_prefix("crate::") {
            (rest, base) = (below.to_owned(), Vec::new());
        }
        while let Some(above) = rest.strip_prefix("super::") {
            base.pop();
            rest = above.to_owned();
        }
        paths(&rest, &base, &mut all);
        code = rest;
    }
    all
}

/// The paths that a tree of names stands for, below `base`.
fn paths(tree: &str, base: &[String], all: &mut Vec<Vec<String>>) {
    if let Some(list) = tree.strip_prefix('{') {
        let (mut depth, mut begin) = (0, 0);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    paths(list[begin..at].trim(), base, all);
                    begin = at + 1;
                    if letter == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = tree.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tree.len());
    if end == 0 {
        return;
    }
    let path: Vec<String> = base.iter().cloned().chain([tree[..end].to_owned()]).collect();
    match tree[end..].strip_prefix("::") {
        Some(below) => paths(below, &path, all),
        None => all.push(path),
    }
}

/// Source files of a crate without those that are built only for tests, whose names end in `tests`.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_with_tests(folder);
    files.retain(|file| !is_of_tests(file.strip_prefix(folder).unwrap()));
    files
}

/// Whether the name of a file, or of a folder above it, ends in `tests`.
fn is_of_tests(path: &Path) -> bool {
    let ends_so = |name: &Path| {
        name.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"))
    };
    path.iter().any(|part| ends_so(Path::new(part)))
}

/// Whether cargo builds in this folder, which it marks so; a module may be called `target` too.
fn is_built(folder: &Path) -> bool {
    folder.join("CACHEDIR.TAG").exists()
}

/// Source files below a folder, those of tests too, without what cargo builds.
fn files_with_tests(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, &["rs"])
}

/// Files with these extensions below a folder, without what cargo builds and npm fetches.
fn files_of(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !is_built(&path) && !path.ends_with("node_modules") {
                files.extend(files_of(&path, extensions));
            }
        } else if path.extension().is_some_and(|own| extensions.iter().any(|one| own == *one)) {
            files.push(path);
        }
    }
    files
}

/// CI does not compile the fuzz targets: their dependencies once more would take minutes of its
/// budget. So each is nothing but one call of a law that tests of the same crate compile and try,
/// and the laws use what the targets have too. scripts/fuzz.sh compiles them before it begins.
#[test]
fn a_fuzz_target_is_one_call_of_a_law_that_tests_try() {
    let fuzz = root().join("fuzz");
    let manifest: toml::Table =
        std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap().parse().unwrap();
    let mut targets = BTreeSet::new();
    for file in files_of(&fuzz.join("fuzz_targets"), &["rs"]) {
        let path = file.strip_prefix(&fuzz).unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let called = law_of_target(&text);
        let (of, law) = called.unwrap_or_else(|| panic!("fuzz/{path} is not one call of a law"));
        let tests = root().join("crates").join(of).join("tests");
        let tests_have = |has: &dyn Fn(&str) -> bool| {
            let files = files_of(&tests, &["rs"]);
            files.iter().any(|file| has(&std::fs::read_to_string(file).unwrap()))
        };
        let target = file.file_stem().unwrap().to_str().unwrap().replace('_', "-");
        let replayed = format!("replay(\"{target}\", laws::{law})");
        let tries = |text: &str| names_law(&text.replace(&replayed, ""), law);
        assert!(tests_have(&tries), "fuzz/{path}: no test of {of} tries laws::{law}");
        let replays = |text: &str| text.contains(&replayed);
        assert!(tests_have(&replays), "what {target} has kept no test of {of} tries: {replayed}");
        for file in files_of(&tests.join("laws"), &["rs"]) {
            for name in used_crates(&std::fs::read_to_string(&file).unwrap()) {
                let is_there = manifest["dependencies"].get(name.replace('_', "-")).is_some();
                assert!(is_there, "fuzz/Cargo.toml lacks {name} of {}", file.display());
            }
        }
        targets.insert(path);
    }
    let declared = manifest["bin"].as_array().unwrap().iter();
    let declared = declared.map(|target| target["path"].as_str().unwrap().to_owned());
    assert_eq!(targets, declared.collect());
}

/// The crate and the law that a fuzz target calls; `None` if it is more or less than that.
fn law_of_target(text: &str) -> Option<(&str, &str)> {
    let of = text.split("../../crates/").nth(1)?.split('/').next()?;
    let law = text.split("laws::").nth(1)?.split('(').next()?;
    let (title, code) = text.split_once('\n')?;
    let expect = format!(
        "#![no_main]\n\n#[path = \"../../crates/{of}/tests/laws/mod.rs\"]\nmod laws;\n\n\
         libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::{law}(bytes));\n"
    );
    (title.starts_with("//! ") && code == expect).then_some((of, law))
}

/// Whether a test names a law by its path.
fn names_law(text: &str, law: &str) -> bool {
    let mut named = text.split("laws::").skip(1);
    named.any(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next() == Some(law))
}

/// The crates of which a law uses something by `use`, but for the standard library.
fn used_crates(text: &str) -> impl Iterator<Item = &str> {
    let used = text.lines().filter_map(|line| line.trim_start().strip_prefix("use "));
    let crates = used.filter_map(|path| Some(path.split_once("::")?.0));
    crates.filter(|name| !["std", "super", "crate", "self"].contains(name))
}

#[test]
fn a_fuzz_target_that_does_more_than_to_call_a_law_is_told_from_one_that_does_not() {
    let target = "//! Any.\n#![no_main]\n\n#[path = \"../../crates/net/tests/laws/mod.rs\"]\n\
                  mod laws;\n\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::any(bytes));\n";
    assert_eq!(law_of_target(target), Some(("net", "any")));
    for (part, other) in [
        ("(bytes)", "(&bytes)"),
        ("mod laws;\n", "mod laws;\nuse std::fs;\n"),
        ("../../crates", "../crates"),
        ("//! Any.", "// Any."),
    ] {
        assert_eq!(law_of_target(&target.replace(part, other)), None, "{other}");
    }
    assert!(names_law("hunt(laws::any, 1)", "any") && !names_law("laws::any_other", "any"));
    let used = "use std::fs;\n    use throng_net::{a, b};\nuse http::C;\npub(crate) use d::e;\n";
    assert_eq!(Vec::from_iter(used_crates(used)), ["throng_net", "http"]);
}

/// All of a module with a folder is in that folder: the file beside its parts is `mod.rs`.
#[test]
fn modules_with_folders_are_in_them() {
    let beside: Vec<PathBuf> = ["crates", "ring/core", "ring/c", "bench/src", "lab/src"]
        .into_iter()
        .flat_map(|folder| beside_their_folders(&root().join(folder)))
        .collect();
    assert!(beside.is_empty(), "not NAME.rs beside NAME/, but NAME/mod.rs: {beside:#?}");
}

/// The files `NAME.rs` that have a folder `NAME` beside them.
fn beside_their_folders(folder: &Path) -> Vec<PathBuf> {
    let mut beside = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !is_built(&path) {
            beside.extend(Some(path.with_extension("rs")).filter(|file| file.exists()));
            beside.extend(beside_their_folders(&path));
        }
    }
    beside
}

#[test]
fn a_panic_unwinds_so_that_it_can_end_one_participant_alone() {
    let manifest: toml::Table =
        std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    for (name, profile) in manifest["profile"].as_table().unwrap() {
        let strategy = profile.get("panic").and_then(toml::Value::as_str);
        assert!(
            strategy.is_none_or(|strategy| strategy == "unwind"),
            "profile {name}: driver/panic_guard.rs catches panics"
        );
    }
}
