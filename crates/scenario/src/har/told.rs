//! What a recorded page tells its servers alone.

use throng_observation::Url;

use super::plan::PagePlan;
use crate::secret::{Secret, may_be_shown};
use crate::target::secrets_of;

/// How headers begin that browsers set by themselves, whatever the page.
const OF_BROWSERS_BEGIN: [&str; 4] = ["accept", "access-control-", "if-", "sec-"];

/// Other headers that browsers set by themselves.
const OF_BROWSERS: [&str; 9] = [
    "content-type",
    "dnt",
    "origin",
    "priority",
    "purpose",
    "range",
    "referer",
    "save-data",
    "upgrade-insecure-requests",
];

impl PagePlan {
    /// What its URLs have that servers are told and nobody else, those that requests refer to too.
    pub fn secrets_of_urls(&self) -> impl Iterator<Item = Secret> + '_ {
        let headers = self.requests.iter().flat_map(|request| &request.headers);
        let referers = headers.filter(|(name, _)| name == "referer");
        let referers = referers.filter_map(|(_, value)| Url::parse(value).ok());
        let of_referers = referers.flat_map(|url| secrets_of(&url).collect::<Vec<_>>());
        self.requests.iter().flat_map(|request| secrets_of(&request.url)).chain(of_referers)
    }

    /// The headers of its requests whose values may be secrets: names in lower case, and values.
    pub fn secret_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.requests.iter().flat_map(|request| &request.headers);
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
        headers.filter(|(name, value)| {
            !is_of_browsers(name) && !may_be_shown(&format!("{name}={value}"))
        })
    }
}

/// Whether the values of a header are a browser's own, and many of them words of sentences.
fn is_of_browsers(name: &str) -> bool {
    OF_BROWSERS.contains(&name) || OF_BROWSERS_BEGIN.iter().any(|begin| name.starts_with(begin))
}
