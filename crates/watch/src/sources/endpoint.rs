//! Parses endpoints as users write them: kind, URL and credentials.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use throng_observation::Url;
use throng_observation::pack::{EndpointKind, KnownEndpoint, Pack};

use crate::fingerprint::Fingerprint;
use crate::scrape::{Credentials, Endpoint, EndpointError, Filter};

/// Parses an endpoint: `[KIND+]URL[#KEY=VALUE&…]`.
///
/// `KIND` is `openmetrics`, `janus`, `janus-events`, `ome`, `nginx` or `lighttpd`; without it the
/// kind is derived from the path and the packs. The part after `#` is never sent as part of the
/// address: `secret`, `bearer` or `basic` with where the credential is stored (`env:NAME` or
/// `file:PATH`), and `sha256` with the fingerprint of the only certificate to trust.
///
/// # Errors
/// With what is wrong and how to fix it.
pub fn endpoint(text: &str, packs: &[Pack]) -> Result<Endpoint, EndpointError> {
    let (address, extras) = text.split_once('#').unwrap_or((text, ""));
    let wrong = |reason: String| EndpointError::Address { name: address.to_owned(), reason };
    let scheme_ends = address.find("://").unwrap_or(0);
    let (kind, url) = match address.get(..scheme_ends).and_then(|scheme| scheme.split_once('+')) {
        Some((kind, _)) => {
            (Some(kind_of(kind).map_err(wrong)?), address.get(kind.len() + 1..).unwrap_or_default())
        }
        None => (None, address),
    };
    let kind = kind.unwrap_or_else(|| derived_kind(url, packs));
    let mut endpoint = Endpoint::new(name_of(url), url, kind)?;
    endpoint.filter = filter_of(&endpoint, packs);
    for extra in extras.split('&').filter(|extra| !extra.is_empty()) {
        let (key, value) = extra.split_once('=').unwrap_or((extra, ""));
        match key {
            "secret" => {
                endpoint.credentials = Credentials::Secret(credential(value).map_err(wrong)?);
            }
            "bearer" => {
                endpoint.credentials = Credentials::Bearer(credential(value).map_err(wrong)?);
            }
            "basic" => endpoint.credentials = Credentials::Basic(credential(value).map_err(wrong)?),
            "sha256" => endpoint.certificate_sha256 = Some(fingerprint(value).map_err(wrong)?),
            _ => {
                let known = "secret, bearer, basic or sha256";
                return Err(wrong(format!(
                    "unknown option `#{}`; use {known}",
                    crate::logs::redacted(key.as_bytes())
                )));
            }
        }
    }
    // OvenMediaEngine's access token is the complete credential of HTTP Basic.
    if let (EndpointKind::OvenMediaEngine, Credentials::Secret(token)) =
        (kind, &endpoint.credentials)
    {
        endpoint.credentials = Credentials::Basic(token.clone());
    }
    Ok(endpoint)
}

fn kind_of(credential: &str) -> Result<EndpointKind, String> {
    match credential {
        "openmetrics" | "prometheus" => Ok(EndpointKind::OpenMetrics),
        "janus" => Ok(EndpointKind::JanusAdmin),
        "janus-events" => Ok(EndpointKind::JanusEvents),
        "ome" => Ok(EndpointKind::OvenMediaEngine),
        "nginx" => Ok(EndpointKind::NginxStatus),
        "lighttpd" => Ok(EndpointKind::LighttpdStatus),
        other => {
            let known = "openmetrics+, janus+, janus-events+, ome+, nginx+ or lighttpd+";
            Err(format!("unknown kind `{other}+`; use {known}"))
        }
    }
}

