//! The combined format of nginx, lighttpd and Apache.

use std::borrow::Cow;

use super::line::{AccessLine, decimal, path_of, quoted, text_of, words_of};
use super::time;

/// `HOST IDENT USER [TIME] "METHOD URI PROTOCOL" STATUS BYTES …`: the rest of the line is ignored,
/// so formats with appended fields are parsed too.
pub(super) fn parse(line: &[u8]) -> Option<AccessLine<'_>> {
    let mark = b"] \"";
    let close = line.windows(mark.len()).position(|window| window == mark)?;
    let (before, after) = (line.get(..close)?, line.get(close + mark.len()..)?);
    let time =
        before.iter().rposition(|byte| *byte == b'[').and_then(|open| before.get(open + 1..));
    let (request, rest) = quoted(after)?;
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let status = decimal(fields.next()?).filter(|status| *status <= 999)?;
    let bytes = match fields.next()? {
        b"-" => 0,
        digits => decimal(digits)?,
    };
    let (method, uri, protocol) = words_of(request);
    Some(AccessLine {
        method,
        path: path_of(uri),
        status: status as u16,
        bytes,
        protocol,
        duration_ms: None,
        at_unix_s: time.and_then(|time| time::unix_s(&text_of(time))),
        user_agent: user_agent_of(rest),
    })
}

/// The second text in quotes: the first is `Referer`.
fn user_agent_of(rest: &[u8]) -> Option<Cow<'_, str>> {
    let after_quote = |text: &[u8]| text.iter().position(|byte| *byte == b'"').map(|at| at + 1);
    let (_referer, rest) = quoted(rest.get(after_quote(rest)?..)?)?;
    let (agent, _) = quoted(rest.get(after_quote(rest)?..)?)?;
    Some(text_of(agent)).filter(|agent| agent != "-")
}
