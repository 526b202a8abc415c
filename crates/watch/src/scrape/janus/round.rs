//! One scrape of Janus's admin API: sessions, their handles, and the traffic of each handle.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value as Json, json};
use throng_observation::RunTime;
use throng_observation::host::Unit;

use crate::reading::{Reading, SeriesValue};
use crate::scrape::openmetrics::{Kind, Sample};
use crate::scrape::query::{NUMBER_MAX, Query, UnexpectedAnswer, beginning, labels};
use crate::scrape::rates::Rates;

/// Maximum number of queries in one scrape. Each costs Janus some tenths of a millisecond; with
/// more handles only the number of sessions is reported.
const QUERIES_MAX: usize = 1_000;

/// One scrape of the admin API.
///
/// Series, with the label `endpoint`: `janus.sessions`; `janus.handles` (by `plugin`);
/// `janus.peer_connections` (by ICE `state`); `janus.queued_packets`, packets in the send queues of
/// all handles; `janus.sent` and `janus.received`, RTP bytes a second over all handles;
/// `janus.nacks_received`, `janus.retransmissions`, packets a second that were requested again and
/// sent again; `janus.handles_skipped`, handles or sessions beyond the limit.
#[derive(Debug)]
pub struct JanusRound {
    secret: Option<String>,
    pending: Option<Question>,
    queue: VecDeque<Question>,
    queries: usize,
    sessions: usize,
    skipped: usize,
    handles: BTreeMap<String, u64>,
    peer_connections: BTreeMap<String, u64>,
    queued_packets: f64,
    sent: f64,
    received: f64,
    /// Cumulative counters by handle.
    counters: Vec<(u64, [f64; 2])>,
}

#[derive(Clone, Copy, Debug)]
enum Question {
    Sessions,
    Handles { session: u64 },
    Handle { session: u64, handle: u64 },
}

const COUNTERS: [&str; 2] = ["janus.nacks_received", "janus.retransmissions"];

impl JanusRound {
    /// A scrape, with the admin secret if Janus has one.
    #[must_use]
    pub fn new(secret: Option<&str>) -> Self {
        Self {
            secret: secret.map(str::to_owned),
            pending: None,
            queue: VecDeque::from([Question::Sessions]),
            queries: 0,
            sessions: 0,
            skipped: 0,
            handles: BTreeMap::new(),
            peer_connections: BTreeMap::new(),
            queued_packets: 0.0,
            sent: 0.0,
            received: 0.0,
            counters: Vec::new(),
        }
    }

    pub(in crate::scrape) fn next_query(&mut self) -> Option<Query> {
        if self.queries >= QUERIES_MAX {
            self.skipped += self.queue.len();
            self.queue.clear();
        }
        let question = self.queue.pop_front()?;
        self.queries += 1;
        self.pending = Some(question);
        let mut body = match question {
            Question::Sessions => json!({ "janus": "list_sessions" }),
            Question::Handles { session } => {
                json!({ "janus": "list_handles", "session_id": session })
            }
            Question::Handle { session, handle } => {
                json!({ "janus": "handle_info", "session_id": session, "handle_id": handle })
            }
        };
        // Janus requires a transaction in each request.
        body["transaction"] = json!(format!("throng-{}", self.queries));
        if let Some(secret) = &self.secret {
            body["admin_secret"] = json!(secret);
        }
        Some(Query { path: None, body: Some(body.to_string()) })
    }

    pub(in crate::scrape) fn process(&mut self, answer: &[u8]) -> Result<(), UnexpectedAnswer> {
        let Some(question) = self.pending.take() else { return Ok(()) };
        let answer: Json = serde_json::from_slice(answer).map_err(|error| {
            UnexpectedAnswer(format!("the answer of Janus is not JSON: {error}"))
        })?;
        if answer["janus"] != "success" {
            return match question {
                // Sessions and handles may end between queries (458, 459: no such session, no such
                // handle).
                Question::Handles { .. } | Question::Handle { .. }
                    if matches!(answer["error"]["code"].as_u64(), Some(458 | 459)) =>
                {
                    Ok(())
                }
                _ => Err(refused(&answer)),
            };
        }
        let ids = |name: &str| {
            let ids =
                answer.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            ids.iter().filter_map(Json::as_u64).collect::<Vec<_>>()
        };
        match question {
            Question::Sessions => {
                let sessions = ids("sessions");
                self.sessions = sessions.len();
                self.queue
                    .extend(sessions.into_iter().map(|session| Question::Handles { session }));
            }
            Question::Handles { session } => {
                let handles = ids("handles").into_iter();
                self.queue.extend(handles.map(|handle| Question::Handle { session, handle }));
            }
            Question::Handle { handle, .. } => self.handle(handle, &answer["info"]),
        }
        Ok(())
    }

