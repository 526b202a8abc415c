//! Every example of the documentation is what the program takes: scenarios, packs, prices and
//! experiments, and the command lines; what is YAML or JSON is read as such.

mod links;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use throng_scenario::matrix::Matrix;
use throng_scenario::{Override, Scenario};

use crate::args::{Arguments, Command};
use crate::{oven_rtc_tester, scenario};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages: name and text.
fn pages() -> Vec<(String, String)> {
    let within = |folder: &str| {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let docs = ["docs", "docs/measurements"].into_iter().flat_map(within);
    let examples = within("examples").map(|folder| folder.join("README.md"));
    let all = docs.chain(examples).chain([root().join("README.md")]);
    let is_page = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "md");
    let mut files: Vec<PathBuf> = all.filter(|file| is_page(file) && file.is_file()).collect();
    files.sort();
    let text = |file: &PathBuf| std::fs::read_to_string(file).unwrap();
    files.iter().map(|file| (file.display().to_string(), text(file))).collect()
}

/// The fenced blocks of a page: what stands after the fence, and the lines between.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(word), None) => open = Some((word.trim().to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => {
                let _ = writeln!(text, "{line}");
            }
            (None, None) => {}
        }
    }
    blocks
}

const VIEWERS: &str = "[target]\nurl = \"https://127.0.0.1:8443/live.m3u8\"\n";
const LESSON: &str = "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/1\"\n[crowd]\n";
const PROOF: &str = include_str!("../../../../examples/prove/stage-workers.toml");

/// Reads a block by what it begins with; parts of a file get the rest of it.
fn read(block: &str) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let first = block.split(['=', '\n']).next().unwrap_or_default().trim();
    match first {
        "pack" => throng_watch::packs::parse("pack", block).map(drop).map_err(|e| said(&e)),
        "provider" => {
            throng_scenario::prices::PriceTable::parse(block).map(drop).map_err(|e| said(&e))
        }
        "scenario" => Matrix::parse(block).map(drop).map_err(|e| said(&e)),
        "relieves" => proof(&PROOF.replace("relieves = \"cpu\"", block.trim())),
        "[shrink]" => {
            let without_variants = PROOF.split("[[variant]]").next().unwrap_or_default();
            proof(&format!("{without_variants}{block}"))
        }
        "script" => of_scenario(&format!("{LESSON}{block}")),
        "player" => of_scenario(&format!("{VIEWERS}[crowd]\n{block}")),
        "origins" => {
            let page = format!("player = {{ har = \"page.har\", {} }}", block.trim());
            of_scenario(&format!("{VIEWERS}[crowd]\n{page}\n"))
        }
        "metrics" => of_scenario(&format!("{VIEWERS}[[watch]]\nprocess = \"janus\"\n{block}")),
        // The digits of a fingerprint say nothing to a reader.
        "[[watch]]" => {
            let digits = format!("sha256:{}", "0".repeat(64));
            of_scenario(&format!("{VIEWERS}{}", block.replace('…', &digits)))
        }
        "[caps]" | "[[crowd]]" => of_scenario(&format!("{VIEWERS}{block}")),
        _ => of_scenario(block),
    }
}

/// A scenario whose crowd has a size, unless the text has one.
fn of_scenario(text: &str) -> Result<(), String> {
    let has_size = text.contains("size = ");
    let size = Override::flag_toml("the example", "crowd.size", "1");
    let over = if has_size { Vec::new() } else { vec![size] };
    Scenario::parse_with(text, &over).map(drop).map_err(|error| error.to_string())
}

fn proof(text: &str) -> Result<(), String> {
    Matrix::parse_proof(text, None).map(drop).map_err(|error| error.to_string())
}

/// Tables, code, and pages that another test writes are as wide as what is in them.
#[test]
fn prose_has_at_most_100_columns() {
    const WRITTEN: [&str; 3] = ["docs/export.md", "docs/host-series.md", "docs/metrics.md"];
    let of_root = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        (name.to_owned(), text)
    });
    let mut all = pages();
    all.extend(of_root);
    all.retain(|(name, _)| !WRITTEN.iter().any(|written| name.ends_with(written)));
    let mut wide = Vec::new();
    for (name, text) in &all {
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            let begins = |with: &str| line.trim_start().starts_with(with);
            is_code ^= begins("```");
            if !is_code && !begins("|") && line.chars().count() > 100 {
                wide.push(format!("{name}:{}", index + 1));
            }
        }
    }
    assert!(wide.is_empty(), "prose of more than 100 columns: {wide:#?}");
}

