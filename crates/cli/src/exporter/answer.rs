//! What a scraper is answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use throng_report::openmetrics::{Exposition, Format};

use super::LiveFigures;
use crate::http_server::{Reply, Site, is_read, only_read, text, whole};

/// How long a page is answered again: figures are of seconds, and who asks in a loop costs the
/// crowd nothing.
const PAGE_LASTS: Duration = Duration::from_secs(1);

/// The answers of one endpoint.
#[derive(Debug)]
pub(super) struct Answers {
    figures: LiveFigures,
    /// Where it is, as it is written in a URL.
    authority: String,
    page: Option<Page>,
}

/// The figures of a moment.
#[derive(Debug)]
struct Page {
    at: Instant,
    exposition: Exposition,
    /// As they are written, in the formats that somebody has asked for.
    written: BTreeMap<Format, Bytes>,
}

impl Site for Answers {
    fn answer(&mut self, request: &Request<()>) -> Reply {
        if !is_read(request) {
            return only_read().into();
        }
        let response = match request.uri().path() {
            "/metrics" => {
                let accept = request.headers().get(header::ACCEPT);
                let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
                let format = Format::accepted(accept);
                whole(StatusCode::OK, format.content_type(), self.page(format, Instant::now()))
            }
            "/" => text(StatusCode::OK, format!("throng: http://{}/metrics\n", self.authority)),
            _ => text(StatusCode::NOT_FOUND, "The figures are at /metrics.\n".into()),
        };
        response.into()
    }
}

impl Answers {
    /// Of an endpoint at `authority`, as it is written in a URL.
    pub(super) fn new(figures: LiveFigures, authority: String) -> Self {
        Self { figures, authority, page: None }
    }

    /// The page of a moment.
    fn page(&mut self, format: Format, now: Instant) -> Bytes {
        let age = |page: &Page| now.saturating_duration_since(page.at);
        let fresh = self.page.take().filter(|page| age(page) < PAGE_LASTS);
        // Rows wait for the figures, and not for what is written of them.
        let fresh = fresh.unwrap_or_else(|| Page {
            at: now,
            exposition: self.figures.exposition(),
            written: BTreeMap::new(),
        });
        let Page { exposition, written, .. } = self.page.insert(fresh);
        written.entry(format).or_insert_with(|| exposition.written(format).into()).clone()
    }
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use throng_report::openmetrics::{Metrics, TextFormat};

    use super::*;

    fn answers() -> Answers {
        let figures = LiveFigures::new(Metrics::of_watch("1.2.3"), None);
        Answers::new(figures, "127.0.0.1:9464".to_owned())
    }

    fn status(method: Method, uri: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let Reply::Whole(response) = answers().answer(&request.body(()).unwrap()) else {
            panic!("figures are no events");
        };
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind)
    }

    const OPEN_METRICS: Format = Format::Text(TextFormat::OpenMetrics);
    const PROMETHEUS: Format = Format::Text(TextFormat::Prometheus);

    #[test]
    fn figures_are_at_one_path_in_the_format_that_is_accepted() {
        let open = OPEN_METRICS.content_type().to_owned();
        assert_eq!(status(Method::GET, "/metrics", &[]), (200, open.clone()));
        assert_eq!(status(Method::HEAD, "/metrics?x=1", &[]), (200, open));
        let protobuf = "application/vnd.google.protobuf; \
                        proto=io.prometheus.client.MetricFamily; encoding=delimited";
        for (accept, expect) in
            [("text/plain", PROMETHEUS.content_type()), (protobuf, Format::Protobuf.content_type())]
        {
            let answered = status(Method::GET, "/metrics", &[("accept", accept)]);
            assert_eq!(answered, (200, expect.to_owned()), "{accept}");
        }
        assert_eq!(status(Method::GET, "/", &[]).0, 200);
        assert_eq!(status(Method::GET, "/secret", &[]).0, 404);
        assert_eq!(status(Method::POST, "/metrics", &[]).0, 405);
    }

    #[test]
    fn a_page_is_rendered_once_for_all_who_ask_within_a_second() {
        let (mut answers, now) = (answers(), Instant::now());
        let first = answers.page(OPEN_METRICS, now);
        answers.figures.set_subject("evening", std::path::Path::new("runs/7"), 0);
        let soon = now + PAGE_LASTS - Duration::from_nanos(1);
        assert_eq!(answers.page(OPEN_METRICS, soon), first);
        // Another format is of the same moment.
        let is_named = |page: &Bytes| page.windows(7).any(|part| part == b"evening");
        assert!(!is_named(&answers.page(Format::Protobuf, soon)));
        assert!(is_named(&answers.page(Format::Protobuf, now + PAGE_LASTS)));
        let page = answers.page(PROMETHEUS, now + PAGE_LASTS);
        let text = String::from_utf8(page.into()).unwrap();
        assert!(text.contains("scenario=\"evening\",run=\"7\""), "{text}");
    }
}