    fn handle(&mut self, handle: u64, info: &Json) {
        let plugin = short(&info["plugin"], "janus.plugin.");
        *self.handles.entry(plugin).or_default() += 1;
        self.queued_packets += number(&info["queued-packets"]);
        // Older versions have an array `streams` instead of `webrtc`.
        let webrtc = if info["webrtc"].is_object() { &info["webrtc"] } else { &info["streams"][0] };
        if let Some(state) = webrtc["ice"]["state"].as_str() {
            *self.peer_connections.entry(short(&Json::from(state), "")).or_default() += 1;
        }
        let mut counters = [0.0; 2];
        for medium in webrtc["media"].as_object().into_iter().flat_map(|media| media.values()) {
            let stats = &medium["stats"];
            self.sent += number(&stats["out"]["bytes_lastsec"]);
            self.received += number(&stats["in"]["bytes_lastsec"]);
            counters[0] += number(&stats["out"]["nacks"]);
            counters[1] += number(&stats["in"]["retransmissions"]);
        }
        self.counters.push((handle, counters));
    }

    /// The readings of levels; counters are added to the rates.
    pub(in crate::scrape) fn finish(
        self,
        at: RunTime,
        endpoint: &str,
        rates: &mut Rates,
    ) -> Vec<Reading> {
        let value = |metric: &str, unit, more: &[(&str, &str)], value: f64| {
            Reading::Value(SeriesValue {
                metric: metric.to_owned(),
                unit,
                labels: labels(endpoint, more),
                value,
            })
        };
        let mut readings = vec![
            value("janus.sessions", Unit::Count, &[], self.sessions as f64),
            value("janus.handles_skipped", Unit::Count, &[], self.skipped as f64),
        ];
        if self.skipped > 0 {
            return readings;
        }
        readings.push(value("janus.queued_packets", Unit::Count, &[], self.queued_packets));
        readings.push(value("janus.sent", Unit::BytesPerSecond, &[], self.sent));
        readings.push(value("janus.received", Unit::BytesPerSecond, &[], self.received));
        for (plugin, count) in &self.handles {
            readings.push(value(
                "janus.handles",
                Unit::Count,
                &[("plugin", plugin)],
                *count as f64,
            ));
        }
        for (state, count) in &self.peer_connections {
            readings.push(value(
                "janus.peer_connections",
                Unit::Count,
                &[("state", state)],
                *count as f64,
            ));
        }
        rates.add(at, endpoint, &self.samples(), &["handle".to_owned()]);
        readings
    }

    /// Counters by handle, so that the end of one does not look like a counter reset.
    fn samples(&self) -> Vec<Sample<'static>> {
        let of_handle = |(handle, counters): &(u64, [f64; 2])| {
            let handle = handle.to_string();
            COUNTERS.into_iter().zip(*counters).map(move |(name, value)| Sample {
                name,
                labels: vec![("handle", Cow::Owned(handle.clone()))],
                value,
                kind: Kind::Counter,
            })
        };
        self.counters.iter().flat_map(of_handle).collect()
    }
}

fn refused(answer: &Json) -> UnexpectedAnswer {
    let reason = answer["error"]["reason"].as_str().unwrap_or("no reason");
    let help = match answer["error"]["code"].as_u64() {
        Some(403) => "; give the admin_secret of janus.jcfg as the endpoint's secret",
        _ => "",
    };
    UnexpectedAnswer(format!("Janus refused: {}{help}", beginning(reason)))
}

fn number(value: &Json) -> f64 {
    value.as_f64().filter(|value| (0.0..=NUMBER_MAX).contains(value)).unwrap_or(0.0)
}

