//! What a server tells of itself, read beside its counters: one call for the logs, access logs and endpoints of a
//! watched host, with what its packs know of them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::host::HostId;
use throng_observation::pack::{EndpointKind, Pack};

use crate::logs::access::{GroupError, UriGroups};
use crate::logs::{LogReader, LogSource, PatternError, Patterns, SourceError, Tail};
use crate::scrape::{Allowed, Credentials, Endpoint, EndpointError, Filter, Scraper};
use crate::{RowSender, SeenWriter, clock_from};

/// What is read of a host beside its counters.
#[derive(Clone, Debug, Default)]
pub struct ToldConfig {
    /// Logs whose lines are counted: paths, or `journal:UNIT`.
    pub logs: Vec<String>,
    /// Access logs whose requests are accounted: paths.
    pub access_logs: Vec<String>,
    /// Endpoints that are asked, each as [`endpoint`] reads it.
    pub metrics: Vec<String>,
    /// What is known of the server ([`packs::of_server`](crate::packs::of_server)), the user's first.
    pub packs: Vec<Pack>,
}

/// Why a server cannot be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ToldError {
    /// Log patterns that cannot be used.
    #[error(transparent)]
    Patterns(#[from] PatternError),
    /// URI groups that cannot be used.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// A log that cannot be followed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An endpoint that cannot be asked.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// The readers of what a server tells; they end when it is dropped.
#[derive(Debug)]
pub struct Told {
    tail: Tail,
    scraper: Option<Scraper>,
    patterns: Arc<Patterns>,
    host: HostId,
    rows: RowSender,
    zero: Instant,
}

impl Told {
    /// Begins to read. `zero` is the moment of the run's first intended join; `allowed` says which addresses may be
    /// asked. What cannot be read yet is no error: it is said in the run and tried again.
    ///
    /// # Errors
    /// When a pattern, a group, a unit or an endpoint is wrong in itself, or no thread can be made.
    pub fn begin(
        config: &ToldConfig,
        host: HostId,
        zero: Instant,
        rows: &RowSender,
        allowed: &Allowed,
    ) -> Result<Self, ToldError> {
        let patterns = Arc::new(Patterns::new(config.packs.iter().flat_map(|pack| &pack.logs))?);
        let groups = Arc::new(UriGroups::new(config.packs.iter().flat_map(|pack| &pack.uri_groups))?);
        let endpoints: Vec<Endpoint> =
            config.metrics.iter().map(|text| endpoint(text, &config.packs)).collect::<Result<_, _>>()?;
        let clock = clock_from(zero);
        let writer = || SeenWriter::new(host, rows.clone());
        let mut tail = Tail::new();
        for log in &config.logs {
            let source = match log.strip_prefix("journal:") {
                Some(unit) => LogSource::journal(unit),
                None => LogSource::File(log.into()),
            };
            tail.follow(log, source, LogReader::Lines(patterns.clone()), writer(), clock.clone())?;
        }
        for log in &config.access_logs {
            let (source, reader) = (LogSource::File(log.into()), LogReader::Access(groups.clone()));
            tail.follow(log, source, reader, writer(), clock.clone())?;
        }
        let endpoints: Vec<_> = endpoints.into_iter().map(|endpoint| (endpoint, writer())).collect();
        let scraper =
            if endpoints.is_empty() { None } else { Some(Scraper::start(endpoints, &clock, allowed)?) };
        Ok(Self { tail, scraper, patterns, host, rows: rows.clone(), zero })
    }

    /// Reads the output of a program too: the reading end of its pipe, called `log`.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn follow_pipe(&mut self, log: &str, pipe: OwnedFd) -> Result<(), ToldError> {
        let writer = SeenWriter::new(self.host, self.rows.clone());
        let reader = LogReader::Lines(self.patterns.clone());
        Ok(self.tail.follow(log, LogSource::Pipe(pipe), reader, writer, clock_from(self.zero))?)
    }

    /// Ends all reading, when what is there has been read. Dropping it does the same.
    pub fn stop(self) {
        drop(self.scraper);
        self.tail.stop();
    }
}

