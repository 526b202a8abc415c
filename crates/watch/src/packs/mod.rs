//! Knowledge packs: TOML files that describe servers. The built-in ones are part of the program;
//! packs in a folder of the user's are added, and replace those of the same name.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use throng_observation::Url;
use throng_observation::pack::{Pack, THREAD_NAME_BYTES_MAX};
use toml::Spanned;

/// The built-in packs by name; the general ones last.
const BUILT_IN: &[(&str, &str)] = &[
    ("caddy", include_str!("../../packs/caddy.toml")),
    ("coturn", include_str!("../../packs/coturn.toml")),
    ("ffmpeg", include_str!("../../packs/ffmpeg.toml")),
    ("galene", include_str!("../../packs/galene.toml")),
    ("go2rtc", include_str!("../../packs/go2rtc.toml")),
    ("gstreamer", include_str!("../../packs/gstreamer.toml")),
    ("janus", include_str!("../../packs/janus.toml")),
    ("lighttpd", include_str!("../../packs/lighttpd.toml")),
    ("live555", include_str!("../../packs/live555.toml")),
    ("livekit", include_str!("../../packs/livekit.toml")),
    ("mediamtx", include_str!("../../packs/mediamtx.toml")),
    ("nginx", include_str!("../../packs/nginx.toml")),
    ("ovenmediaengine", include_str!("../../packs/ovenmediaengine.toml")),
    ("peertube", include_str!("../../packs/peertube.toml")),
    ("prosody", include_str!("../../packs/prosody.toml")),
    ("srs", include_str!("../../packs/srs.toml")),
    ("throng", include_str!("../../packs/throng.toml")),
    ("generic", include_str!("../../packs/generic.toml")),
];

/// Maximum size of a pack file, bytes.
pub const PACK_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of packs in a folder.
pub const PACKS_MAX: usize = 100;
/// Maximum number of rules of one kind in a pack.
pub const RULES_MAX: usize = 200;
/// Maximum size of a compiled regular expression, bytes.
pub(crate) const REGEX_BYTES_MAX: usize = 1 << 20;

/// What is wrong with a pack, and where.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The text is not a pack: it is not TOML, or a field is unknown, missing or of the wrong type.
    /// The reason names line and column and shows the line.
    #[error("{file}: {reason}")]
    Shape {
        /// The file.
        file: String,
        /// Line, column and what is wrong.
        reason: String,
    },
    /// A rule is invalid.
    #[error("{file}, line {line}, column {column}: {reason}")]
    Rule {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong and how to fix it.
        reason: String,
    },
    /// A file or folder cannot be read.
    #[error("{path}: {reason}", path = .path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

/// The built-in packs.
#[must_use]
pub fn built_in() -> Vec<Pack> {
    // Not validated here, unlike a user's packs, because that takes a while at every start: a test
    // does it.
    BUILT_IN.iter().filter_map(|(_, text)| toml::from_str(text).ok()).collect()
}

/// The built-in packs and those of the user's folder (`*.toml`), which come first and replace
/// built-in ones of the same name.
///
/// # Errors
/// With the first invalid file, or if the folder cannot be read.
pub fn with_folder(folder: &Path) -> Result<Vec<Pack>, PackError> {
    let mut packs = read_folder(folder)?;
    let own: Vec<String> = packs.iter().map(|pack| pack.pack.clone()).collect();
    packs.extend(built_in().into_iter().filter(|pack| !own.contains(&pack.pack)));
    Ok(packs)
}

/// The packs of a server: the one with this name if given, else those that match the names of its
/// processes (process, program or script); packs for any server (`*`) follow.
#[must_use]
pub fn of_server(packs: &[Pack], name: Option<&str>, processes: &[&str]) -> Vec<Pack> {
    let of_any = |pack: &&Pack| pack.processes.iter().any(|glob| glob == "*");
    let wanted = |pack: &&Pack| match name {
        Some(name) => pack.pack == name,
        None => processes.iter().any(|process| pack.is_of_process(process)),
    };
    let special = packs.iter().filter(|pack| !of_any(pack) && wanted(pack));
    special.chain(packs.iter().filter(of_any)).cloned().collect()
}