#[test]
fn every_toml_of_the_documentation_is_read() {
    let (mut count, mut wrong) = (0, String::new());
    for (page, text) in pages() {
        for (_, block) in blocks(&text).into_iter().filter(|(word, _)| word == "toml") {
            count += 1;
            if let Err(why) = read(&block) {
                let _ = writeln!(wrong, "{page}:\n{block}\n{why}\n");
            }
        }
    }
    assert!(count > 20, "{count} examples");
    assert!(wrong.is_empty(), "{wrong}");
}

/// The JSON of a block: that of a file, or what a command answers.
fn json(word: &str, block: &str) -> Option<String> {
    let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with("$ ")).collect();
    let is_answer = word.is_empty() && lines.first().is_some_and(|line| line.starts_with('{'));
    (word == "json" || is_answer).then(|| lines.join("\n"))
}

fn read_json(text: &str) -> Result<(), String> {
    serde_json::from_str::<serde_json::Value>(text).map(drop).map_err(|error| error.to_string())
}

fn read_yaml(text: &str) -> Result<(), String> {
    let wrong = saphyr_parser::Parser::new_from_str(text).find_map(Result::err);
    wrong.map_or(Ok(()), |error| Err(error.to_string()))
}

#[test]
fn every_yaml_and_json_of_the_documentation_is_read() {
    let (mut yaml_count, mut json_count, mut wrong) = (0, 0, String::new());
    for (page, text) in pages() {
        for (word, block) in blocks(&text) {
            let read = if word == "yaml" {
                yaml_count += 1;
                read_yaml(&block)
            } else if let Some(json) = json(&word, &block) {
                json_count += 1;
                read_json(&json)
            } else {
                continue;
            };
            if let Err(why) = read {
                let _ = writeln!(wrong, "{page}:\n{block}\n{why}\n");
            }
        }
    }
    assert!(yaml_count >= 4 && json_count >= 1, "{yaml_count} of YAML, {json_count} of JSON");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_is_neither_yaml_nor_json_is_found() {
    assert!(read_yaml("a: [1, 2]\nb:\n  - c: d\n").is_ok());
    for wrong in ["a: [1, 2\n", "a: 'b\n"] {
        assert!(read_yaml(wrong).is_err(), "{wrong}");
    }
    assert!(read_json("{\"a\": 1}").is_ok() && read_json("{a: 1}").is_err());
    assert_eq!(json("", "$ throng price --json\n{\n}\n").as_deref(), Some("{\n}"));
    assert_eq!(json("", "$ throng runs\na\n"), None);
    assert_eq!(json("toml", "{\n}\n"), None);
}

/// The line without what stands before the program: `sudo -E `, `NAME=value `.
fn of_throng(line: &str) -> &str {
    let is_variable = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
        })
    };
    let line = line.strip_prefix("sudo -E ").unwrap_or(line);
    match line.split_once(' ') {
        Some((word, rest)) if is_variable(word) => of_throng(rest),
        Some(_) | None => line,
    }
}

/// The words of a command line as a shell takes them; `None` for a line that is none: what was left
/// out (`…`, `[…]`), a diagram, an answer.
fn words(line: &str) -> Option<Vec<String>> {
    let line = of_throng(line.strip_prefix("$ ").unwrap_or(line));
    // What follows is said about the line, or done with its output.
    let line = ["  ", " # ", " > ", " || ", " | ", " |", " &"]
        .iter()
        .fold(line, |line, end| line.find(end).and_then(|at| line.get(..at)).unwrap_or(line));
    let is_one = line.starts_with("throng ") && !line.contains('…') && !line.contains(" [");
    if !is_one || line == "throng stage is playing" {
        return None;
    }
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (letter, quote) {
            (' ', None) => words.push(std::mem::take(&mut word)),
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (letter, _) => word.push(letter),
        }
    }
    words.push(word);
    Some(words)
}