/// The local address at which to listen for posted events: an IP address, because a name might
/// resolve elsewhere.
pub(super) fn listen_address(endpoint: &Endpoint) -> Result<SocketAddr, EndpointError> {
    let ip = match endpoint.url.host() {
        Some(url::Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
        Some(url::Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
        Some(url::Host::Domain("localhost")) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Some(url::Host::Domain(_)) | None => None,
    };
    let port = endpoint.url.port().filter(|_| endpoint.url.scheme() == "http");
    match (ip, port) {
        (Some(ip), Some(port)) => Ok(SocketAddr::new(ip, port)),
        _ => Err(EndpointError::Address {
            name: endpoint.name.clone(),
            reason: "the listener for events needs an IP address and port of this host: write \
                     janus-events+http://127.0.0.1:7999, and the same as `backend` in \
                     janus.eventhandler.sampleevh.jcfg"
                .into(),
        }),
    }
}

fn derived_kind(url: &str, packs: &[Pack]) -> EndpointKind {
    let path = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or("", |(_, path)| path);
    let speaks =
        |kind| packs.iter().flat_map(|pack| &pack.endpoints).any(|endpoint| endpoint.kind == kind);
    match path {
        _ if url.starts_with("ws") => EndpointKind::JanusAdmin,
        "admin" | "admin/" if speaks(EndpointKind::JanusAdmin) => EndpointKind::JanusAdmin,
        "" if speaks(EndpointKind::OvenMediaEngine) => EndpointKind::OvenMediaEngine,
        path if path.contains("stub_status")
            || path.contains("basic_status")
            || path.contains("nginx_status") =>
        {
            EndpointKind::NginxStatus
        }
        path if path.starts_with("server-status") => EndpointKind::LighttpdStatus,
        _ => EndpointKind::OpenMetrics,
    }
}

/// The metrics filter that the packs define for endpoints of this kind; without one, the default
/// filter for any server. Where the processes match several packs, that of the server whose
/// endpoint usually has this port: what one server counts, another may call a level.
fn filter_of(endpoint: &Endpoint, packs: &[Pack]) -> Filter {
    let of_kind: Vec<&KnownEndpoint> = packs
        .iter()
        .flat_map(|pack| &pack.endpoints)
        .filter(|known| known.kind == endpoint.kind)
        .collect();
    let port = endpoint.url.port_or_known_default();
    let has_port = |known: &&KnownEndpoint| {
        Url::parse(&known.url).is_ok_and(|url| url.port_or_known_default() == port)
    };
    let of_port: Vec<&KnownEndpoint> = of_kind.iter().copied().filter(has_port).collect();
    let known = if of_port.is_empty() { of_kind } else { of_port };
    let known: Vec<Filter> = known.into_iter().map(Filter::of_pack).collect();
    match (endpoint.kind, known.is_empty()) {
        (EndpointKind::OpenMetrics, true) => Filter::for_any(),
        _ => {
            let all = |of: fn(&Filter) -> &Vec<String>| -> Vec<String> {
                known.iter().flat_map(|filter| of(filter).iter().cloned()).collect()
            };
            Filter {
                allow: all(|filter| &filter.allow),
                deny: all(|filter| &filter.deny),
                counters: all(|filter| &filter.counters),
                dropped_labels: all(|filter| &filter.dropped_labels),
            }
        }
    }
}

/// Host, port and path, which distinguish the endpoints of a host.
fn name_of(url: &str) -> String {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    // A URL with credentials is refused later; they must not appear in the name before that.
    let bare = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, host)| host);
    bare.split('?').next().unwrap_or(bare).trim_end_matches('/').chars().take(80).collect()
}

/// Reads a secret from the place where it is stored.
fn credential(from: &str) -> Result<String, String> {
    let found = match from.split_once(':') {
        Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => {
            std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"))
        }
        Some(("file", path)) => std::fs::read_to_string(path)
            .map_err(|error| format!("the secret in {path} cannot be read: {error}")),
        // The text may be the secret itself, so it is not repeated.
        _ => Err("secrets are not written out here: use env:NAME or file:PATH".into()),
    }?;
    let found = found.trim();
    let fits = !found.is_empty() && found.len() <= 4_096 && !found.chars().any(char::is_control);
    if fits {
        Ok(found.to_owned())
    } else {
        Err("the secret is empty, longer than 4096 bytes, or not text".into())
    }
}