/// A text from Janus as a label.
fn short(value: &Json, prefix: &str) -> String {
    let text = value.as_str().unwrap_or("none");
    text.strip_prefix(prefix).unwrap_or(text).chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(round: &mut JanusRound, mut answer: impl FnMut(&Json) -> Json) {
        while let Some(query) = round.next_query() {
            let question: Json = serde_json::from_str(&query.body.unwrap()).unwrap();
            assert!(question["transaction"].is_string());
            round.process(answer(&question).to_string().as_bytes()).unwrap();
        }
    }

    fn janus(question: &Json, sessions: u64, nacks: u64) -> Json {
        assert_eq!(question["admin_secret"], "hush");
        match question["janus"].as_str().unwrap() {
            "list_sessions" => {
                json!({ "janus": "success", "sessions": (1..=sessions).collect::<Vec<_>>() })
            }
            "list_handles" => {
                json!({ "janus": "success", "handles": [question["session_id"].as_u64().unwrap() + 100] })
            }
            _ if question["handle_id"] == 102 => {
                json!({ "janus": "error", "error": { "code": 459, "reason": "gone" } })
            }
            _ => json!({ "janus": "success", "info": {
                "plugin": "janus.plugin.videoroom", "queued-packets": 3,
                "webrtc": { "ice": { "state": "ready" }, "media": {
                    "a": { "stats": { "in": { "bytes_lastsec": 5 }, "out": { "bytes_lastsec": 1000, "nacks": nacks } } },
                    "v": { "stats": { "out": { "bytes_lastsec": 9000 } } } } } } }),
        }
    }

    fn read(rates: &mut Rates, at: i64, sessions: u64, nacks: u64) -> Vec<(String, f64)> {
        let mut round = JanusRound::new(Some("hush"));
        answers(&mut round, |question| janus(question, sessions, nacks));
        rates.begin();
        let mut readings = round.finish(RunTime(at * 1_000_000), "e", rates);
        readings.extend(rates.end());
        let value = |readings: Reading| match readings {
            Reading::Value(value) => {
                let more = value
                    .labels
                    .iter()
                    .filter(|(name, _)| *name != "endpoint")
                    .map(|(_, v)| format!("[{v}]"));
                (format!("{}{}", value.metric, more.collect::<String>()), value.value)
            }
            Reading::Event(..) => panic!("no event"),
        };
        readings.into_iter().map(value).collect()
    }

    #[test]
    fn sessions_handles_and_what_they_send_are_summed() {
        let mut rates = Rates::default();
        let got = read(&mut rates, 0, 3, 10);
        let of = |got: &[(String, f64)], name: &str| {
            got.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
        };
        assert_eq!(of(&got, "janus.sessions"), Some(3.0));
        assert_eq!(
            of(&got, "janus.handles[videoroom]"),
            Some(2.0),
            "one ended while it was asked for"
        );
        assert_eq!(of(&got, "janus.sent"), Some(20_000.0));
        assert_eq!(of(&got, "janus.queued_packets"), Some(6.0));
        assert_eq!(of(&got, "janus.peer_connections[ready]"), Some(2.0));
        let got = read(&mut rates, 5, 3, 20);
        assert_eq!(of(&got, "janus.nacks_received"), Some(4.0));
        // One handle ends: the sum of the others is not a counter reset.
        let got = read(&mut rates, 10, 1, 25);
        assert_eq!(of(&got, "janus.nacks_received"), Some(1.0));
    }

    #[test]
    fn a_rate_is_that_of_all_handles_also_of_more_than_series_are_kept() {
        let mut rates = Rates::default();
        let mut rate = |second: i64, nacks: f64| {
            let mut round = JanusRound::new(None);
            round.counters = (0..2_500).map(|handle| (handle, [nacks, 0.0])).collect();
            rates.begin();
            round.finish(RunTime(second * 1_000_000), "e", &mut rates);
            rates.end().into_iter().find_map(|reading| match reading {
                Reading::Value(value) if value.metric == COUNTERS[0] => Some(value.value),
                Reading::Value(_) | Reading::Event(..) => None,
            })
        };
        assert_eq!(rate(0, 0.0), None);
        assert_eq!(rate(2, 10.0), Some(12_500.0));
    }

    #[test]
    fn a_janus_with_very_many_sessions_is_not_queried_for_each() {
        let got = read(&mut Rates::default(), 0, 2_000, 0);
        assert_eq!(got[0], ("janus.sessions".to_owned(), 2_000.0));
        assert!(got[1].1 > 900.0);
        assert_eq!(got.len(), 2);
    }

    #[test]
    fn a_wrong_secret_is_reported_with_how_to_fix_it() {
        let mut round = JanusRound::new(None);
        round.next_query();
        let answer = br#"{"janus":"error","error":{"code":403,"reason":"Unauthorized request"}}"#;
        let error = round.process(answer).unwrap_err().to_string();
        assert!(error.contains("Unauthorized") && error.contains("admin_secret"));
    }

    #[test]
    fn answers_in_another_format_do_not_panic() {
        for answer in [
            "",
            "[]",
            "7",
            "{}",
            r#"{"janus":"success","sessions":{"a":1}}"#,
            r#"{"janus":"success","sessions":[-1,"x",1e99]}"#,
        ] {
            let mut round = JanusRound::new(None);
            round.next_query();
            let _ = round.process(answer.as_bytes());
        }
        let mut round = JanusRound::new(None);
        round.handle(
            1,
            &json!({ "webrtc": { "media": [1], "ice": 7 }, "queued-packets": -5, "streams": "x" }),
        );
        round.handle(2, &Json::Null);
        assert_eq!(round.queued_packets, 0.0);
    }
}
