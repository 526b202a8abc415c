//! What a server that refuses a participant says about why, in whatever protocol.

/// How a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It, or the room, is full.
    Full,
    /// Too many requests came from one address in a time (HTTP 429, RFC 6585 section 4): a rule for
    /// each address, and no measure of what the server can do.
    RatePerAddress,
    /// The key, PIN or token is missing or wrong.
    Credentials,
    /// It will not serve this participant (403): a wrong key, and also what some servers answer
    /// beyond their number of users or that of their licence, and firewalls of applications to an
    /// address that asks too often.
    Forbidden,
    /// What was asked for does not exist.
    Missing,
    /// It never does what was asked for: the method, the format, the transport, the version.
    Unsupported,
    /// Anything else, with or without a reason.
    Other,
}

use RefusalKind::{Credentials, Forbidden, Full, Missing, Other, RatePerAddress, Unsupported};

/// A status, what it says over HTTP (RFC 9110), and what over RTSP (RFC 7826), which has most
/// numbers from HTTP. All others from 400 on are [`RefusalKind::Other`].
const STATUSES: &[(u16, RefusalKind, RefusalKind)] = &[
    (401, Credentials, Credentials),
    (403, Forbidden, Forbidden),
    (404, Missing, Missing),
    (405, Unsupported, Unsupported),
    (406, Unsupported, Unsupported),
    (407, Credentials, Credentials),
    (410, Missing, Missing),
    (415, Unsupported, Unsupported),
    (429, RatePerAddress, RatePerAddress),
    // RTSP: Not Enough Bandwidth.
    (453, Other, Full),
    // RTSP: Unsupported Transport.
    (461, Other, Unsupported),
    (501, Unsupported, Unsupported),
    (503, Full, Full),
    (505, Unsupported, Unsupported),
    // RTSP: Option Not Supported.
    (551, Other, Unsupported),
];

impl RefusalKind {
    /// What an HTTP status says; `None` if it is no refusal.
    pub(crate) fn of_http(status: u16) -> Option<Self> {
        of(status, |(_, http, _)| *http)
    }

    /// What an RTSP status says; `None` if it is no refusal.
    pub(crate) fn of_rtsp(status: u16) -> Option<Self> {
        of(status, |(.., rtsp)| *rtsp)
    }

    /// Whether the target itself is the reason: one participant meets it as many do, so that no
    /// load explains it.
    pub(crate) fn is_of_target(self) -> bool {
        match self {
            Credentials | Missing | Unsupported => true,
            // Another load may not meet it.
            Full | RatePerAddress | Forbidden | Other => false,
        }
    }
}

fn of(
    status: u16,
    says: impl Fn(&(u16, RefusalKind, RefusalKind)) -> RefusalKind,
) -> Option<RefusalKind> {
    if !(400..=599).contains(&status) {
        return None;
    }
    Some(STATUSES.iter().find(|(known, ..)| *known == status).map_or(Other, says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_listed_once_and_in_order() {
        assert!(STATUSES.windows(2).all(|two| two[0].0 < two[1].0), "{STATUSES:?}");
        assert!(STATUSES.iter().all(|(status, ..)| (400..=599).contains(status)));
    }

    #[test]
    fn what_no_load_changes_is_of_the_target_in_both_protocols() {
        let of_target = |of: fn(u16) -> Option<RefusalKind>| -> Vec<u16> {
            (0..=999).filter(|status| of(*status).is_some_and(RefusalKind::is_of_target)).collect()
        };
        assert_eq!(of_target(RefusalKind::of_http), [401, 404, 405, 406, 407, 410, 415, 501, 505]);
        assert_eq!(
            of_target(RefusalKind::of_rtsp),
            [401, 404, 405, 406, 407, 410, 415, 461, 501, 505, 551]
        );
        for (status, expect) in [
            (302, None),
            (403, Some(Forbidden)),
            (409, Some(Other)),
            (429, Some(RatePerAddress)),
            (500, Some(Other)),
            (503, Some(Full)),
        ] {
            assert_eq!(RefusalKind::of_http(status), expect, "{status}");
            assert_eq!(RefusalKind::of_rtsp(status), expect, "{status}");
        }
        assert_eq!(RefusalKind::of_http(453), Some(Other));
        assert_eq!(RefusalKind::of_rtsp(453), Some(Full));
    }
}
