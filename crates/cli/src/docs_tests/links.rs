//! Every link of the documentation leads to a file that is there, and to a heading that it has.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{pages, root};

/// Pages beside those of `docs/`, which they lead to, or which lead to them.
const BESIDE: [&str; 10] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "deploy/kubernetes/README.md",
    "fuzz/README.md",
    "ring/README.md",
    "ring/c/README.md",
    "ring/docs/bindings.md",
    "ring/docs/layout.md",
    "ring/python/README.md",
];

/// The lines of a page that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// What the links of a line lead to.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link)
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// Whether a page has a heading of this name; each has its beginning, which has none.
fn has(file: &Path, name: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut headings = prose(&text).filter_map(|line| line.strip_prefix('#'));
    name.is_empty() || headings.any(|line| anchor(line.trim_start_matches('#')) == name)
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let (mut count, mut wrong) = (0, String::new());
    let beside = BESIDE.map(|page| root().join(page));
    let beside =
        beside.map(|file| (file.display().to_string(), std::fs::read_to_string(&file).unwrap()));
    for (page, text) in pages().into_iter().chain(beside) {
        let folder = Path::new(&page).parent().unwrap();
        let inner = prose(&text).flat_map(links).filter(|link| !link.contains("://"));
        for link in inner {
            count += 1;
            let (file, name) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { PathBuf::from(&page) } else { folder.join(file) };
            if !file.exists() || !has(&file, name) {
                let _ = writeln!(wrong, "{page}: {link}");
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_heading_is_named_as_links_name_it() {
    assert_eq!(anchor(" `make proof`"), "make-proof");
    assert_eq!(anchor(" Collecting a run: `--resume`"), "collecting-a-run---resume");
}