/// Reads an endpoint: `[KIND+]URL[#KEY=VALUE&…]`.
///
/// `KIND` is `openmetrics`, `janus`, `ome`, `nginx` or `lighttpd`; without it the path or the packs tell. After `#`
/// stands what is never sent as part of the address: `secret`, `bearer` or `basic` with where the word is to be had
/// (`env:NAME` or `file:PATH`), and `sha256` with the fingerprint of the certificate that alone is trusted.
///
/// # Errors
/// With what is wrong and the mend.
pub fn endpoint(text: &str, packs: &[Pack]) -> Result<Endpoint, EndpointError> {
    let (address, extras) = text.split_once('#').unwrap_or((text, ""));
    let wrong = |reason: String| EndpointError::Address { name: address.to_owned(), reason };
    let scheme_ends = address.find("://").unwrap_or(0);
    let (kind, url) = match address.get(..scheme_ends).and_then(|scheme| scheme.split_once('+')) {
        Some((kind, _)) => {
            (Some(kind_of(kind).map_err(wrong)?), address.get(kind.len() + 1..).unwrap_or_default())
        }
        None => (None, address),
    };
    let kind = kind.unwrap_or_else(|| guessed_kind(url, packs));
    let mut endpoint = Endpoint::new(name_of(url), url, kind)?;
    endpoint.filter = filter_of(kind, packs);
    for extra in extras.split('&').filter(|extra| !extra.is_empty()) {
        let (key, value) = extra.split_once('=').unwrap_or((extra, ""));
        match key {
            "secret" => endpoint.credentials = Credentials::Secret(word(value).map_err(wrong)?),
            "bearer" => endpoint.credentials = Credentials::Bearer(word(value).map_err(wrong)?),
            "basic" => endpoint.credentials = Credentials::Basic(word(value).map_err(wrong)?),
            "sha256" => endpoint.certificate_sha256 = Some(fingerprint(value).map_err(wrong)?),
            _ => {
                let known = "secret, bearer, basic or sha256";
                return Err(wrong(format!(
                    "`#{}` is not known; write {known}",
                    crate::logs::shown(key.as_bytes())
                )));
            }
        }
    }
    // What the vendor calls an access token is the whole of HTTP Basic's word.
    if let (EndpointKind::OvenMediaEngine, Credentials::Secret(token)) = (kind, &endpoint.credentials) {
        endpoint.credentials = Credentials::Basic(token.clone());
    }
    Ok(endpoint)
}

fn kind_of(word: &str) -> Result<EndpointKind, String> {
    match word {
        "openmetrics" | "prometheus" => Ok(EndpointKind::OpenMetrics),
        "janus" => Ok(EndpointKind::JanusAdmin),
        "ome" => Ok(EndpointKind::OvenMediaEngine),
        "nginx" => Ok(EndpointKind::NginxStatus),
        "lighttpd" => Ok(EndpointKind::LighttpdStatus),
        other => {
            Err(format!("`{other}+` is not known; write openmetrics+, janus+, ome+, nginx+ or lighttpd+"))
        }
    }
}

fn guessed_kind(url: &str, packs: &[Pack]) -> EndpointKind {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let speaks = |kind| packs.iter().flat_map(|pack| &pack.endpoints).any(|endpoint| endpoint.kind == kind);
    match path {
        _ if url.starts_with("ws") => EndpointKind::JanusAdmin,
        "admin" | "admin/" if speaks(EndpointKind::JanusAdmin) => EndpointKind::JanusAdmin,
        "" if speaks(EndpointKind::OvenMediaEngine) => EndpointKind::OvenMediaEngine,
        path if path.contains("stub_status")
            || path.contains("basic_status")
            || path.contains("nginx_status") =>
        {
            EndpointKind::NginxStatus
        }
        path if path.starts_with("server-status") => EndpointKind::LighttpdStatus,
        _ => EndpointKind::OpenMetrics,
    }
}

/// What the packs of the server say matters at endpoints of this kind; without any, what is kept of any server.
fn filter_of(kind: EndpointKind, packs: &[Pack]) -> Filter {
    let known = packs.iter().flat_map(|pack| &pack.endpoints).filter(|endpoint| endpoint.kind == kind);
    let known: Vec<Filter> = known.map(Filter::of_pack).collect();
    match (kind, known.is_empty()) {
        (EndpointKind::OpenMetrics, true) => Filter::for_any(),
        _ => Filter {
            allow: known.iter().flat_map(|filter| filter.allow.clone()).collect(),
            deny: known.iter().flat_map(|filter| filter.deny.clone()).collect(),
        },
    }
}

/// Host, port and path: what tells endpoints of a host apart.
fn name_of(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    // An address with credentials is refused; they must not come into its name before.
    let bare = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, host)| host);
    bare.split('?').next().unwrap_or(bare).trim_end_matches('/').chars().take(80).collect()
}

/// A secret from where it is kept.
fn word(from: &str) -> Result<String, String> {
    let found = match from.split_once(':') {
        Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => {
            std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
        }
        Some(("file", path)) => std::fs::read_to_string(path)
            .map_err(|error| format!("the secret in {path} cannot be read: {error}")),
        // What stands here may be the secret itself: it is not repeated.
        _ => Err("a secret is not written out: write env:NAME or file:PATH".into()),
    }?;
    let found = found.trim();
    let fits = !found.is_empty() && found.len() <= 4_096 && !found.chars().any(char::is_control);
    if fits {
        Ok(found.to_owned())
    } else {
        Err("the secret is empty, longer than 4096 bytes or no text".into())
    }
}

