//! What a request is answered with.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use throng_report::openmetrics::TextFormat;

use super::LiveMetrics;
use super::host_header::is_meant;

/// How long a page is answered again: figures are of seconds, and who asks in a loop costs the
/// crowd nothing.
const PAGE_LASTS: Duration = Duration::from_secs(1);

/// The answers of one endpoint.
#[derive(Debug)]
pub(super) struct Answers {
    metrics: LiveMetrics,
    address: SocketAddr,
    host: String,
    page: Mutex<Option<Page>>,
}

/// The figures of a moment in both formats.
#[derive(Debug)]
struct Page {
    at: Instant,
    open_metrics: Bytes,
    prometheus: Bytes,
}

impl Answers {
    /// Of an endpoint at `address`, for which `host` was asked.
    pub(super) fn new(metrics: LiveMetrics, address: SocketAddr, host: String) -> Self {
        Self { metrics, address, host, page: Mutex::new(None) }
    }

    /// The answer to a request.
    pub(super) fn to<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !self.is_for_us(request) {
            let help = format!(
                "This endpoint is asked by address, as localhost, or as {}: listen on the name \
                 that Prometheus uses.\n",
                self.host
            );
            return text(StatusCode::FORBIDDEN, help);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET.\n".into());
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            "/metrics" => {
                let accept = request.headers().get(header::ACCEPT);
                let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
                let format = TextFormat::accepted(accept);
                with_type(StatusCode::OK, format.content_type(), self.page(format))
            }
            "/" => text(StatusCode::OK, format!("throng: http://{}/metrics\n", self.address)),
            _ => text(StatusCode::NOT_FOUND, "The figures are at /metrics.\n".into()),
        }
    }

    fn is_for_us<B>(&self, request: &Request<B>) -> bool {
        let of_header = || request.headers().get(header::HOST)?.to_str().ok();
        let named = request.uri().authority().map(Authority::as_str).or_else(of_header);
        named.is_some_and(|named| is_meant(named, &self.host))
    }

    fn page(&self, format: TextFormat) -> Bytes {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = page.take().filter(|page| page.at.elapsed() < PAGE_LASTS);
        let page = page.insert(fresh.unwrap_or_else(|| self.render()));
        match format {
            TextFormat::OpenMetrics => page.open_metrics.clone(),
            TextFormat::Prometheus => page.prometheus.clone(),
        }
    }

    fn render(&self) -> Page {
        // Rows wait for this, and not for the text.
        let exposition = self.metrics.exposition();
        Page {
            at: Instant::now(),
            open_metrics: exposition.text(TextFormat::OpenMetrics).into(),
            prometheus: exposition.text(TextFormat::Prometheus).into(),
        }
    }
}

fn with_type(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", body.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use throng_report::openmetrics::Metrics;

    use super::*;

    fn answers() -> Answers {
        let metrics = LiveMetrics(Arc::new(Mutex::new(Metrics::of_watch("1.2.3"))));
        Answers::new(metrics, ([127, 0, 0, 1], 9464).into(), "127.0.0.1".into())
    }

    fn status(method: Method, uri: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = answers().to(&request.body(()).unwrap());
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind)
    }

    #[test]
    fn only_who_asks_this_endpoint_for_its_figures_gets_them() {
        let host = ("host", "127.0.0.1:9464");
        let open = TextFormat::OpenMetrics.content_type().to_owned();
        assert_eq!(status(Method::GET, "/metrics", &[host]), (200, open.clone()));
        assert_eq!(status(Method::HEAD, "/metrics?x=1", &[host]), (200, open));
        let plain = TextFormat::Prometheus.content_type().to_owned();
        let accept = ("accept", "text/plain");
        assert_eq!(status(Method::GET, "/metrics", &[host, accept]), (200, plain));
        assert_eq!(status(Method::GET, "/", &[host]).0, 200);
        assert_eq!(status(Method::GET, "/secret", &[host]).0, 404);
        assert_eq!(status(Method::POST, "/metrics", &[host]).0, 405);
        assert_eq!(status(Method::GET, "/metrics", &[]).0, 403);
        assert_eq!(status(Method::GET, "/metrics", &[("host", "evil.example")]).0, 403);
        assert_eq!(status(Method::GET, "http://evil.example/metrics", &[host]).0, 403);
    }

    #[test]
    fn a_page_is_rendered_once_for_all_who_ask_within_a_second() {
        let answers = answers();
        let first = answers.page(TextFormat::OpenMetrics);
        answers.metrics.set_subject("scenario", std::path::Path::new("runs/7"));
        assert_eq!(answers.page(TextFormat::OpenMetrics), first);
        *answers.page.lock().unwrap() = None;
        let text = String::from_utf8(answers.page(TextFormat::Prometheus).into()).unwrap();
        assert!(text.contains("scenario=\"scenario\",run=\"7\""), "{text}");
    }
}
