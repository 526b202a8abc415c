//! One scrape of an endpoint: the next query, and the result of all answers. Each kind of endpoint
//! is such a state machine, independent of the transport (HTTP, WebSocket, a test).

use throng_observation::RunTime;
use throng_observation::pack::EndpointKind;

use super::filter::Filter;
use super::janus::JanusRound;
use super::openmetrics::{Kind, SAMPLES_MAX, Sample, parse};
use super::oven_media_engine::OvenMediaEngineRound;
use super::query::{Query, UnexpectedAnswer, beginning};
use super::rates::{COUNTERS_MAX, Rates, SERIES_MAX};
use super::status_page;
use crate::reading::Reading;

/// One scrape of an endpoint.
#[derive(Debug)]
pub enum Round {
    /// A text page: one query, one answer.
    Page {
        /// The kind of page.
        kind: EndpointKind,
        /// Whether the query was sent.
        is_queried: bool,
        /// The answer.
        answer: Option<String>,
    },
    /// Janus's admin API.
    Janus(JanusRound),
    /// OvenMediaEngine's REST API.
    OvenMediaEngine(OvenMediaEngineRound),
}

impl Round {
    /// A scrape of an endpoint of this kind; `secret` is sent inside the queries of kinds that need
    /// it.
    #[must_use]
    pub fn new(kind: EndpointKind, secret: Option<&str>) -> Self {
        match kind {
            EndpointKind::JanusAdmin => Self::Janus(JanusRound::new(secret)),
            EndpointKind::OvenMediaEngine => Self::OvenMediaEngine(OvenMediaEngineRound::default()),
            kind => Self::Page { kind, is_queried: false, answer: None },
        }
    }

    /// The next query; `None` when there are no more.
    pub fn next_query(&mut self) -> Option<Query> {
        match self {
            Self::Page { is_queried, .. } => {
                (!std::mem::replace(is_queried, true)).then_some(Query { path: None, body: None })
            }
            Self::Janus(round) => round.next_query(),
            Self::OvenMediaEngine(round) => round.next_query(),
        }
    }

    /// Processes the answer to the last query.
    ///
    /// # Errors
    /// When the answer has another format; the scrape has failed then.
    pub fn process(&mut self, answer: &[u8]) -> Result<(), UnexpectedAnswer> {
        match self {
            Self::Page { answer: kept, .. } => {
                *kept = Some(String::from_utf8_lossy(answer).into_owned());
                Ok(())
            }
            Self::Janus(round) => round.process(answer),
            Self::OvenMediaEngine(round) => round.process(answer),
        }
    }

    /// The readings of all answers.
    ///
    /// # Errors
    /// When a page has another format.
    pub fn finish(
        self,
        at: RunTime,
        endpoint: &str,
        filter: &Filter,
        rates: &mut Rates,
    ) -> Result<Vec<Reading>, UnexpectedAnswer> {
        rates.begin();
        let mut readings = Vec::new();
        match self {
            Self::Page { kind, answer, .. } => {
                page(kind, &answer.unwrap_or_default(), at, endpoint, filter, rates)?;
            }
            Self::Janus(round) => readings = round.finish(at, endpoint, rates),
            Self::OvenMediaEngine(round) => {
                rates.add(at, endpoint, &round.samples(), &filter.dropped_labels);
            }
        }
        readings.extend(rates.end());
        readings.extend(left_out(endpoint, rates));
        Ok(readings)
    }
}

/// Events for what is not among the readings of a scrape.
fn left_out(endpoint: &str, rates: &mut Rates) -> Vec<Reading> {
    let mut events = Vec::new();
    let over_limit = rates.take_over_limit();
    if over_limit > 0 {
        events.push(Reading::unreadable(format!(
            "the endpoint {endpoint} has more than {SERIES_MAX} allowed series: {over_limit} \
             values are not kept; allow fewer metrics, or deny those with many labels"
        )));
    }
    let partial = rates.partial();
    if partial > 0 {
        events.push(Reading::unreadable(format!(
            "the endpoint {endpoint} has too many sessions: {partial} series would lack some of \
             them, and are left out; at most {SAMPLES_MAX} samples of an answer and \
             {COUNTERS_MAX} counters of sessions are kept: allow fewer metrics, or deny some"
        )));
    }
    events
}

fn page(
    kind: EndpointKind,
    text: &str,
    at: RunTime,
    endpoint: &str,
    filter: &Filter,
    rates: &mut Rates,
) -> Result<(), UnexpectedAnswer> {
    let fixed = |samples: Option<Vec<Sample<'static>>>, page: &str| {
        samples.ok_or_else(|| {
            UnexpectedAnswer(format!("the answer is not {page}: {}", beginning(text)))
        })
    };
    let samples = match kind {
        EndpointKind::NginxStatus => fixed(status_page::nginx(text), "the page of stub_status")?,
        EndpointKind::LighttpdStatus => {
            fixed(status_page::lighttpd(text), "the page of server-status?auto")?
        }
        _ => {
            let read = parse(text, |name| filter.keeps(name));
            if read.bad_lines > 0 && read.samples.is_empty() {
                let line = read.first_bad_line.unwrap_or_default();
                return Err(UnexpectedAnswer(format!(
                    "the answer is not Prometheus or OpenMetrics text: {line}"
                )));
            }
            if read.samples_over_limit > 0 {
                rates.cut_answer();
            }
            let mut samples = read.samples;
            for sample in &mut samples {
                // Below zero nothing was counted.
                if filter.counts(sample.name) && sample.value >= 0.0 {
                    sample.kind = Kind::Counter;
                }
            }
            samples
        }
    };
    rates.add(at, endpoint, &samples, &filter.dropped_labels);
    Ok(())
}

#[cfg(test)]
mod tests {
    use throng_observation::host::Unit;

