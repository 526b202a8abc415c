//! The table of docs/servers.md.

use std::collections::BTreeSet;

use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/servers.md");

/// What was seen of a server by one protocol.
pub(super) struct Row {
    pub(super) protocol: String,
    /// What was seen.
    seen: String,
    /// The source's frames per second, by ffprobe or those that throng sends, which those played
    /// are near; `None` where nothing is played.
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

    /// Publishers, whose stream viewers play by another protocol, at this rate.
    pub(super) fn published(protocol: &str, played_by: &str, fps: f64) -> Self {
        Self {
            protocol: protocol.to_owned(),
            seen: format!("takes what publishers send, and plays it by {played_by}"),
            fps: Some(fps),
            is_counted: true,
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

/// The lines of a server that a test of its own sees begin with one of these; the others are of the
/// server's main test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What it serves.
    Main,
    /// What throng publishes to it.
    Published,
    /// RTSP inside TLS.
    Encrypted,
    /// Segments of a configuration of their own.
    Segmented,
}

impl Part {
    /// That of a protocol, as the table names it.
    fn of(protocol: &str) -> Self {
        if protocol.starts_with("publishing by ") {
            Self::Published
        } else if protocol.starts_with("RTSPS") {
            Self::Encrypted
        } else if protocol.starts_with("HLS of ") || protocol.starts_with("MPEG-DASH") {
            Self::Segmented
        } else {
            Self::Main
        }
    }
}

/// Checks the lines of the page that are about this part of a server, and writes them where
/// `THRONG_WRITE_DOCS` is set.
#[track_caller]
pub(super) fn has(server: &str, part: Part, rows: &[Row]) {
    assert!(rows.iter().all(|row| Part::of(&row.protocol) == part));
    let expect: BTreeSet<String> = rows.iter().map(|row| row.line(server)).collect();
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        write((server, part), &expect);
    }
    let page = std::fs::read_to_string(FILE).unwrap();
    let of_part = page.lines().filter(|line| is_of(line, (server, part)));
    let found: BTreeSet<String> = of_part.map(str::to_owned).collect();
    assert!(
        found == expect,
        "docs/servers.md has {found:#?}, seen was {expect:#?}; write it anew: \
         THRONG_WRITE_DOCS=1 cargo test -p throng-cli --test e2e real::"
    );
}

/// Whether a line of the page is about this part of a server.
fn is_of(line: &str, (server, part): (&str, Part)) -> bool {
    let protocol = line.strip_prefix(&format!("| {server} | "));
    protocol.is_some_and(|protocol| Part::of(protocol) == part)
}

/// Puts the lines of a part of a server in the place of those that the page has. Tests of other
/// servers are other processes, which write it too.
fn write(of: (&str, Part), expect: &BTreeSet<String>) {
    let file = std::fs::File::open(FILE).unwrap();
    file.lock().unwrap();
    let page = std::fs::read_to_string(FILE).unwrap();
    let (head, rest) = page.split_once("|---|---|---|---|---|\n").expect("the table");
    let (rows, tail) = rest.split_at(rest.find("\n\n").map_or(rest.len(), |end| end + 1));
    let mut all = expect.clone();
    all.extend(rows.lines().filter(|line| !is_of(line, of)).map(str::to_owned));
    let rows: String = all.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(FILE, format!("{head}|---|---|---|---|---|\n{rows}{tail}")).unwrap();
}
