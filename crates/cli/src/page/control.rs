//! What a page may ask of its command: to end, and to keep a mark.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use hyper::{Request, StatusCode, header};
use url::form_urlencoded;

/// The header with the token.
const TOKEN: &str = "throng-token";
/// Longer marks are cut.
const MARK_CHARS_MAX: usize = 200;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// To end, as a key of the live view asks.
    Stop,
    /// To keep this mark of the moment.
    Mark(String),
}

/// Why nothing is done.
pub(super) type Refusal = (StatusCode, &'static str);

/// What a POST asks of the command whose page has `token`.
pub(super) fn order(request: &Request<()>, token: &str) -> Result<Order, Refusal> {
    let said = |name: &str| request.headers().get(name)?.to_str().ok();
    // A browser says which site asks; a program has the token.
    let is_same = |origin: &str| {
        let host = said(header::HOST.as_str());
        host.is_some() && origin.strip_prefix("http://") == host
    };
    if request.headers().contains_key(header::ORIGIN)
        && !said(header::ORIGIN.as_str()).is_some_and(is_same)
    {
        return Err((StatusCode::FORBIDDEN, "Only the page itself may ask this.\n"));
    }
    let given = said(TOKEN).unwrap_or_default();
    if verify_slices_are_equal(given.as_bytes(), token.as_bytes()).is_err() {
        let help = "This needs the token: open the address that the command printed.\n";
        return Err((StatusCode::FORBIDDEN, help));
    }
    match request.uri().path() {
        "/stop" => Ok(Order::Stop),
        "/mark" => {
            let query = request.uri().query().unwrap_or_default();
            let mut values = form_urlencoded::parse(query.as_bytes());
            let text = values.find(|(name, _)| name == "text").map(|(_, text)| text);
            let text: String =
                text.unwrap_or_default().trim().chars().take(MARK_CHARS_MAX).collect();
            if text.is_empty() {
                return Err((StatusCode::BAD_REQUEST, "Mark what? Add ?text=WORDS.\n"));
            }
            Ok(Order::Mark(text))
        }
        _ => Err((StatusCode::NOT_FOUND, "Only /stop and /mark can be asked for.\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "0123456789abcdef0123456789abcdef";

    fn asked(uri: &str, headers: &[(&str, &str)]) -> Result<Order, u16> {
        let mut request = Request::post(uri).header("host", "127.0.0.1:80");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        order(&request.body(()).unwrap(), OWN).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_who_has_the_token_asks_and_no_other_site() {
        let token = (TOKEN, OWN);
        assert_eq!(asked("/stop", &[token]), Ok(Order::Stop));
        let own = ("origin", "http://127.0.0.1:80");
        assert_eq!(asked("/stop", &[token, own]), Ok(Order::Stop));
        for origin in ["null", "http://evil.example", "https://127.0.0.1:80", "http://127.0.0.1"] {
            assert_eq!(asked("/stop", &[token, ("origin", origin)]), Err(403), "{origin}");
        }
        assert_eq!(asked("/stop", &[]), Err(403));
        let almost = OWN.replace('f', "e");
        for wrong in ["", "0", almost.as_str()] {
            assert_eq!(asked("/stop", &[(TOKEN, wrong)]), Err(403), "{wrong}");
        }
        assert_eq!(asked("/other", &[token]), Err(404));
    }

    #[test]
    fn a_mark_is_a_short_text() {
        let token = (TOKEN, OWN);
        let mark = |text: &str| asked(&format!("/mark?text={text}"), &[token]);
        assert_eq!(mark("restart+of%20b"), Ok(Order::Mark("restart of b".into())));
        assert_eq!(mark("%20"), Err(400));
        assert_eq!(asked("/mark", &[token]), Err(400));
        let long = mark(&"x".repeat(1_000));
        assert_eq!(long, Ok(Order::Mark("x".repeat(MARK_CHARS_MAX))));
    }
}
