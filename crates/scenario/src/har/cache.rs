//! What a browser's cache has of a response (RFC 9111), from its recorded headers.

use std::time::Duration;

use throng_observation::calendar::http_us;

use super::plan::WhenWarm;

/// Statuses that are kept without an explicit lifetime (RFC 9110 section 15.1), as far as browsers
/// do; 304 stands for what the recording browser had kept.
const KEPT: [u16; 7] = [200, 203, 300, 301, 304, 308, 410];
/// Those that are kept with one.
const KEPT_WITH_LIFETIME: [u16; 4] = [204, 302, 307, 404];
/// Those whose lifetime, without any other, follows from their `Last-Modified`.
const WITH_HEURISTIC: [u16; 3] = [200, 203, 304];
/// Redirects that are for ever, and what is gone.
const LASTING: [u16; 4] = [300, 301, 308, 410];

/// What a viewer does with a response that was stored `age` ago. Names of headers may have any
/// case.
#[must_use]
pub fn when_warm(status: u16, headers: &[(String, String)], age: Duration) -> WhenWarm {
    let control = CacheControl::of(headers);
    let lifetime_s = lifetime_s(status, headers, &control);
    let is_kept =
        KEPT.contains(&status) || (KEPT_WITH_LIFETIME.contains(&status) && lifetime_s.is_some());
    // A response that varies by everything answers no other request (section 4.1).
    let varies = value(headers, "vary").is_some_and(|vary| vary.trim() == "*");
    if control.no_store || !is_kept || varies {
        return WhenWarm::Requested;
    }
    let age_before_s: i64 =
        value(headers, "age").and_then(|age| age.trim().parse().ok()).unwrap_or(0);
    let age_s =
        age_before_s.max(0).saturating_add(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
    if !control.no_cache && lifetime_s.is_some_and(|lifetime_s| lifetime_s > age_s) {
        return WhenWarm::FromCache;
    }
    let validators = [("if-none-match", "etag"), ("if-modified-since", "last-modified")];
    let conditions: Vec<(String, String)> = validators
        .into_iter()
        .filter(|_| WITH_HEURISTIC.contains(&status))
        .filter_map(|(condition, of)| Some((condition.to_owned(), value(headers, of)?.to_owned())))
        .collect();
    if conditions.is_empty() { WhenWarm::Requested } else { WhenWarm::Revalidated(conditions) }
}

/// How long a response is fresh, seconds (section 4.2.1); `None` if nothing says it.
fn lifetime_s(status: u16, headers: &[(String, String)], control: &CacheControl) -> Option<i64> {
    if let Some(max_age_s) = control.max_age_s {
        return Some(max_age_s);
    }
    let date_s = value(headers, "date").and_then(http_s);
    if let Some(expires) = value(headers, "expires") {
        // What is no date, such as 0, has expired (section 5.3).
        return Some(
            http_s(expires).zip(date_s).map_or(0, |(expires_s, date_s)| expires_s - date_s),
        );
    }
    // Never changes (RFC 8246).
    if control.immutable || LASTING.contains(&status) {
        return Some(i64::MAX);
    }
    // A tenth of the time since it was changed, as in section 4.2.2 and Chromium.
    let modified_s = value(headers, "last-modified").and_then(http_s);
    let unchanged_s =
        date_s.zip(modified_s).map(|(date_s, modified_s)| (date_s - modified_s).max(0));
    unchanged_s
        .filter(|_| WITH_HEURISTIC.contains(&status) && !control.must_revalidate)
        .map(|unchanged_s| unchanged_s / 10)
}

/// A date of HTTP, seconds since 1970.
fn http_s(text: &str) -> Option<i64> {
    http_us(text).map(|us| us / 1_000_000)
}

/// The directives of a response that browsers heed (section 5.2.2).
#[derive(Debug, Default)]
struct CacheControl {
    no_store: bool,
    no_cache: bool,
    must_revalidate: bool,
    immutable: bool,
    max_age_s: Option<i64>,
}

impl CacheControl {
    fn of(headers: &[(String, String)]) -> Self {
        let mut control = Self::default();
        let lists = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"));
        for directive in lists.flat_map(|(_, list)| list.split(',')) {
            let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => control.no_store = true,
                // With a list of fields it is about these only.
                "no-cache" => control.no_cache = argument.is_empty(),
                "must-revalidate" => control.must_revalidate = true,
                "immutable" => control.immutable = true,
                // The first counts; what is no number is stale (section 4.2.1).
                "max-age" if control.max_age_s.is_none() => {
                    control.max_age_s = Some(seconds(argument.trim().trim_matches('"')));
                }
                _ => {}
            }
        }
        control
    }
}