fn fingerprint(text: &str) -> Result<[u8; 32], String> {
    let parsed = text.parse::<Fingerprint>().map(Fingerprint::bytes);
    parsed.map_err(|_| "sha256 must have 64 hexadecimal digits".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs;

    fn packs_of(names: &[&str]) -> Vec<Pack> {
        packs::of_server(&packs::built_in(), None, names)
    }

    #[test]
    fn the_kind_is_given_or_derived_from_the_path() {
        use EndpointKind::{JanusAdmin, LighttpdStatus, NginxStatus, OpenMetrics, OvenMediaEngine};
        let cases = [
            ("http://127.0.0.1:6789/metrics", "livekit-server", OpenMetrics),
            ("http://127.0.0.1:7088/admin", "janus", JanusAdmin),
            ("http://127.0.0.1:7088/admin", "nginx", OpenMetrics),
            ("janus+http://127.0.0.1:7088/other", "", JanusAdmin),
            ("ws://127.0.0.1:7188/", "janus", JanusAdmin),
            ("http://127.0.0.1:8081/", "OvenMediaEngine", OvenMediaEngine),
            ("ome+http://127.0.0.1:8081", "", OvenMediaEngine),
            ("http://127.0.0.1/basic_status", "nginx", NginxStatus),
            ("http://127.0.0.1/server-status?auto", "lighttpd", LighttpdStatus),
            ("prometheus+https://h/basic_status", "", OpenMetrics),
        ];
        for (text, process, kind) in cases {
            let endpoint = endpoint(text, &packs_of(&[process])).unwrap();
            assert_eq!(endpoint.kind, kind, "{text}");
        }
        let known = endpoint("http://h:6789/metrics", &packs_of(&["livekit-server"])).unwrap();
        assert_eq!(
            (known.name.as_str(), known.url.in_clear().as_str()),
            ("h:6789/metrics", "http://h:6789/metrics")
        );
        assert!(
            known.filter.keeps("livekit_room_total")
                && !known.filter.keeps("go_memstats_frees_total")
        );
        assert!(endpoint("http://h/metrics", &[]).unwrap().filter.keeps("anything"));
    }

    #[test]
    fn of_several_packs_that_of_the_endpoints_port_counts() {
        let packs = packs_of(&["mediamtx", "srs"]);
        let filter = |text| endpoint(text, &packs).unwrap().filter;
        let counter = "rtsp_sessions_packets_lost";
        let mediamtx = filter("http://10.0.0.5:9998/metrics");
        assert!(mediamtx.counts(counter) && !mediamtx.dropped_labels.is_empty());
        assert!(!mediamtx.keeps("srs_streams"));
        let srs = filter("http://10.0.0.5:9972/metrics");
        assert!(!srs.counts(counter) && srs.dropped_labels.is_empty());
        assert!(srs.keeps("srs_streams") && !srs.keeps("paths"));
        let elsewhere = filter("http://10.0.0.5:8000/metrics");
        assert!(elsewhere.keeps("srs_streams") && elsewhere.keeps("paths"), "either may be there");
    }

    #[test]
    fn events_are_listened_for_at_an_address_of_this_host() {
        let at =
            |text| listen_address(&endpoint(text, &[]).unwrap()).map_err(|error| error.to_string());
        assert_eq!(at("janus-events+http://127.0.0.1:7999"), Ok("127.0.0.1:7999".parse().unwrap()));
        assert_eq!(
            at("janus-events+http://localhost:7999/x"),
            Ok("127.0.0.1:7999".parse().unwrap())
        );
        assert_eq!(at("janus-events+http://[::]:1"), Ok("[::]:1".parse().unwrap()));
        for text in [
            "janus-events+http://example.org:1",
            "janus-events+http://127.0.0.1",
            "janus-events+https://[::]:1",
        ] {
            assert!(at(text).unwrap_err().contains("sampleevh"), "{text}");
        }
    }

    #[test]
    fn secrets_come_from_elsewhere_and_are_never_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "hush\n").unwrap();
        let text = format!(
            "janus+http://h/admin#secret=file:{}&sha256={}",
            file.display(),
            "0a".repeat(32)
        );
        let got = endpoint(&text, &[]).unwrap();
        assert_eq!(got.credentials, Credentials::Secret("hush".into()));
        assert_eq!(got.certificate_sha256, Some([10; 32]));
        assert_eq!(got.url.in_clear().as_str(), "http://h/admin");
        let token = format!("ome+http://h/#secret=file:{}", file.display());
        assert_eq!(endpoint(&token, &[]).unwrap().credentials, Credentials::Basic("hush".into()));
        for (text, expect) in [
            ("http://h/#secret=hunter2", "are not written out"),
            ("http://h/#bearer=env:THRONG_NOT_SET", "THRONG_NOT_SET is not set"),
            ("http://h/#basic=file:/nowhere/x", "cannot be read"),
            ("http://h/#sha256=12", "64 hexadecimal digits"),
            ("http://h/#token=x", "unknown option `#token`"),
            ("what+http://h/", "unknown kind `what+`"),
            ("http://user:hunter2@h/", "credentials are not allowed"),
            ("", "relative URL"),
        ] {
            let error = endpoint(text, &[]).unwrap_err().to_string();
            assert!(error.contains(expect) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
