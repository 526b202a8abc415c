//! Counts the requests and bytes of one access log each second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use throng_observation::RunTime;
use throng_observation::host::catalogue::ACCESS_SERVER_ERRORS;
use throng_observation::host::{HostEventKind, Unit};

use super::{Protocol, UriGroups, parse};
use crate::logs::lines::Lines;
use crate::logs::redact::redacted;
use crate::reading::Reading;

/// Maximum number of lines parsed in a second; further lines are only counted.
pub const READ_LINES_MAX: u64 = 100_000;

/// Counts the requests and bytes of one access log.
///
/// Series: `access.requests` (a second; labels `log`, `uri_group`, `status` as `2xx`, `protocol`),
/// `access.bytes` (bytes a second; `log`, `uri_group`, `protocol`), `access.response_time` (mean,
/// milliseconds; `log`, `uri_group`; if the log has it), `access.server_errors` (answers 5xx so
/// far; `log`, `uri_group`, `status` as `502`), `access.lines_unparsed` (a second; `log`): lines in
/// another format, or beyond [`READ_LINES_MAX`]. A request is counted when the server writes its
/// line, at its end: all bytes of a WebSocket count in the second in which it closes.
#[derive(Debug)]
pub struct AccessCounter {
    log: String,
    groups: Arc<UriGroups>,
    lines: Lines,
    since: RunTime,
    second: Counts,
    /// The series that have been written, so that a second without requests is a zero.
    live: BTreeSet<(usize, u8, Protocol)>,
    /// Answers 5xx since the beginning, by group and status.
    server_errors: BTreeMap<(usize, u16), u64>,
    live_unread: bool,
    reported_unread: bool,
}

#[derive(Debug, Default)]
struct Counts {
    lines: u64,
    unread: u64,
    first_unread: Option<String>,
    requests: BTreeMap<(usize, u8, Protocol), u64>,
    bytes: BTreeMap<(usize, Protocol), u64>,
    /// By group: sum of response times in milliseconds, and number of requests that had one.
    durations: BTreeMap<usize, (f64, u64)>,
}

impl AccessCounter {
    /// A counter for the log named `log`, starting now.
    #[must_use]
    pub fn new(log: impl Into<String>, groups: Arc<UriGroups>, now: RunTime) -> Self {
        Self {
            log: log.into(),
            groups,
            lines: Lines::default(),
            since: now,
            second: Counts::default(),
            live: BTreeSet::new(),
            server_errors: BTreeMap::new(),
            live_unread: false,
            reported_unread: false,
        }
    }

    /// Processes the next bytes of the log.
    pub fn read(&mut self, bytes: &[u8]) {
        let Self { lines, second, groups, server_errors, .. } = self;
        lines.push(bytes, |line| second.count(line.bytes, groups, server_errors));
    }

    /// Ends the log or its current file: an incomplete line counts as a line.
    pub fn finish(&mut self) {
        let Self { lines, second, groups, server_errors, .. } = self;
        lines.finish(|line| second.count(line.bytes, groups, server_errors));
    }

    /// Replaces the groups. Counts of groups that are in both sets continue.
    pub fn set_groups(&mut self, groups: Arc<UriGroups>) {
        let old = std::mem::replace(&mut self.groups, groups);
        let place = |group: usize| self.groups.place(old.name(group));
        let Counts { requests, bytes, durations, .. } = &mut self.second;
        let live = std::mem::take(&mut self.live).into_iter();
        self.live =
            live.filter_map(|(group, status, h)| Some((place(group)?, status, h))).collect();
        let errors = std::mem::take(&mut self.server_errors).into_iter();
        self.server_errors =
            errors.filter_map(|((group, status), n)| Some(((place(group)?, status), n))).collect();
        let counted = std::mem::take(requests).into_iter();
        *requests = counted
            .filter_map(|((group, status, h), n)| Some(((place(group)?, status, h), n)))
            .collect();
        let counted = std::mem::take(bytes).into_iter();
        *bytes = counted.filter_map(|((group, h), n)| Some(((place(group)?, h), n))).collect();
        let counted = std::mem::take(durations).into_iter();
        *durations = counted.filter_map(|(group, n)| Some((place(group)?, n))).collect();
    }

