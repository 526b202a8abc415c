//! What the standard environment variables of OpenTelemetry say: lists `NAME=VALUE,NAME=VALUE`,
//! whose values are percent-encoded, and the form of histograms.

use hyper::header::{HeaderName, HeaderValue};
use throng_observation::percent::decoded;
use throng_report::otlp::HistogramForm;
use throng_scenario::Secret;

/// Headers of requests, such as a key of the collector.
pub(super) const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Attributes of the resource.
pub(super) const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// The name of the service, which goes before that of the attributes.
pub(super) const SERVICE: &str = "OTEL_SERVICE_NAME";
/// By which bounds histograms count.
pub(super) const HISTOGRAMS: &str = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";
/// The attribute that the name of the service is.
const SERVICE_ATTRIBUTE: &str = "service.name";

/// What is sent beside the figures.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) headers: Vec<(HeaderName, Secret)>,
    /// In their order; a later one replaces one before.
    pub(super) attributes: Vec<(String, String)>,
    pub(super) histograms: HistogramForm,
}

impl Environment {
    /// Reads the variables by `variable`. An error names the variable, and nothing of its value.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let list = |name: &str| pairs(name, &variable(name).unwrap_or_default());
        let headers = list(HEADERS)?.into_iter().map(|(name, value)| header(&name, &value));
        let headers = headers.collect::<Option<Vec<_>>>().ok_or_else(|| no_list(HEADERS))?;
        let mut attributes = list(ATTRIBUTES)?;
        let service = variable(SERVICE).filter(|name| !name.is_empty());
        attributes.extend(service.map(|name| (SERVICE_ATTRIBUTE.to_owned(), name)));
        let histograms = variable(HISTOGRAMS).unwrap_or_default();
        Ok(Self { headers, attributes, histograms: form(&histograms)? })
    }
}

/// The pairs of a list, which may be empty.
fn pairs(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| {
        let (name, value) = item.split_once('=')?;
        let name = decoded(name.trim());
        (!name.is_empty()).then(|| (name, decoded(value.trim())))
    };
    items.map(|item| pair(item).ok_or_else(|| no_list(variable))).collect()
}

fn header(name: &str, value: &str) -> Option<(HeaderName, Secret)> {
    HeaderValue::from_str(value).ok()?;
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, Secret::new(value)))
}

/// The form that the specification calls so, in whatever case; empty is as absent.
fn form(name: &str) -> Result<HistogramForm, String> {
    let [explicit, exponential] =
        ["explicit_bucket_histogram", "base2_exponential_bucket_histogram"];
    match name.trim().to_ascii_lowercase().as_str() {
        "" => Ok(HistogramForm::default()),
        name if name == explicit => Ok(HistogramForm::Explicit),
        name if name == exponential => Ok(HistogramForm::Exponential),
        _ => Err(format!("{HISTOGRAMS} is unknown\n  help: {explicit} or {exponential}")),
    }
}

fn no_list(variable: &str) -> String {
    format!(
        "{variable} is no list NAME=VALUE,NAME=VALUE\n  help: encode blanks, commas and the like: \
         authorization=Bearer%20TOKEN"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &str, attributes: &str, service: &str) -> Result<Environment, String> {
        Environment::read(|name| {
            let known = [(HEADERS, headers), (ATTRIBUTES, attributes), (SERVICE, service)];
            known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn lists_are_decoded_and_the_name_of_the_service_is_last() {
        let of = read("Authorization=Bearer%20a%3Db, x-team = lab,", "a.b=c%2Cd", "load").unwrap();
        let headers: Vec<_> =
            of.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("authorization", "Bearer a=b"), ("x-team", "lab")]);
        let attributes = [("a.b", "c,d"), ("service.name", "load")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(of.attributes, attributes);
        let none = Environment::read(|_| None).unwrap();
        assert!(none.headers.is_empty() && none.attributes.is_empty());
    }

    #[test]
    fn the_form_of_histograms_is_what_the_specification_calls_so() {
        let read = |form: &str| {
            let variable = |name: &str| (name == HISTOGRAMS).then(|| form.to_owned());
            Environment::read(variable).map(|of| of.histograms)
        };
        for (name, expect) in [
            ("", HistogramForm::Explicit),
            ("explicit_bucket_histogram", HistogramForm::Explicit),
            ("base2_exponential_bucket_histogram", HistogramForm::Exponential),
            (" BASE2_exponential_bucket_histogram", HistogramForm::Exponential),
        ] {
            assert_eq!(read(name), Ok(expect), "{name}");
        }
        let why = read("hunter2").unwrap_err();
        assert!(why.starts_with(HISTOGRAMS) && !why.contains("hunter2"), "{why}");
        assert!(why.contains("help: "), "{why}");
    }

    #[test]
    fn what_is_wrong_is_named_without_its_secret() {
        for headers in ["hunter2", "=hunter2", "a b=hunter2", "key=hunter2%0d%0aevil: 1"] {
            let why = read(headers, "", "").unwrap_err();
            assert!(why.starts_with(HEADERS) && !why.contains("hunter2"), "{why}");
        }
        assert!(read("", "hunter2", "").unwrap_err().starts_with(ATTRIBUTES));
        let of = read("key=hunter2", "", "").unwrap();
        assert!(!format!("{of:?}").contains("hunter2"));
    }
}