fn fingerprint(text: &str) -> Result<[u8; 32], String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let mut bytes = [0; 32];
    let hexadecimal = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte =
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    }
    if hexadecimal { Ok(bytes) } else { Err("sha256 is 64 hexadecimal digits".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs;

    fn packs_of(names: &[&str]) -> Vec<Pack> {
        packs::of_server(&packs::built_in(), None, names)
    }

    #[test]
    fn an_endpoint_says_what_it_speaks_or_its_path_does() {
        use EndpointKind::{JanusAdmin, LighttpdStatus, NginxStatus, OpenMetrics, OvenMediaEngine};
        let cases = [
            ("http://127.0.0.1:6789/metrics", "livekit-server", OpenMetrics),
            ("http://127.0.0.1:7088/admin", "janus", JanusAdmin),
            ("http://127.0.0.1:7088/admin", "nginx", OpenMetrics),
            ("janus+http://127.0.0.1:7088/other", "", JanusAdmin),
            ("ws://127.0.0.1:7188/", "janus", JanusAdmin),
            ("http://127.0.0.1:8081/", "OvenMediaEngine", OvenMediaEngine),
            ("ome+http://127.0.0.1:8081", "", OvenMediaEngine),
            ("http://127.0.0.1/basic_status", "nginx", NginxStatus),
            ("http://127.0.0.1/server-status?auto", "lighttpd", LighttpdStatus),
            ("prometheus+https://h/basic_status", "", OpenMetrics),
        ];
        for (text, process, kind) in cases {
            let endpoint = endpoint(text, &packs_of(&[process])).unwrap();
            assert_eq!(endpoint.kind, kind, "{text}");
        }
        let known = endpoint("http://h:6789/metrics", &packs_of(&["livekit-server"])).unwrap();
        assert_eq!((known.name.as_str(), known.url.as_str()), ("h:6789/metrics", "http://h:6789/metrics"));
        assert!(known.filter.keeps("livekit_room_total") && !known.filter.keeps("go_memstats_frees_total"));
        assert!(endpoint("http://h/metrics", &[]).unwrap().filter.keeps("anything"));
    }

    #[test]
    fn secrets_come_from_elsewhere_and_are_never_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "hush\n").unwrap();
        let text = format!("janus+http://h/admin#secret=file:{}&sha256={}", file.display(), "0a".repeat(32));
        let got = endpoint(&text, &[]).unwrap();
        assert_eq!(got.credentials, Credentials::Secret("hush".into()));
        assert_eq!(got.certificate_sha256, Some([10; 32]));
        assert_eq!(got.url.as_str(), "http://h/admin");
        let token = format!("ome+http://h/#secret=file:{}", file.display());
        assert_eq!(endpoint(&token, &[]).unwrap().credentials, Credentials::Basic("hush".into()));
        for (text, expect) in [
            ("http://h/#secret=hunter2", "is not written out"),
            ("http://h/#bearer=env:THRONG_NOT_SET", "THRONG_NOT_SET is not set"),
            ("http://h/#basic=file:/nowhere/x", "cannot be read"),
            ("http://h/#sha256=12", "64 hexadecimal digits"),
            ("http://h/#token=x", "is not known"),
            ("what+http://h/", "`what+` is not known"),
            ("http://user:hunter2@h/", "credentials do not belong"),
            ("", "relative URL"),
        ] {
            let error = endpoint(text, &[]).unwrap_err().to_string();
            assert!(error.contains(expect) && !error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn one_call_reads_all_that_a_host_is_watched_by() {
        use throng_observation::host::HostRow;
        let folder = tempfile::tempdir().unwrap();
        let (log, access) = (folder.path().join("log"), folder.path().join("access"));
        std::fs::write(&log, "").unwrap();
        std::fs::write(&access, "").unwrap();
        let text = |path: &std::path::Path| vec![path.display().to_string()];
        let config = ToldConfig {
            logs: text(&log),
            access_logs: text(&access),
            metrics: vec!["http://192.0.2.1/metrics".into()],
            packs: packs_of(&["janus"]),
        };
        let (rows, receiver) = crate::rows(1_000);
        let nobody: Allowed = Arc::new(|address| Err(format!("{address} has not agreed")));
        let mut told = Told::begin(&config, HostId(3), Instant::now(), &rows, &nobody).unwrap();
        let (reader, mut pipe) = std::io::pipe().unwrap();
        told.follow_pipe("stderr", reader.into()).unwrap();
        std::io::Write::write_all(&mut pipe, b"Discarding too old outgoing packet (age=1us)\n").unwrap();
        std::fs::write(&log, "Too many open files\n").unwrap();
        std::fs::write(&access, "x [t] \"GET /a.ts HTTP/1.1\" 200 7 \n").unwrap();
        drop(pipe);
        // The refusal of the endpoint is waited for; the rest is read by the end at the latest.
        let refused =
            |row: &HostRow| matches!(row, HostRow::Event(event) if event.detail.contains("has not agreed"));
        let mut got = vec![];
        while !got.iter().any(refused) {
            got.push(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
        }
        told.stop();
        got.extend(receiver.try_iter());
        let series = |row: &HostRow| match row {
            HostRow::Series(series) => {
                assert_eq!(series.host, HostId(3));
                Some(series.labels.get("pattern").unwrap_or(&series.metric).clone())
            }
            _ => None,
        };
        let names: Vec<_> = got.iter().filter_map(series).collect();
        for wanted in ["too_many_open_files", "old_packet_discarded", "access.bytes"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted} in {names:?}");
        }
    }
}