fn read_folder(folder: &Path) -> Result<Vec<Pack>, PackError> {
    let unreadable =
        |path: &Path, reason: String| PackError::Unreadable { path: path.to_owned(), reason };
    let entries =
        std::fs::read_dir(folder).map_err(|error| unreadable(folder, error.to_string()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    if files.len() > PACKS_MAX {
        return Err(unreadable(
            folder,
            format!("{} packs; at most {PACKS_MAX} are read", files.len()),
        ));
    }
    let mut packs = Vec::new();
    for path in files {
        let about =
            std::fs::metadata(&path).map_err(|error| unreadable(&path, error.to_string()))?;
        if !about.is_file() || about.len() > PACK_BYTES_MAX {
            let reason = format!("not a regular file of at most {PACK_BYTES_MAX} bytes");
            return Err(unreadable(&path, reason));
        }
        let text =
            std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error.to_string()))?;
        packs.push(parse(&path.display().to_string(), &text)?);
    }
    Ok(packs)
}

/// Parses and validates a pack; `file` is its name in errors.
///
/// # Errors
/// With the line and column of what is wrong.
pub fn parse(file: &str, text: &str) -> Result<Pack, PackError> {
    let shape = |error: toml::de::Error| PackError::Shape {
        file: file.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    };
    let pack: Pack = toml::from_str(text).map_err(shape)?;
    let spanned: SpannedPack = toml::from_str(text).map_err(shape)?;
    let problem = spanned.problem();
    match problem {
        None => Ok(pack),
        Some((at, reason)) => {
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            Err(PackError::Rule { file: file.to_owned(), line, column, reason })
        }
    }
}

/// The fields of a pack that need validation, with their positions.
#[derive(Deserialize)]
struct SpannedPack {
    pack: Spanned<String>,
    // Optional in stored packs, required in files.
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(default)]
    processes: Vec<Spanned<String>>,
    #[serde(default, rename = "thread")]
    threads: Vec<ThreadRule>,
    #[serde(default, rename = "log")]
    logs: Vec<LogRule>,
    #[serde(default, rename = "endpoint")]
    endpoints: Vec<EndpointRule>,
    #[serde(default, rename = "uri_group")]
    uri_groups: Vec<UriGroupRule>,
}

#[derive(Deserialize)]
struct ThreadRule {
    name: Spanned<String>,
}

#[derive(Deserialize)]
struct LogRule {
    id: Spanned<String>,
    pattern: Spanned<String>,
    thread: Option<Spanned<String>>,
    #[serde(default, rename = "value")]
    values: Vec<LogValue>,
}

#[derive(Deserialize)]
struct LogValue {
    group: Spanned<String>,
    metric: Spanned<String>,
}

#[derive(Deserialize)]
struct EndpointRule {
    url: Spanned<String>,
    #[serde(default)]
    counters: Vec<Spanned<String>>,
    #[serde(default)]
    ingest: Vec<Spanned<String>>,
    #[serde(default)]
    drop_labels: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
struct UriGroupRule {
    group: Spanned<String>,
    prefix: Option<String>,
    regex: Option<Spanned<String>>,
    status: Option<u16>,
}

/// Position, and what is wrong there.
type Problem = (usize, String);

impl SpannedPack {
    fn problem(&self) -> Option<Problem> {
        let names = std::iter::once(&self.pack);
        let labels = self
            .logs
            .iter()
            .map(|log| &log.id)
            .chain(self.uri_groups.iter().map(|rule| &rule.group));
        let metrics = self.logs.iter().flat_map(|log| &log.values).map(|value| &value.metric);
        self.too_many()
            .or_else(|| names.chain(labels).find_map(bad_name))
            .or_else(|| metrics.clone().find_map(bad_metric))
            .or_else(|| self.processes.iter().find_map(empty))
            .or_else(|| self.threads.iter().find_map(|thread| bad_thread_name(&thread.name)))
            .or_else(|| {
                self.logs.iter().filter_map(|log| log.thread.as_ref()).find_map(bad_thread_name)
            })
            .or_else(|| self.logs.iter().find_map(LogRule::problem))
            .or_else(|| duplicate(self.logs.iter().map(|log| &log.id)))
            .or_else(|| self.endpoints.iter().find_map(|endpoint| bad_url(&endpoint.url)))
            .or_else(|| {
                let names = |rule: &EndpointRule| {
                    let globs = rule.counters.iter().chain(&rule.ingest);
                    globs.chain(&rule.drop_labels).find_map(empty)
                };
                self.endpoints.iter().find_map(names)
            })
            .or_else(|| self.uri_groups.iter().find_map(UriGroupRule::problem))
    }

