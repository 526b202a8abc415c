//! The agent of a `[[watch]]` in a file: its address, and the fingerprint of its certificate.

use serde_json::json;
use throng_observation::Url;

use super::Agent;
use crate::keys::{Parsed, Problem, text};

/// What to write, as the agent says it.
pub(crate) const AGENT_HELP: &str =
    "write agent = \"tls://HOST:PORT\", as `throng watch --listen` prints it";

/// The address of an agent, without its token and fingerprint.
pub(super) const AGENT: Parsed<Agent> = Parsed {
    kind: "text",
    example: "tls://10.0.0.5:7081",
    parse: |text| agent(text).map_err(|what| Problem::new(what, AGENT_HELP)),
    write: Agent::to_string,
    schema: |_| json!({ "type": "string", "pattern": r"^[Tt]([Ll][Ss]|[Cc][Pp])://.+:\d+/?$" }),
    is_removable: false,
};

/// The digits of a fingerprint, in lower case.
pub(super) const FINGERPRINT: Parsed<String> = Parsed {
    parse: |text| {
        let text = text.trim().to_ascii_lowercase();
        let digits = text.strip_prefix("sha256:").unwrap_or(&text).replace(':', "");
        if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(digits);
        }
        let help = "copy it from what `throng watch --listen` prints";
        Err(Problem::new(" is not a SHA-256 of 64 hexadecimal digits", help))
    },
    schema: |_| {
        let pattern = r"^\s*([Ss][Hh][Aa]256:)?(:*[0-9A-Fa-f]){64}:*\s*$";
        json!({ "type": "string", "pattern": pattern })
    },
    is_removable: false,
    ..text("text", "sha256:…")
};

fn agent(text: &str) -> Result<Agent, &'static str> {
    const NO_ADDRESS: &str = " is not an agent's address";
    let url = Url::parse(text).map_err(|_| NO_ADDRESS)?;
    let (is_tls, host) = (url.scheme() == "tls", url.host_str());
    let (Some(host), Some(port), "tls" | "tcp") = (host, url.port(), url.scheme()) else {
        return Err(NO_ADDRESS);
    };
    if !url.is_of_server() {
        return Err(" has more than a host and a port");
    }
    if !is_tls && !is_loopback(host) {
        return Err(" is not on loopback and must use TLS");
    }
    Ok(Agent { host: host.to_owned(), port, is_tls, token: None, fingerprint: None })
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