    /// The counts since the last call, as rates over the time that passed. Call it about once a
    /// second.
    pub fn tick(&mut self, now: RunTime) -> Vec<Reading> {
        let seconds = now.millis_since(self.since) / 1e3;
        if seconds <= 0.0 {
            return Vec::new();
        }
        self.since = now;
        let counts = std::mem::take(&mut self.second);
        self.live.extend(counts.requests.keys());
        let mut readings = Vec::new();
        let mut value = |metric: &str, unit, labels: &[(&str, &str)], value: f64| {
            let labels = [&[("log", self.log.as_str())], labels].concat();
            readings.push(Reading::value(metric, unit, &labels, value));
        };
        for key @ (group, class, protocol) in &self.live {
            let count = counts.requests.get(key).copied().unwrap_or(0) as f64;
            let status = if *class == 0 { "none".to_owned() } else { format!("{class}xx") };
            let labels = [
                ("uri_group", self.groups.name(*group)),
                ("status", &status),
                ("protocol", protocol.label()),
            ];
            value("access.requests", Unit::PerSecond, &labels, count / seconds);
        }
        let groups: BTreeSet<_> =
            self.live.iter().map(|(group, _, protocol)| (*group, *protocol)).collect();
        for key @ (group, protocol) in groups {
            let bytes = counts.bytes.get(&key).copied().unwrap_or(0) as f64;
            let labels = [("uri_group", self.groups.name(group)), ("protocol", protocol.label())];
            value("access.bytes", Unit::BytesPerSecond, &labels, bytes / seconds);
        }
        for ((group, status), count) in &self.server_errors {
            let status = status.to_string();
            let labels = [("uri_group", self.groups.name(*group)), ("status", &status)];
            value(ACCESS_SERVER_ERRORS, Unit::Count, &labels, *count as f64);
        }
        for (group, (milliseconds, requests)) in counts.durations {
            let labels = [("uri_group", self.groups.name(group))];
            value(
                "access.response_time",
                Unit::Milliseconds,
                &labels,
                milliseconds / requests as f64,
            );
        }
        if counts.unread > 0 || self.live_unread {
            self.live_unread = true;
            value("access.lines_unparsed", Unit::PerSecond, &[], counts.unread as f64 / seconds);
        }
        if let Some(line) =
            counts.first_unread.filter(|_| !std::mem::replace(&mut self.reported_unread, true))
        {
            let detail = format!(
                "the access log {}: some lines are no access lines in the combined format, in \
                 JSON or of S3, the first: {line}. Requests of such lines are not counted; \
                 docs/watch-logs.md shows a supported format",
                self.log
            );
            readings.push(Reading::Event(HostEventKind::Unreadable, detail));
        }
        readings
    }
}

