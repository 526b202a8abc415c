//! Normal play time (RFC 2326 section 3.6): positions in a recording.

use std::time::Duration;

/// `npt=…` with an open end, for a `Range` header.
pub(super) fn from(position: Duration) -> String {
    format!("npt={:.3}-", position.as_secs_f64())
}

/// Begin and end of `npt=0-20.5`, seconds or `h:mm:ss`. A begin that is `now` or unreadable and an
/// open end are absent.
pub(super) fn range(value: &str) -> (Option<Duration>, Option<Duration>) {
    let npt = value.trim().split(';').next().and_then(|range| range.trim().strip_prefix("npt="));
    let Some((begin, end)) = npt.and_then(|npt| npt.split_once('-')) else { return (None, None) };
    (time(begin), time(end).filter(|end| !end.is_zero()))
}

fn time(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    for part in text.trim().split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().ok().filter(|part| *part >= 0.0)?;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_a_begin_an_end_or_neither() {
        for (text, begin, end) in [
            ("npt=0-", Some(0), None),
            ("npt=now-", None, None),
            ("npt=0.000-12.5", Some(0), Some(12_500)),
            ("npt=3.25-20", Some(3_250), Some(20_000)),
            ("npt=0-1:00:02", Some(0), Some(3_602_000)),
            ("npt=0:00:05-0:00:10;time=19970123T143720Z", Some(5_000), Some(10_000)),
            ("npt=0--3", Some(0), None),
            ("npt=0-0", Some(0), None),
            ("npt=1e400-inf", None, None),
            ("npt=", None, None),
            ("clock=19961108T143720Z-", None, None),
        ] {
            let ms = |ms: Option<u64>| ms.map(Duration::from_millis);
            assert_eq!(range(text), (ms(begin), ms(end)), "{text}");
        }
        assert_eq!(
            range(&from(Duration::from_millis(12_345))).0,
            Some(Duration::from_millis(12_345))
        );
    }
}
