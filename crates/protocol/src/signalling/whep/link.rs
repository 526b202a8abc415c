//! ICE servers in `Link` header fields (RFC 8288, RFC 9725 §4.6):
//! `<turn:turn.example.net?transport=udp>; rel="ice-server"; username="user"; credential="secret"`.

use throng_scenario::Secret;

use super::super::RelayServer;
use super::super::server_message::LIST_MAX;

/// The TURN servers of one `Link` field value, which may list several links; STUN servers, other
/// relations and malformed links are skipped.
pub(super) fn relays(value: &str) -> Vec<RelayServer> {
    split(value, ',').take(LIST_MAX).filter_map(relay).collect()
}

fn relay(link: &str) -> Option<RelayServer> {
    let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let (mut username, mut credential, mut is_ice_server) = (String::new(), String::new(), false);
    for parameter in split(parameters, ';') {
        let Some((name, value)) = parameter.trim().split_once('=') else { continue };
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "rel" => {
                is_ice_server =
                    value.split_ascii_whitespace().any(|r| r.eq_ignore_ascii_case("ice-server"));
            }
            "username" => username = value,
            "credential" => credential = value,
            _ => {}
        }
    }
    let is_turn = url.starts_with("turn:") || url.starts_with("turns:");
    (is_ice_server && is_turn).then(|| RelayServer {
        url: url.to_owned(),
        username,
        credential: Secret::new(credential),
        is_signalling_host: false,
    })
}

/// The parts of `text` between `separator`s outside quotes and angle brackets.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    text.split(move |c: char| {
        if escaped {
            escaped = false;
            return false;
        }
        match c {
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '<' if !quoted => bracketed = true,
            '>' if !quoted => bracketed = false,
            _ => return c == separator && !quoted && !bracketed,
        }
        false
    })
}

/// A token, or the content of a quoted string (RFC 9110 §5.6.4).
fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) else {
        return value.to_owned();
    };
    let (mut out, mut escaped) = (String::with_capacity(inner.len()), false);
    for c in inner.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            escaped = false;
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_servers_are_read_with_their_credentials() {
        let turn = |url: &str, username: &str, credential: &str| RelayServer {
            url: url.into(),
            username: username.into(),
            credential: Secret::new(credential),
            is_signalling_host: false,
        };
        for (value, expect) in [
            (r#"<stun:stun.example.net>; rel="ice-server""#, vec![]),
            (
                r#"<turn:t.example.net?transport=udp>; rel="ice-server"; username="u,;=1"; credential="p\"w"; credential-type="password""#,
                vec![turn("turn:t.example.net?transport=udp", "u,;=1", "p\"w")],
            ),
            (
                r#"<turns:a:5349?transport=tcp>;rel=ice-server;username=u;credential=p, <turn:b,c>; REL="next ice-server""#,
                vec![turn("turns:a:5349?transport=tcp", "u", "p"), turn("turn:b,c", "", "")],
            ),
            (r#"<turn:x>; rel="stylesheet""#, vec![]),
            ("turn:x; rel=ice-server", vec![]),
            ("<<<>>>\"\\", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(relays(value), expect, "{value}");
        }
    }
}
