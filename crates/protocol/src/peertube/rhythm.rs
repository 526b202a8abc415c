//! How often a page tells the server that it is watched, and how: the configuration that it
//! contains says so.

use std::time::Duration;

/// `views.videos.watching_interval` as it is delivered.
const VIEW_EVERY: Duration = Duration::from_secs(5);
/// `open_telemetry.metrics.playback_stats_interval` as it is delivered.
const METRICS_EVERY: Duration = Duration::from_secs(15);
/// Bounds of what an instance may say, so that it asks for no flood.
const EVERY_MIN: Duration = Duration::from_secs(1);
const EVERY_MAX: Duration = Duration::from_secs(3_600);
/// Bytes between a key and one in it: there are few keys in these objects.
const BETWEEN_MAX: usize = 256;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    pub(super) view_every: Duration,
    /// `None`: the instance wants no metrics, which is how it is delivered.
    pub(super) metrics_every: Option<Duration>,
}

/// What the page of an instance says.
pub(super) fn of_page(page: &[u8]) -> Rhythm {
    let text = String::from_utf8_lossy(page);
    let millis = |keys: &[&str]| {
        let number = value(&text, keys)?;
        let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
        let millis = Duration::from_millis(number.get(..end)?.parse().ok()?);
        Some(millis.clamp(EVERY_MIN, EVERY_MAX))
    };
    let wants_metrics = value(&text, &["openTelemetry", "metrics", "enabled"])
        .is_some_and(|value| value.starts_with("true"));
    let metrics_every = millis(&["openTelemetry", "metrics", "playbackStatsInterval"]);
    Rhythm {
        view_every: millis(&["watchingInterval", "anonymous"]).unwrap_or(VIEW_EVERY),
        metrics_every: wants_metrics.then(|| metrics_every.unwrap_or(METRICS_EVERY)),
    }
}

/// What follows a key that is in these others, in JSON or in a string of JSON.
fn value<'a>(text: &'a str, keys: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    for (depth, key) in keys.iter().enumerate() {
        let at = rest.find(key)?;
        if depth > 0 && at > BETWEEN_MAX {
            return None;
        }
        rest = rest.get(at + key.len()..)?;
    }
    Some(rest.trim_start_matches(['"', '\\', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_whether_metrics_are_wanted_and_how_often() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let view = |view_s, metrics_every| Rhythm {
            view_every: Duration::from_secs(view_s),
            metrics_every,
        };
        for (page, expect) in [
            (
                r#"{"openTelemetry":{"metrics":{"enabled":true,"playbackStatsInterval":20000}}}"#,
                view(5, seconds(20)),
            ),
            (r#""{\"openTelemetry\":{\"metrics\":{\"enabled\":true}}}""#, view(5, seconds(15))),
            (
                r#"{"openTelemetry":{"metrics":{"enabled":false,"playbackStatsInterval":15000}}}"#,
                view(5, None),
            ),
            (
                r#"{"views":{"videos":{"watchingInterval":{"anonymous":7000,"users":5000}}}}"#,
                view(7, None),
            ),
            (r#""{\"watchingInterval\":{\"anonymous\":1}}""#, view(1, None)),
            (r#"{"enabled":true,"metrics":{"enabled":true}}"#, view(5, None)),
            ("openTelemetry metrics enabled", view(5, None)),
            ("watchingInterval anonymous 99999999999999999999", view(5, None)),
            ("", view(5, None)),
        ] {
            assert_eq!(of_page(page.as_bytes()), expect, "{page}");
        }
        let far = format!("openTelemetry{}metrics enabled true", " ".repeat(1_000));
        assert_eq!(of_page(far.as_bytes()), view(5, None));
    }
}
