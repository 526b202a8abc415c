//! Where hosts begin, and the user info before them.

use std::ops::Range;

use super::{OPENING, SLASHES};

/// What follows the `@` of an image of a container in place of a host: `image:1.2@sha256:…`.
const DIGESTS: [&str; 2] = ["sha256:", "sha512:"];

/// What stands before a `:` and is no user: schemes of addresses of people and rooms, and a tag of
/// HLS with a range of bytes, `#EXT-X-BYTERANGE:75232@0`.
const NOT_USERS: [&str; 6] = ["mailto", "sip", "sips", "xmpp", "acct", "#ext-x-byterange"];

/// Schemes after which the URL standard takes one slash for two: `http:/HOST`.
const WEB_SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// The place `at` of a text in the `rest` that ends it; `None` if it is before.
pub(super) fn ahead(at: Option<usize>, text: &str, rest: &str) -> Option<usize> {
    (at? + rest.len()).checked_sub(text.len())
}

/// Where another host begins in a text.
pub(super) struct NextHost<'t> {
    pub(super) before: &'t str,
    /// `SCHEME://`, or slashes alone.
    pub(super) sign: &'t str,
    pub(super) scheme: Option<&'t str>,
    pub(super) after: &'t str,
}

/// The first host of a text whose sign has its slashes at or behind `begin`, where a host begins if
/// `is_host`, else a path. Of a text that `has_key`, that of a publisher, which may have any
/// letters, another URL follows in a list of FFmpeg's only. `last_at` is the last `@`.
pub(super) fn next_host(
    text: &str,
    (begin, is_host): (usize, bool),
    has_key: bool,
    last_at: Option<usize>,
) -> Option<NextHost<'_>> {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let mut from = begin;
    loop {
        let mut pairs = text.as_bytes().get(from..)?.windows(2);
        let slashes = from + pairs.position(|pair| pair.iter().all(is_slash))?;
        let (left, right) = text.split_at(slashes);
        let (before, scheme, after) = match (left.strip_suffix(':'), right.strip_prefix("//")) {
            (Some(left), Some(after)) => {
                let (before, scheme) = left.split_at(left.trim_end_matches(is_of_scheme).len());
                (before, Some(scheme), after)
            }
            (Some(_) | None, _) => (left, None, right.trim_start_matches(SLASHES)),
        };
        let place = before.get(begin..).unwrap_or_default();
        let is_one = if has_key {
            before.ends_with([',', ';', '|', ']', '\''])
        } else {
            scheme.is_some()
                || !is_path(place, is_host)
                || begins_with_password(after, ahead(last_at, text, after))
        };
        if is_one {
            let sign = text.get(before.len()..text.len() - after.len()).unwrap_or_default();
            return Some(NextHost { before, sign, scheme, after });
        }
        if scheme.is_some() {
            return None;
        }
        from = text.len() - after.len();
    }
}

/// Whether what stands before bare slashes is a path, in which they are a typing error rather than
/// the sign of a host: `img//logo@2x.mp4`, `C:\\Users\\ada@corp`. It is none directly behind a
/// host, where a proxy has the URL that it asks for.
fn is_path(place: &str, is_host: bool) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.~".contains(c);
    let is_segment = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    match place.rsplit_once(SLASHES) {
        Some((_, part)) => is_segment(part),
        None if is_host => false,
        None => {
            let part = place.trim_start_matches(OPENING);
            let drive = part.strip_suffix(':').filter(|drive| drive.len() == 1);
            is_segment(part) || drive.is_some_and(is_segment)
        }
    }
}

/// Whether a text begins with a user who has a password. `last_at` is its last `@`.
fn begins_with_password(text: &str, last_at: Option<usize>) -> bool {
    text.get(..host_begin(text, last_at)).is_some_and(|user| user.contains(':'))
}

pub(super) fn is_of_scheme(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+.-".contains(letter)
}

/// Where the host begins in what follows `://`: at 0 without user info. `last_at` is the last `@`.
///
/// A password with `/`, `?` or `#` ends the authority too early: what then stands where a port does
/// is none, and an `@` is to come.
pub(super) fn host_begin(rest: &str, last_at: Option<usize>) -> usize {
    let slashes = rest.len() - rest.trim_start_matches(SLASHES).len();
    let (_, place) = rest.split_at(slashes);
    let (authority, after) =
        place.split_at(place.find(['/', '\\', '?', '#']).unwrap_or(place.len()));
    let user = authority.rfind('@').map_or(0, |at| at + 1);
    let (_, host) = authority.split_at(user);
    // Another URL may follow, after a comma.
    let before = host.strip_suffix(':').filter(|_| after.starts_with("//"));
    let before = before.map(|before| before.trim_end_matches(is_of_scheme));
    let host = before.filter(|before| !before.ends_with(':')).unwrap_or(host);
    let host = host.trim_end_matches([',', ';', '.', ')', '\'', '`']);
    let port = host.rsplit(']').next().and_then(|port| port.split_once(':'));
    let is_port = port.is_none_or(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok());
    match last_at.filter(|at| !is_port && *at >= slashes + user) {
        Some(at) => at + 1,
        None if user > 0 => slashes + user,
        None => 0,
    }
}

/// The user info of a reference without a scheme: of `//ME:PW@HOST/x`, also behind `NAME=`, of
/// `http:/ME@HOST/x`, and of `ME:PW@HOST/x`. Empty where there is none: a name alone before `@` is
/// an address of mail or of a chat. And whether slashes say that a host is there.
pub(super) fn user_info(text: &str) -> (Range<usize>, bool) {
    let rest = text.trim_start_matches(OPENING);
    let is_of_name = |c: char| is_of_scheme(c) || c == '_';
    let name = rest.split_once('=').filter(|(name, _)| name.chars().all(is_of_name));
    let rest = name.map_or(rest, |(_, value)| value.trim_start_matches(OPENING));
    let web = rest.split_once(':').filter(|(name, after)| {
        after.starts_with(SLASHES) && WEB_SCHEMES.iter().any(|web| name.eq_ignore_ascii_case(web))
    });
    let (slashes_min, rest) = web.map_or((2, rest), |(_, after)| (1, after));
    let place = rest.trim_start_matches(SLASHES);
    let begin = text.len() - place.len();
    let (user, host) = place.split_at(host_begin(place, place.rfind('@')));
    let is_of_host = rest.len() - place.len() >= slashes_min;
    let is_user_info = is_of_host || (has_password(user, host) && !is_address(user, host));
    let end = if is_user_info { begin + user.len() } else { begin };
    (begin..end, is_of_host)
}

/// Whether `user`, all up to the `@` before `host`, has a password.
pub(super) fn has_password(user: &str, host: &str) -> bool {
    user.contains(':') && !DIGESTS.iter().any(|digest| host.starts_with(digest))
}

/// Whether `user`, all up to the `@` before `host`, is none: the address of a person or a room, or
/// a range of bytes. It has no path, but for the nickname in a room: `sip:PW@HOST/x` is of a user
/// `sip`.
pub(super) fn is_address(user: &str, host: &str) -> bool {
    let Some((name, rest)) = user.split_once(':') else { return false };
    let is_before = |c: char| c == '=' || OPENING.contains(&c);
    let name = name.rsplit(is_before).next().unwrap_or_default();
    let may_have_path = name.eq_ignore_ascii_case("xmpp");
    // Behind another `:` or a slash another user may be.
    NOT_USERS.iter().any(|word| name.eq_ignore_ascii_case(word))
        && !rest.contains([':', '/', '\\'])
        && (may_have_path || !host.contains(SLASHES))
}
