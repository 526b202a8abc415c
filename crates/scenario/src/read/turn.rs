//! Reads `target.turn` with its credential.

use super::fields::{Fields, Reader};
use super::target::token;
use super::tree::{Node, Span};
use crate::target::{Target, TurnServer, TurnUri};

const INCOMPLETE: (&str, &str) = (
    "`target` has only a part of a TURN server",
    "write all of turn, turn_username and turn_password, or none of them",
);
const EXAMPLE: &str = "turn:10.0.0.1:3478?transport=tcp";

/// Reads the server and its credential, and the location of the URI.
pub(super) fn turn(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<(TurnServer, Span)> {
    let nodes = ["turn", "turn_username", "turn_password"].map(|name| fields.get(name));
    let text = |reader: &mut Reader, node: Option<&Node>, path: &str, kind: &str| {
        reader.text(node?, path, kind).filter(|text| !text.is_empty())
    };
    let uri = text(reader, nodes[0], "target.turn", &format!("text such as \"{EXAMPLE}\""));
    let username = text(reader, nodes[1], "target.turn_username", "text");
    let password = nodes[2].and_then(|node| token(reader, node, "target.turn_password"));
    let (Some(at), Some(of_password)) = (nodes[0], nodes[2]) else {
        if nodes.iter().any(Option::is_some) && reader.is_clean() {
            reader.fail(fields.span, INCOMPLETE.0, INCOMPLETE.1);
        }
        return None;
    };
    match (uri, username, password) {
        (None, ..) if at.span.source > 0 => None, // an override that removes the file's server
        (Some(uri), Some(username), Some(password)) => {
            if at.span.source > 0 && of_password.span.source == 0 {
                let help = "add --set target.turn_password=… for this server";
                reader.fail(at.span, "`target.turn_password` is for another TURN server", help);
            }
            Some((TurnServer { uri, username, password }, at.span))
        }
        _ => {
            if reader.is_clean() {
                reader.fail(at.span, INCOMPLETE.0, INCOMPLETE.1);
            }
            None
        }
    }
}

/// Checks the URI. As with `target.stun`, the only host name with a known address is the target's
/// own.
pub(super) fn check(
    reader: &mut Reader,
    (turn, span): (TurnServer, Span),
    target: &Target,
) -> Option<TurnServer> {
    let message = match TurnUri::parse(&turn.uri) {
        Ok(uri) if uri.is_resolved_with(target.url()) => return Some(turn),
        Ok(_) => "`target.turn` names another host than `target.url`; throng does not resolve \
                  names of TURN servers"
            .into(),
        Err(error) => format!("`target.turn`: {error}"),
    };
    reader.fail(span, message, format!("write its IP address, such as turn = \"{EXAMPLE}\""));
    None
}
