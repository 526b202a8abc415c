//! One scrape of OvenMediaEngine's REST API (reference: "Statistics, Current"): connections and
//! throughput of each virtual host and application.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde_json::Value as Json;

use super::openmetrics::{Kind, Sample};
use super::query::{NUMBER_MAX, Query, UnexpectedAnswer, beginning};

/// Maximum number of queries in one scrape.
const QUERIES_MAX: usize = 100;

/// One scrape.
///
/// Series, with labels `endpoint`, `vhost` and (for an application) `app`: `ome_connections` (by
/// `publisher`: `webrtc`, `llhls`, …), `ome_total_connections`, `ome_received_bytes_total` and
/// `ome_sent_bytes_total` as rates. The values of a virtual host include those of its applications.
#[derive(Debug)]
pub struct OvenMediaEngineRound {
    pending: Option<Question>,
    queue: VecDeque<Question>,
    queries: usize,
    samples: Vec<(&'static str, Kind, Of, Option<String>, f64)>,
}

#[derive(Clone, Debug)]
struct Of {
    vhost: String,
    app: Option<String>,
}

#[derive(Clone, Debug)]
enum Question {
    Vhosts,
    Apps { vhost: String },
    Statistics(Of),
}

impl Default for OvenMediaEngineRound {
    fn default() -> Self {
        Self {
            pending: None,
            queue: VecDeque::from([Question::Vhosts]),
            queries: 0,
            samples: Vec::new(),
        }
    }
}

impl OvenMediaEngineRound {
    pub(super) fn next_query(&mut self) -> Option<Query> {
        if self.queries >= QUERIES_MAX {
            return None;
        }
        let question = self.queue.pop_front()?;
        let path = match &question {
            Question::Vhosts => "/v1/vhosts".to_owned(),
            Question::Apps { vhost } => format!("/v1/vhosts/{vhost}/apps"),
            Question::Statistics(Of { vhost, app: None }) => {
                format!("/v1/stats/current/vhosts/{vhost}")
            }
            Question::Statistics(Of { vhost, app: Some(app) }) => {
                format!("/v1/stats/current/vhosts/{vhost}/apps/{app}")
            }
        };
        self.queries += 1;
        self.pending = Some(question);
        Some(Query { path: Some(path), body: None })
    }

    pub(super) fn process(&mut self, answer: &[u8]) -> Result<(), UnexpectedAnswer> {
        let Some(question) = self.pending.take() else { return Ok(()) };
        let answer: Json = serde_json::from_slice(answer).map_err(|error| {
            UnexpectedAnswer(format!("the answer of OvenMediaEngine is not JSON: {error}"))
        })?;
        let status = answer["statusCode"].as_u64().unwrap_or(0);
        if status != 200 {
            let message = beginning(answer["message"].as_str().unwrap_or("no reason"));
            // An application may end between two queries.
            let ended = status == 404 && !matches!(question, Question::Vhosts);
            return if ended {
                Ok(())
            } else {
                Err(UnexpectedAnswer(format!("OvenMediaEngine refused: {message}")))
            };
        }
        let response = &answer["response"];
        match question {
            Question::Vhosts => {
                for vhost in names(response) {
                    self.queue
                        .push_back(Question::Statistics(Of { vhost: vhost.clone(), app: None }));
                    self.queue.push_back(Question::Apps { vhost });
                }
            }
            Question::Apps { vhost } => {
                let of = |app| Question::Statistics(Of { vhost: vhost.clone(), app: Some(app) });
                self.queue.extend(names(response).into_iter().map(of));
            }
            Question::Statistics(of) => self.statistics(&of, response),
        }
        Ok(())
    }

    fn statistics(&mut self, of: &Of, response: &Json) {
        let connections = response["connections"].as_object().into_iter().flatten();
        for (publisher, count) in connections.take(32) {
            if let (true, Some(count)) = (is_name(publisher), figure(count)) {
                self.samples.push((
                    "ome_connections",
                    Kind::Gauge,
                    of.clone(),
                    Some(publisher.clone()),
                    count,
                ));
            }
        }
        for (metric, kind, field) in [
            ("ome_total_connections", Kind::Gauge, "totalConnections"),
            ("ome_received_bytes_total", Kind::Counter, "totalBytesIn"),
            ("ome_sent_bytes_total", Kind::Counter, "totalBytesOut"),
        ] {
            if let Some(value) = figure(&response[field]) {
                self.samples.push((metric, kind, of.clone(), None, value));
            }
        }
    }