/// Delta seconds (section 1.2.2): what is too large is 2^31.
fn seconds(text: &str) -> i64 {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().unwrap_or(1 << 31) } else { 0 }
}

/// The first header of this name.
fn value<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
    /// A hundred days before.
    const CHANGED: (&str, &str) = ("Last-Modified", "Fri, 29 Jul 1994 08:49:37 GMT");
    const TAG: (&str, &str) = ("ETag", "\"a1\"");

    #[test]
    fn a_cache_uses_revalidates_or_lacks_a_response_as_rfc_9111_says() {
        let revalidated = |conditions: &[(&str, &str)]| {
            WhenWarm::Revalidated(
                conditions.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            )
        };
        let by_tag = revalidated(&[("if-none-match", "\"a1\"")]);
        let by_date = revalidated(&[("if-modified-since", CHANGED.1)]);
        let by_both = revalidated(&[("if-none-match", "\"a1\""), ("if-modified-since", CHANGED.1)]);
        let control = |value| ("cache-control", value);
        type Case = (u16, Vec<(&'static str, &'static str)>, u64, WhenWarm);
        let cases: [Case; 24] = [
            (200, vec![control("max-age=60")], 0, WhenWarm::FromCache),
            (200, vec![control("max-age=60")], 60, WhenWarm::Requested),
            (200, vec![control("public, MAX-AGE=60"), TAG], 60, by_tag.clone()),
            (200, vec![control("max-age=60"), ("age", "60"), TAG], 0, by_tag.clone()),
            (200, vec![control("max-age=x"), TAG], 0, by_tag.clone()),
            (200, vec![control("max-age=99999999999999999999")], 86_400, WhenWarm::FromCache),
            (200, vec![control("max-age=31536000, immutable"), TAG], 86_400, WhenWarm::FromCache),
            (200, vec![control("immutable")], 86_400, WhenWarm::FromCache),
            (200, vec![control("no-store, max-age=60"), TAG], 0, WhenWarm::Requested),
            (200, vec![control("max-age=60, no-cache"), TAG, CHANGED], 0, by_both),
            (200, vec![control("no-cache=\"set-cookie\", max-age=60")], 0, WhenWarm::FromCache),
            (200, vec![control("no-cache")], 0, WhenWarm::Requested),
            (200, vec![("expires", "Sun, 06 Nov 1994 09:49:37 GMT"), DATE], 0, WhenWarm::FromCache),
            (
                200,
                vec![("expires", "Sun, 06 Nov 1994 09:49:37 GMT"), DATE, TAG],
                3_600,
                by_tag.clone(),
            ),
            (200, vec![("expires", "0"), DATE, TAG], 0, by_tag.clone()),
            // The heuristic: ten of a hundred days.
            (200, vec![DATE, CHANGED], 9 * 86_400, WhenWarm::FromCache),
            (200, vec![DATE, CHANGED], 11 * 86_400, by_date.clone()),
            (200, vec![DATE, CHANGED, control("must-revalidate")], 0, by_date),
            (200, vec![("vary", "*"), control("max-age=60")], 0, WhenWarm::Requested),
            (301, vec![], 86_400, WhenWarm::FromCache),
            (302, vec![], 0, WhenWarm::Requested),
            (404, vec![control("max-age=60")], 0, WhenWarm::FromCache),
            (500, vec![control("max-age=60")], 0, WhenWarm::Requested),
            (206, vec![control("max-age=60"), TAG], 0, WhenWarm::Requested),
        ];
        for (status, headers, age_s, expect) in cases {
            let owned: Vec<_> = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let found = when_warm(status, &owned, Duration::from_secs(age_s));
            assert_eq!(found, expect, "{status} {headers:?} after {age_s} s");
        }
    }
}
