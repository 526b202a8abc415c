//! Access logs of S3 servers. The fields are those of Amazon S3's server access logs (user guide,
//! "Amazon S3 server access log format"), separated by spaces: owner, bucket, time in brackets,
//! address, requester, request id, operation, key, request, status, error, bytes sent, … .
//! versitygw writes the same fields without quotes, and of the request only its URI.

use super::AccessLine;
use super::line::{Protocol, decimal, path_of, quoted, text_of, words_of};

/// Parses a line.
pub(super) fn parse(line: &[u8]) -> Option<AccessLine<'_>> {
    let open = line.iter().position(|byte| *byte == b'[')?;
    let rest = line.get(open + 1..)?;
    let close = rest.iter().position(|byte| *byte == b']')?;
    let (time, rest) = (rest.get(..close)?, rest.get(close + 1..)?);
    let mut fields = Fields(rest);
    let (_address, _requester, _id) = (fields.next()?, fields.next()?, fields.next()?);
    let operation = fields.next()?.0;
    let _key = fields.next()?;
    let (request, is_quoted) = fields.next()?;
    let (method, uri, protocol) = if is_quoted {
        words_of(request)
    } else {
        (method_of(operation).into(), text_of(request), Protocol::Other)
    };
    // Any other line with brackets would do else.
    if !is_quoted && !uri.starts_with('/') {
        return None;
    }
    let status = decimal(fields.next()?.0).filter(|status| *status <= 999)?;
    let _error = fields.next()?;
    let bytes = decimal(fields.next()?.0).unwrap_or(0);
    let user_agent = fields.nth(4).map(|(field, _)| text_of(field)).filter(|agent| agent != "-");
    Some(AccessLine {
        method,
        path: path_of(uri),
        status: status as u16,
        bytes,
        protocol,
        duration_ms: None,
        at_unix_s: super::time::unix_s(&text_of(time)),
        user_agent,
    })
}

/// Fields, and whether each was in quotes.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.0.iter().position(|byte| *byte != b' ')?;
        let text = self.0.get(start..)?;
        if let Some(inside) = text.strip_prefix(b"\"") {
            let (field, rest) = quoted(inside)?;
            self.0 = rest;
            return Some((field, true));
        }
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let (field, rest) = text.split_at(end);
        self.0 = rest;
        Some((field, false))
    }
}

/// The method of an operation: `s3_GetObject`. Of those that players do not use it may be another.
fn method_of(operation: &[u8]) -> &'static str {
    let name = operation.strip_prefix(b"s3_").unwrap_or(operation);
    let begins = |word: &str| name.starts_with(word.as_bytes());
    match () {
        () if begins("Get") || begins("List") => "GET",
        () if begins("Head") => "HEAD",
        () if begins("Delete") => "DELETE",
        () if begins("Post") || begins("Complete") => "POST",
        () if begins("Options") => "OPTIONS",
        () => "PUT",
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn lines_of_versitygw_and_of_amazon_are_read() {
        let of_versitygw = "- stream [25/November/2026:18:40:00 +0000] 127.0.0.1 - KDMD2I0BT1CON2OI s3_GetObject \
             live/1.m3u8 /stream/live/1.m3u8?x=1 404 NoSuchBucket 17 0 0 0 - throng/0.1.0 - EFGX742O7pY5L/U9Y= SigV4 - \
             AuthHeader s3.us-east-1.amazonaws.com - arn:aws:s3:::/stream/live/1.m3u8 Yes";
        let of_amazon = r#"79a5 awsexample [25/Nov/2026:18:40:00 +0000] 192.0.2.3 - 3E57427F3EXAMPLE REST.GET.OBJECT live/1.m3u8 "GET /stream/live/1.m3u8?x=1 HTTP/1.1" 404 NoSuchBucket 17 - 7 - "-" "throng/0.1.0" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuN= SigV4"#;
        for line in [of_versitygw, of_amazon] {
            let read = parse(line.as_bytes()).unwrap_or_else(|| panic!("not read: {line}"));
            assert_eq!(
                (&*read.method, &*read.path, read.status, read.bytes),
                ("GET", "/stream/live/1.m3u8", 404, 17)
            );
            assert_eq!(read.at_unix_s, Some(1_795_632_000.0));
            assert_eq!(read.user_agent.as_deref(), Some("throng/0.1.0"));
        }
    }

    #[test]
    fn other_lines_with_brackets_are_refused() {
        for line in [
            "log starts 2026-11-25 17:38:04.232930275 +0000 UTC m=+0.045945527",
            "a [b] c d e f g h 200 - 5",
            "a [b] c d e f g /h x - 5",
            "a [b] c d e f g /h 1000 - 5",
            "a [b] c d e f g",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