    pub(super) fn samples(&self) -> Vec<Sample<'_>> {
        let sample = |(name, kind, of, publisher, value): &'_ (
            &'static str,
            Kind,
            Of,
            Option<String>,
            f64,
        )| {
            let mut labels = vec![("vhost", Cow::Owned(of.vhost.clone()))];
            labels.extend(of.app.clone().map(|app| ("app", Cow::Owned(app))));
            labels.extend(publisher.clone().map(|publisher| ("publisher", Cow::Owned(publisher))));
            Sample { name, labels, value: *value, kind: *kind }
        };
        self.samples.iter().map(sample).collect()
    }
}

fn figure(value: &Json) -> Option<f64> {
    value.as_f64().filter(|value| (0.0..=NUMBER_MAX).contains(value))
}

/// Names that are safe in a path, so that a server's answer cannot redirect the next query.
fn names(list: &Json) -> Vec<String> {
    let names = list.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    names
        .filter_map(Json::as_str)
        .filter(|name| is_name(name))
        .take(QUERIES_MAX)
        .map(str::to_owned)
        .collect()
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= 64 && name != "." && name != ".." && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Answers as in the reference.
    fn server(path: &str) -> Json {
        let statistics = json!({ "connections": { "llhls": 2, "webrtc": 40 }, "totalConnections": 42,
            "totalBytesIn": 1000, "totalBytesOut": 40_000, "createdTime": "2023-03-15T19:46:13.728+09:00" });
        let response = match path {
            "/v1/vhosts" => json!(["default", "../../admin", 7]),
            "/v1/vhosts/default/apps" => json!(["app", "gone"]),
            "/v1/stats/current/vhosts/default/apps/gone" => {
                return json!({ "statusCode": 404, "message": "no" });
            }
            "/v1/stats/current/vhosts/default" | "/v1/stats/current/vhosts/default/apps/app" => {
                statistics
            }
            other => panic!("asked for {other}"),
        };
        json!({ "statusCode": 200, "message": "OK", "response": response })
    }

    #[test]
    fn connections_and_bytes_of_each_vhost_and_app_are_read() {
        let mut round = OvenMediaEngineRound::default();
        while let Some(query) = round.next_query() {
            round.process(server(&query.path.unwrap()).to_string().as_bytes()).unwrap();
        }
        let samples = round.samples();
        let of = |name: &str, app: Option<&str>, publisher: Option<&str>| {
            let label = |sample: &Sample<'_>, name: &str| {
                sample
                    .labels
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| value.to_string())
            };
            let fits = |sample: &&Sample<'_>| {
                sample.name == name
                    && label(sample, "app").as_deref() == app
                    && label(sample, "publisher").as_deref() == publisher
            };
            samples.iter().find(fits).map(|sample| sample.value)
        };
        assert_eq!(of("ome_connections", Some("app"), Some("webrtc")), Some(40.0));
        assert_eq!(of("ome_total_connections", None, None), Some(42.0));
        assert_eq!(of("ome_sent_bytes_total", Some("app"), None), Some(40_000.0));
    }

    #[test]
    fn a_wrong_token_is_reported() {
        let mut round = OvenMediaEngineRound::default();
        round.next_query();
        let answer = json!({ "statusCode": 401, "message": "[HTTP] Authorization header is required to call API (401)" });
        assert!(
            round
                .process(answer.to_string().as_bytes())
                .unwrap_err()
                .to_string()
                .contains("Authorization")
        );
    }

    #[test]
    fn a_faulty_server_is_queried_at_most_up_to_the_limit() {
        let mut round = OvenMediaEngineRound::default();
        let many: Vec<_> = (0..5_000).map(|n| format!("v{n}")).collect();
        let mut asks = 0;
        while round.next_query().is_some() {
            asks += 1;
            round
                .process(json!({ "statusCode": 200, "response": many }).to_string().as_bytes())
                .unwrap();
        }
        assert_eq!(asks, QUERIES_MAX);
    }
}