    fn too_many(&self) -> Option<Problem> {
        let most =
            [self.threads.len(), self.logs.len(), self.endpoints.len(), self.uri_groups.len()];
        let most = most.into_iter().max().unwrap_or(0);
        (most > RULES_MAX).then(|| {
            (self.pack.span().start, format!("{most} rules of a kind; at most {RULES_MAX}"))
        })
    }
}

impl LogRule {
    fn problem(&self) -> Option<Problem> {
        let regex = match compile(self.pattern.get_ref()) {
            Ok(regex) => regex,
            Err(reason) => return Some((self.pattern.span().start, reason)),
        };
        let unknown = |value: &&LogValue| {
            !regex.capture_names().flatten().any(|name| name == value.group.get_ref())
        };
        self.values.iter().find(unknown).map(|value| {
            let group = value.group.get_ref();
            (
                value.group.span().start,
                format!("the pattern has no group `{group}`: write `(?<{group}>…)` in it"),
            )
        })
    }
}

impl UriGroupRule {
    fn problem(&self) -> Option<Problem> {
        if self.prefix.is_none() && self.regex.is_none() && self.status.is_none() {
            let reason = "no condition: give `prefix`, `regex` or `status`".to_owned();
            return Some((self.group.span().start, reason));
        }
        let regex = self.regex.as_ref()?;
        compile(regex.get_ref()).err().map(|reason| (regex.span().start, reason))
    }
}

/// Compiles a regular expression on bytes, of bounded size.
pub(crate) fn compile(pattern: &str) -> Result<regex::bytes::Regex, String> {
    regex::bytes::RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| format!("not a supported regular expression: {error}"))
}

fn bad_name(name: &Spanned<String>) -> Option<Problem> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let text = name.get_ref();
    let wrong = text.is_empty() || text.len() > 40 || !text.bytes().all(good);
    wrong.then(|| (name.span().start, format!("`{text}`: a name is 1 to 40 of a-z, 0-9 and _")))
}

fn bad_metric(name: &Spanned<String>) -> Option<Problem> {
    let good = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.')
    };
    let text = name.get_ref();
    let wrong = text.len() > 60 || !text.contains('.') || !text.bytes().all(good);
    wrong.then(|| {
        (
            name.span().start,
            format!("`{text}`: a metric name is like `ffmpeg.speed`: a-z, 0-9, _ and dots"),
        )
    })
}

fn empty(text: &Spanned<String>) -> Option<Problem> {
    text.get_ref()
        .is_empty()
        .then(|| (text.span().start, "empty: it would match nothing".to_owned()))
}

fn bad_thread_name(name: &Spanned<String>) -> Option<Problem> {
    let fixed = name.get_ref().bytes().filter(|byte| *byte != b'*').count();
    if fixed > THREAD_NAME_BYTES_MAX {
        let reason = format!(
            "`{}` cannot match any thread: the kernel keeps {THREAD_NAME_BYTES_MAX} bytes of a \
             name; shorten it",
            name.get_ref()
        );
        return Some((name.span().start, reason));
    }
    empty(name)
}

fn bad_url(text: &Spanned<String>) -> Option<Problem> {
    let parsed = Url::parse(text.get_ref());
    let fits =
        |url: &Url| matches!(url.scheme(), "http" | "https" | "ws" | "wss") && url.has_host();
    match parsed {
        Ok(url) if fits(&url) => None,
        Ok(_) => Some((
            text.span().start,
            "an endpoint is http://, https://, ws:// or wss://".to_owned(),
        )),
        Err(error) => Some((text.span().start, format!("not a URL: {error}"))),
    }
}

fn duplicate<'a>(ids: impl Iterator<Item = &'a Spanned<String>>) -> Option<Problem> {
    let mut seen = std::collections::BTreeSet::new();
    let again = ids.into_iter().find(|id| !seen.insert(id.get_ref().as_str()))?;
    Some((
        again.span().start,
        format!("`{}` is defined twice; ids must be unique", again.get_ref()),
    ))
}

#[cfg(test)]
pub(crate) mod seen_tests;
#[cfg(test)]
mod tests;
