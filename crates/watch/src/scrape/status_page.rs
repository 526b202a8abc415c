//! Parses the status pages of nginx and lighttpd into samples as a Prometheus endpoint would
//! provide them.

use super::openmetrics::{Kind, Sample};
use super::query::NUMBER_MAX;

/// nginx's `stub_status`: four lines with fixed words (ngx_http_stub_status_module).
pub(super) fn nginx(text: &str) -> Option<Vec<Sample<'static>>> {
    let mut lines = text.lines();
    let active = lines.next()?.trim().strip_prefix("Active connections:")?;
    let active = number(active)?;
    lines.next().filter(|line| line.contains("accepts handled requests"))?;
    let totals: Vec<f64> = numbers(lines.next()?);
    let [accepted, handled, requests] = totals.try_into().ok()?;
    let states = lines.next()?;
    let state = |name: &str| -> Option<f64> {
        let after = states.split_once(name)?.1;
        number(after.split_ascii_whitespace().next()?)
    };
    Some(vec![
        sample("nginx_connections_active", active, Kind::Gauge),
        sample("nginx_connections_accepted_total", accepted, Kind::Counter),
        sample("nginx_connections_handled_total", handled, Kind::Counter),
        sample("nginx_http_requests_total", requests, Kind::Counter),
        sample("nginx_connections_reading", state("Reading:")?, Kind::Gauge),
        sample("nginx_connections_writing", state("Writing:")?, Kind::Gauge),
        sample("nginx_connections_waiting", state("Waiting:")?, Kind::Gauge),
    ])
}

/// lighttpd's `server-status?auto` (mod_status): `Name: value` lines.
pub(super) fn lighttpd(text: &str) -> Option<Vec<Sample<'static>>> {
    let field = |name: &str| -> Option<f64> {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        number(fields.find(|(known, _)| known.trim() == name)?.1)
    };
    Some(vec![
        sample("lighttpd_requests_total", field("Total Accesses")?, Kind::Counter),
        sample("lighttpd_sent_bytes_total", field("Total kBytes")? * 1024.0, Kind::Counter),
        sample("lighttpd_connections_busy", field("BusyServers")?, Kind::Gauge),
        sample("lighttpd_connections_idle", field("IdleServers")?, Kind::Gauge),
    ])
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_ascii_whitespace().filter_map(number).collect()
}

/// A count: the words for infinity and what is no number are none.
fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| (0.0..=NUMBER_MAX).contains(number))
}

fn sample(name: &'static str, value: f64, kind: Kind) -> Sample<'static> {
    Sample { name, labels: Vec::new(), value, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(samples: &[Sample<'_>], name: &str) -> f64 {
        samples.iter().find(|sample| sample.name == name).unwrap().value
    }

    #[test]
    fn the_page_of_nginx_is_read() {
        let text = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630940 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";
        let samples = nginx(text).unwrap();
        assert_eq!(value(&samples, "nginx_connections_active"), 291.0);
        assert_eq!(value(&samples, "nginx_http_requests_total"), 31_070_465.0);
        assert_eq!(value(&samples, "nginx_connections_waiting"), 106.0);
    }

    #[test]
    fn the_page_of_lighttpd_is_read() {
        let text = "Total Accesses: 3\nTotal kBytes: 2\nUptime: 12\nBusyServers: 1\nIdleServers: 4095\nScoreboard: h___\n";
        let samples = lighttpd(text).unwrap();
        assert_eq!(value(&samples, "lighttpd_sent_bytes_total"), 2048.0);
        assert_eq!(value(&samples, "lighttpd_connections_busy"), 1.0);
    }

    #[test]
    fn another_page_is_not_misread() {
        for text in [
            "",
            "<html></html>",
            "Active connections: x\n",
            "Active connections: 1\nserver accepts handled requests\n1 2\n",
            "Active connections: inf\nserver accepts handled requests\n1 2 3\nReading: 1 Writing: 1 Waiting: 1\n",
            "Total Accesses: NaN\nTotal kBytes: 1e306\nBusyServers: 1\nIdleServers: -1\n",
        ] {
            assert!(nginx(text).is_none() && lighttpd(text).is_none(), "{text}");
        }
    }
}
