//! The table of docs/servers.md.

use std::collections::BTreeSet;

use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/servers.md");

/// What was seen of a server by one protocol.
pub(super) struct Row {
    pub(super) protocol: String,
    /// What was seen.
    seen: String,
    /// The source's frames per second by ffprobe, which throng's are near; `None` where throng
    /// sends.
    fps: Option<f64>,
    /// Whether the server's own counter of bytes agreed.
    pub(super) is_counted: bool,
}

impl Row {
    /// Viewers who played.
    pub(super) fn of(protocol: &str, summary: &Value, source_fps: f64) -> Self {
        let codecs = |kind: &str| {
            let all = summary[kind]["codecs"].as_array().cloned().unwrap_or_default();
            all.iter().filter_map(|codec| codec.as_str().map(named)).collect::<Vec<_>>()
        };
        let codecs = [codecs("video"), codecs("audio")].concat().join(", ");
        Self {
            protocol: protocol.to_owned(),
            seen: format!("plays {codecs}"),
            fps: Some(source_fps),
            is_counted: false,
        }
    }

    /// Anything else.
    pub(super) fn said(protocol: &str, seen: &str) -> Self {
        Self { protocol: protocol.to_owned(), seen: seen.to_owned(), fps: None, is_counted: false }
    }

    fn line(&self, server: &str) -> String {
        let frames = self.fps.map_or_else(|| "–".to_owned(), |fps| format!("{fps:.0} fps"));
        let bytes = if self.is_counted { "as the server counts" } else { "–" };
        format!("| {server} | {} | {} | {frames} | {bytes} |", self.protocol, self.seen)
    }
}

/// A codec as people call it.
fn named(codec: &str) -> String {
    match codec {
        "mpeg4-generic" => "AAC".to_owned(),
        "opus" => "Opus".to_owned(),
        "H264" => "H.264".to_owned(),
        "MP2T" => "MPEG-TS".to_owned(),
        other => other.to_owned(),
    }
}

/// Checks the lines of the page that are about this server, and writes them where
/// `THRONG_WRITE_DOCS` is set.
#[track_caller]
pub(super) fn has(server: &str, rows: &[Row]) {
    let expect: BTreeSet<String> = rows.iter().map(|row| row.line(server)).collect();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        write(server, &expect);
    }
    let page = std::fs::read_to_string(FILE).unwrap();
    let found: BTreeSet<String> = of(&page, server).map(str::to_owned).collect();
    assert!(
        found == expect,
        "docs/servers.md has {found:#?}, seen was {expect:#?}; write it anew: \
         THRONG_WRITE_DOCS=1 cargo test -p throng-cli --test e2e real::"
    );
}

/// The lines of a page that are about this server.
fn of<'p>(page: &'p str, server: &str) -> impl Iterator<Item = &'p str> {
    let begins = format!("| {server} | ");
    page.lines().filter(move |line| line.starts_with(&begins))
}

/// Puts the lines of a server in the place of those that the page has. Tests of other servers are
/// other processes, which write it too.
fn write(server: &str, expect: &BTreeSet<String>) {
    let file = std::fs::File::open(FILE).unwrap();
    file.lock().unwrap();
    let page = std::fs::read_to_string(FILE).unwrap();
    let (head, rest) = page.split_once("|---|---|---|---|---|\n").expect("the table");
    let (rows, tail) = rest.split_at(rest.find("\n\n").map_or(rest.len(), |end| end + 1));
    let begins = format!("| {server} | ");
    let mut all = expect.clone();
    all.extend(rows.lines().filter(|line| !line.starts_with(&begins)).map(str::to_owned));
    let rows: String = all.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(FILE, format!("{head}|---|---|---|---|---|\n{rows}{tail}")).unwrap();
}