/// Whether the program takes the line; of a URL or a file of this repository also the scenario.
fn takes(words: &[String]) -> Result<(), String> {
    let line = oven_rtc_tester::translate(words.iter().cloned());
    let arguments = Arguments::try_parse_from(line).map_err(|error| error.to_string())?;
    // How much is allowed where the server is somebody else's is a matter of the reader's.
    let caps = ["users=1000000", "joins_per_s=100000", "mbit_per_s=1000000"];
    let caps = caps.map(|cap| format!("caps.{cap}"));
    let read = match arguments.command {
        Command::View(mut view) if words.iter().any(|word| word.contains("://")) => {
            view.common.set.extend(caps);
            scenario::of_flags(&view).map(drop)
        }
        Command::Run(mut run) => {
            let is_ours = |file: &PathBuf| file.starts_with("examples");
            run.file = run.file.filter(is_ours).map(|file| root().join(file));
            match run.file {
                Some(_) => scenario::of_file(&run).map(drop),
                None => Ok(()),
            }
        }
        Command::Find(mut find) if find.scenario.contains("://") => {
            find.common.set.extend(caps);
            scenario::of_find(&find, &[]).map(drop)
        }
        Command::Check(check) if check.scenario.starts_with("examples/") => {
            let file = root().join(&check.scenario).display().to_string();
            scenario::parse_sets(&check.set)
                .and_then(|sets| scenario::of_file_or_url(&file, sets))
                .map(drop)
        }
        Command::Matrix(matrix) => return experiment(matrix.file.as_deref(), Matrix::parse),
        Command::Prove(prove) => {
            let shrink = prove.shrink.as_deref();
            let file = prove.experiment.file.as_deref();
            return experiment(file, |text| Matrix::parse_proof(text, shrink));
        }
        // Read by their flags alone.
        _ => Ok(()),
    };
    read.map_err(|stop| format!("{:#}", stop.error))
}

/// Reads a matrix or a proof of this repository, with its scenario.
fn experiment<E: std::fmt::Display>(
    file: Option<&Path>,
    parse: impl Fn(&str) -> Result<Matrix, E>,
) -> Result<(), String> {
    let Some(file) = file.filter(|file| file.starts_with("examples")) else { return Ok(()) };
    let file = root().join(file);
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let matrix = parse(&text).map_err(|error| error.to_string())?;
    let scenario = file.parent().unwrap().join(&matrix.scenario);
    scenario.is_file().then_some(()).ok_or_else(|| format!("{}: no file", scenario.display()))
}

#[test]
fn every_command_line_of_the_documentation_is_taken() {
    let (mut count, mut wrong) = (0, String::new());
    for (page, text) in pages() {
        for (word, block) in blocks(&text).into_iter().filter(|(word, _)| word != "toml") {
            let block = block.replace("\\\n", " ");
            let of_script = |line| if word == "yaml" { of_pipeline(line) } else { line };
            let lines = block.lines().map(of_script).map(one_blank_between_parts);
            for words in lines.filter_map(|line| words(&line)) {
                count += 1;
                if let Err(why) = takes(&words) {
                    let _ = writeln!(wrong, "{page}: {}\n{why}\n", words.join(" "));
                }
            }
        }
    }
    assert!(count > 100, "{count} command lines");
    assert!(wrong.is_empty(), "{wrong}");
}

/// A line of a pipeline: commands stand deeper, some as items of a list.
fn of_pipeline(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix("- ").unwrap_or(line)
}

/// A line that was continued has the next one's indent in it, before a flag.
fn one_blank_between_parts(line: &str) -> String {
    let mut line = line.to_owned();
    while line.contains("   --") {
        line = line.replace("   --", "  --");
    }
    line.replace("  --", " --")
}

#[test]
fn a_line_is_cut_into_words_as_a_shell_does() {
    let words = |line| words(line).unwrap_or_default().join("|");
    assert_eq!(
        words("$ throng run a.toml --set 'x={ y = \"1\" }'  # why"),
        "throng|run|a.toml|--set|x={ y = \"1\" }"
    );
    assert_eq!(words("throng view URL --tap 3       decode"), "throng|view|URL|--tap|3");
    assert_eq!(
        words("$ sudo -E RUST_LOG=throng=debug throng prove a.toml  # why"),
        "throng|prove|a.toml"
    );
    assert_eq!(words("TOKEN=a JWT_SECRET=b throng check a.toml"), "throng|check|a.toml");
    assert_eq!(words("x=1 throng check a.toml"), "");
    assert_eq!(words("throng view … --receive auto"), "");
    assert_eq!(words("throng"), "");
    for line in ["throng run a.toml > a.log 2>&1 &", "throng run a.toml &"] {
        assert_eq!(words(line), "throng|run|a.toml");
    }
    assert_eq!(words(of_pipeline("    - throng run a.toml || code=$?")), "throng|run|a.toml");
}