    use super::*;

    fn read(kind: EndpointKind, answer: &str) -> Result<Vec<Reading>, UnexpectedAnswer> {
        let mut round = Round::new(kind, None);
        assert_eq!(round.next_query(), Some(Query { path: None, body: None }));
        round.process(answer.as_bytes()).unwrap();
        assert_eq!(round.next_query(), None);
        round.finish(RunTime(0), "e", &Filter::default(), &mut Rates::default())
    }

    #[test]
    fn a_page_in_another_format_is_an_error() {
        let kinds =
            [EndpointKind::OpenMetrics, EndpointKind::NginxStatus, EndpointKind::LighttpdStatus];
        for kind in kinds {
            let error = read(kind, "<html><body>login</body></html>").unwrap_err().to_string();
            assert!(error.contains("login") || error.contains("<html>"), "{error}");
        }
    }

    #[test]
    fn an_endpoint_without_series_is_no_error() {
        assert_eq!(read(EndpointKind::OpenMetrics, "# EOF\n"), Ok(vec![]));
    }

    /// Viewers of one stream, as MediaMTX says it: no `# TYPE`, no `_total`, ids of sessions.
    fn mediamtx(sent: &[u32]) -> String {
        let sum: u32 = sent.iter().sum();
        let mut text = format!("paths_bytes_sent{{name=\"live\",state=\"ready\"}} {sum}\n");
        for (id, sent) in sent.iter().enumerate() {
            let labels = format!(
                "{{id=\"{id}\",path=\"live\",remoteAddr=\"10.0.0.1:{id}\",state=\"read\"}}"
            );
            text += &format!("rtsp_sessions{labels} 1\nrtsp_sessions_bytes_sent{labels} {sent}\n");
            text += &format!("rtsp_sessions_rtp_packets_jitter{labels} 7\n");
        }
        text
    }

    /// A scrape of MediaMTX as its pack says.
    fn scraped(rates: &mut Rates, second: i64, text: &str) -> Vec<Reading> {
        let pack = crate::packs::built_in().into_iter().find(|pack| pack.pack == "mediamtx");
        let filter = Filter::of_pack(&pack.unwrap().endpoints[0]);
        let mut round = Round::new(EndpointKind::OpenMetrics, None);
        assert!(round.next_query().is_some());
        round.process(text.as_bytes()).unwrap();
        round.finish(RunTime(second * 1_000_000), "e", &filter, rates).unwrap()
    }

    fn value(readings: &[Reading], name: &str) -> Vec<(Unit, f64)> {
        let found = readings.iter().filter_map(|reading| match reading {
            Reading::Value(value) if value.metric == name => Some((value.unit, value.value)),
            Reading::Value(_) | Reading::Event(..) => None,
        });
        found.collect()
    }

    #[test]
    fn counters_of_mediamtx_are_rates_and_its_sessions_are_added_up() {
        let mut rates = Rates::default();
        scraped(&mut rates, 0, &mediamtx(&[0, 100]));
        let readings = scraped(&mut rates, 2, &mediamtx(&[1_000, 1_100]));
        let rate = [(Unit::BytesPerSecond, 1_000.0)];
        assert_eq!(value(&readings, "paths_bytes_sent"), rate);
        assert_eq!(value(&readings, "rtsp_sessions_bytes_sent"), rate);
        assert_eq!(value(&readings, "rtsp_sessions"), [(Unit::Count, 2.0)]);
        assert!(value(&readings, "rtsp_sessions_rtp_packets_jitter").is_empty(), "no sum");
        assert_eq!(readings.len(), 3, "{readings:?}");
    }

    #[test]
    fn of_more_sessions_than_series_are_kept_the_sum_is_that_of_all() {
        let mut rates = Rates::default();
        let sent: Vec<u32> = (0..3_000).collect();
        scraped(&mut rates, 0, &mediamtx(&sent));
        let sent: Vec<u32> = sent.into_iter().map(|sent| sent + 1_000).collect();
        let readings = scraped(&mut rates, 2, &mediamtx(&sent));
        let rate = [(Unit::BytesPerSecond, 1_500_000.0)];
        assert_eq!(value(&readings, "paths_bytes_sent"), rate);
        assert_eq!(value(&readings, "rtsp_sessions_bytes_sent"), rate);
        assert_eq!(value(&readings, "rtsp_sessions"), [(Unit::Count, 3_000.0)]);
        assert_eq!(readings.len(), 3, "nothing is left out");
    }

    #[test]
    fn a_part_of_the_sessions_is_no_sum() {
        let line = |id| format!("rtsp_sessions{{id=\"{id}\",path=\"live\"}} 1\n");
        let sessions: String = (0..=SAMPLES_MAX).map(line).collect();
        let text = format!("paths{{name=\"live\"}} 1\n{sessions}");
        let readings = scraped(&mut Rates::default(), 0, &text);
        assert_eq!(value(&readings, "paths"), [(Unit::Count, 1.0)], "no sum");
        let left_out = value(&readings, "rtsp_sessions");
        assert!(left_out.len() == 1 && left_out[0].1.is_nan(), "{left_out:?}");
        let said = readings.last();
        assert!(
            matches!(said, Some(Reading::Event(_, detail)) if detail.contains("1 series would lack")),
            "{said:?}"
        );
    }

    #[test]
    fn a_flood_of_series_is_reported() {
        let flood: String = (0..=SERIES_MAX).map(|n| format!("x{{id=\"{n}\"}} 1\n")).collect();
        let readings = read(EndpointKind::OpenMetrics, &flood).unwrap();
        let said = |readings: &Reading| matches!(readings, Reading::Event(_, detail) if detail.contains("more than 2000 allowed series"));
        assert!(readings.last().is_some_and(said));
    }
}