impl Counts {
    fn count(
        &mut self,
        line: &[u8],
        groups: &UriGroups,
        server_errors: &mut BTreeMap<(usize, u16), u64>,
    ) {
        self.lines += 1;
        if self.lines > READ_LINES_MAX {
            self.unread += 1;
            return;
        }
        let Some(request) = parse(line) else {
            self.unread += 1;
            self.first_unread.get_or_insert_with(|| redacted(line));
            return;
        };
        let group = groups.of(&request);
        let class = (request.status / 100) as u8;
        if (500..600).contains(&request.status) {
            *server_errors.entry((group, request.status)).or_default() += 1;
        }
        *self.requests.entry((group, class, request.protocol)).or_default() += 1;
        let bytes = self.bytes.entry((group, request.protocol)).or_default();
        *bytes = bytes.saturating_add(request.bytes);
        if let Some(duration) = request.duration_ms {
            let (sum, count) = self.durations.entry(group).or_default();
            *sum += duration;
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs;

    fn counter() -> AccessCounter {
        let packs = packs::built_in();
        let rules =
            packs.iter().filter(|pack| ["peertube", "generic"].contains(&pack.pack.as_str()));
        let groups = UriGroups::new(rules.flat_map(|pack| &pack.uri_groups)).unwrap();
        AccessCounter::new("access", Arc::new(groups), RunTime(0))
    }

    fn value(readings: &[Reading], metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
        readings.iter().find_map(|readings| match readings {
            Reading::Value(value) if value.metric == metric => {
                let fits = labels
                    .iter()
                    .all(|(name, label)| value.labels.get(*name).is_some_and(|l| l == label));
                fits.then_some(value.value)
            }
            _ => None,
        })
    }

    #[test]
    fn bytes_and_requests_are_those_of_the_lines() {
        let mut counter = counter();
        let lines = [
            (r#"x [t] "GET /plugins/livechat/ws/xmpp-websocket HTTP/1.1" 101 88000 "#, 10),
            (r#"x [t] "GET /plugins/livechat/ws/xmpp-websocket HTTP/1.1" 502 157 "#, 6),
            (r#"x [t] "GET /static/streaming-playlists/hls/u/0-1.ts HTTP/3.0" 200 500000 "#, 4),
        ];
        for (line, count) in lines {
            for _ in 0..count {
                counter.read(format!("{line}\n").as_bytes());
            }
        }
        let readings = counter.tick(RunTime(2_000_000));
        let chat = ("uri_group", "chat_websocket");
        assert_eq!(
            value(&readings, "access.requests", &[chat, ("status", "1xx"), ("protocol", "h1")]),
            Some(5.0)
        );
        assert_eq!(value(&readings, "access.requests", &[chat, ("status", "5xx")]), Some(3.0));
        assert_eq!(value(&readings, "access.bytes", &[chat]), Some((880_000.0 + 942.0) / 2.0));
        assert_eq!(value(&readings, "access.bytes", &[("protocol", "h3")]), Some(1_000_000.0));
        let quiet = counter.tick(RunTime(3_000_000));
        assert_eq!(value(&quiet, "access.bytes", &[("protocol", "h3")]), Some(0.0));
        assert_eq!(value(&quiet, "access.requests", &[chat, ("status", "5xx")]), Some(0.0));
    }

    #[test]
    fn lines_of_another_format_are_counted_and_shown_once() {
        let mut counter = counter();
        counter.read(b"2026-11-20 GET / 200 token=hush\nanother\n");
        let readings = counter.tick(RunTime(1_000_000));
        assert_eq!(value(&readings, "access.lines_unparsed", &[]), Some(2.0));
        let events: Vec<_> =
            readings.iter().filter(|readings| matches!(readings, Reading::Event(..))).collect();
        assert_eq!(events.len(), 1);
        assert!(format!("{events:?}").contains("GET / 200 token=…"));
        counter.read(b"another\n");
        assert!(
            !counter
                .tick(RunTime(2_000_000))
                .iter()
                .any(|readings| matches!(readings, Reading::Event(..)))
        );
    }

    #[test]
    fn answers_5xx_are_summed_by_status_and_keep_their_sums_when_groups_change() {
        let mut counter = counter();
        let refused = |status: u16| {
            format!("x [t] \"GET /plugins/livechat/ws/xmpp-websocket HTTP/1.1\" {status} 157 \n")
        };
        let chat = |status| [("uri_group", "chat_websocket"), ("status", status)];
        counter.read(refused(502).repeat(3).as_bytes());
        counter.read(refused(404).as_bytes());
        let readings = counter.tick(RunTime(1_000_000));
        assert_eq!(value(&readings, "access.server_errors", &chat("502")), Some(3.0));
        assert_eq!(value(&readings, "access.server_errors", &chat("404")), None);
        let groups: Vec<_> =
            packs::built_in().into_iter().filter(|pack| pack.pack == "peertube").collect();
        counter.set_groups(Arc::new(
            UriGroups::new(groups.iter().flat_map(|pack| &pack.uri_groups)).unwrap(),
        ));
        counter.read((refused(502) + &refused(504)).as_bytes());
        let readings = counter.tick(RunTime(2_000_000));
        assert_eq!(value(&readings, "access.server_errors", &chat("502")), Some(4.0));
        assert_eq!(value(&readings, "access.server_errors", &chat("504")), Some(1.0));
    }

    #[test]
    fn bytes_beyond_counting_do_not_overflow() {
        let mut counter = counter();
        let line = format!("x [t] \"GET /a.ts HTTP/1.1\" 200 {} \n", u64::MAX);
        counter.read(line.as_bytes());
        counter.read(line.as_bytes());
        assert!(value(&counter.tick(RunTime(1)), "access.bytes", &[]).unwrap() > 0.0);
    }

    #[test]
    fn mean_response_time_is_of_the_lines_that_have_it() {
        let mut counter = counter();
        for time in ["0.1", "0.3"] {
            let line =
                format!(r#"{{"uri":"/a.ts","status":200,"bytes_sent":1,"request_time":{time}}}"#);
            counter.read(format!("{line}\n").as_bytes());
        }
        let readings = counter.tick(RunTime(1_000_000));
        assert!((value(&readings, "access.response_time", &[]).unwrap() - 200.0).abs() < 1e-9);
    }
}
