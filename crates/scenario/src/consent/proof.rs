//! The text by which the owner of a public server agrees to a load test: a few `key = value` lines in a file, or the
//! same pairs in a DNS TXT record. Fetching it is the engine's; what it means is decided here.

use std::time::Duration;

use crate::scenario::Caps;
use crate::secret::Secret;
use crate::units;

/// Where on the target's web server the proof lies.
pub const WELL_KNOWN_PATH: &str = "/.well-known/throng-consent";
/// What stands before the target's host name in DNS, for the TXT record that holds a proof.
pub const DNS_LABEL: &str = "_throng-consent";

/// More than any honest proof needs; longer ones are not read.
const PROOF_BYTES_MAX: usize = 4096;
/// A token shorter than this could be guessed.
const TOKEN_CHARACTERS_MIN: usize = 16;
/// A proof is good for a test, not for ever.
const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What the owner of a host agrees to.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentProof {
    /// Known to the owner and to who runs the test; must equal the one that the tester was given.
    pub token: Secret,
    /// The host name or address that the proof is for, lower case.
    pub host: String,
    /// The signalling port that the proof is for.
    pub port: u16,
    /// When it ends, seconds since the Unix epoch.
    pub expires_unix_s: u64,
    /// The owner's limits; each one given lowers ours.
    pub caps: Caps,
}

/// Why a text is not a proof, or not one for this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsentProofError {
    /// Not the format.
    #[error("consent proof: {0}")]
    Malformed(String),
    /// A field that every proof needs is missing.
    #[error("consent proof: `{0}` is missing")]
    Missing(&'static str),
    /// Its token is not the one that the tester was given.
    #[error("consent proof: its token is not the one given with the run")]
    WrongToken,
    /// It is for another host or port.
    #[error("consent proof: it is for {proven}, the target is {target}")]
    OtherTarget {
        /// What it is for.
        proven: String,
        /// What was asked for.
        target: String,
    },
    /// It has ended.
    #[error("consent proof: it expired {0} s ago; ask the owner for a new one")]
    Expired(u64),
    /// It is good for longer than a year, which no test is.
    #[error("consent proof: it expires in more than a year; ask for one that ends after the test")]
    TooLong,
}

impl ConsentProof {
    /// Reads a proof: pairs `key = value`, one a line (file) or separated by `;` (TXT record); `#` begins a comment.
    ///
    /// # Errors
    /// When it is not of the format, says a key twice, or lacks one that is needed. Unknown keys are errors: a limit
    /// with a typing error must not be no limit.
    pub fn parse(text: &str) -> Result<Self, ConsentProofError> {
        use ConsentProofError::{Malformed, Missing};
        if text.len() > PROOF_BYTES_MAX {
            return Err(Malformed(format!("longer than {PROOF_BYTES_MAX} bytes")));
        }
        let (mut token, mut target, mut expires_unix_s) = (None, None, None);
        let mut caps = Caps::NONE;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            for pair in line.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
                let (key, value) = pair
                    .split_once('=')
                    .ok_or_else(|| Malformed("a line is not `key = value`".to_owned()))?;
                let (key, value) = (key.trim(), value.trim());
                let unit = |error: units::UnitError| Malformed(format!("{key}: {error}"));
                let is_new = match key {
                    "token" => token.replace(read_token(value)?).is_none(),
                    "target" => target.replace(read_target(value)?).is_none(),
                    "expires" => expires_unix_s.replace(read_expiry(value)?).is_none(),
                    "max_users" => caps.users.replace(number(key, value)?).is_none(),
                    "max_joins" => {
                        caps.joins_per_s.replace(units::rate_per_s(value).map_err(unit)?).is_none()
                    }
                    "max_bit_rate" => {
                        caps.mbit_per_s.replace(units::bit_rate(value).map_err(unit)? / 1e6).is_none()
                    }
                    "max_duration" => caps.duration.replace(units::duration(value).map_err(unit)?).is_none(),
                    _ => return Err(Malformed(format!("unknown key `{}`", cut(key)))),
                };
                if !is_new {
                    return Err(Malformed(format!("`{key}` is there twice")));
                }
            }
        }
        let (host, port) = target.ok_or(Missing("target"))?;
        Ok(Self {
            token: token.ok_or(Missing("token"))?,
            host,
            port,
            expires_unix_s: expires_unix_s.ok_or(Missing("expires"))?,
            caps,
        })
    }

    /// Whether it is the proof for this run: our token, this host and port, not expired at `now_unix_s`. To be asked
    /// again during the run.
    ///
    /// # Errors
    /// With what does not fit.
    pub fn validate(
        &self,
        token: &Secret,
        host: &str,
        port: u16,
        now_unix_s: u64,
    ) -> Result<(), ConsentProofError> {
        if self.token != *token {
            return Err(ConsentProofError::WrongToken);
        }
        let host = normal_host(host);
        if self.host != host || self.port != port {
            let proven = format!("{}:{}", self.host, self.port);
            return Err(ConsentProofError::OtherTarget { proven, target: format!("{}:{port}", cut(&host)) });
        }
        match self.expires_unix_s.checked_sub(now_unix_s) {
            None | Some(0) => Err(ConsentProofError::Expired(now_unix_s.saturating_sub(self.expires_unix_s))),
            Some(left) if left > LIFETIME_MAX.as_secs() => Err(ConsentProofError::TooLong),
            Some(_) => Ok(()),
        }
    }
}

impl Caps {
    /// The lower of each limit of both: an owner may lower ours and never raises them.
    #[must_use]
    pub fn lowered_by(&self, other: &Self) -> Self {
        Self {
            users: lower(self.users, other.users),
            joins_per_s: lower(self.joins_per_s, other.joins_per_s),
            mbit_per_s: lower(self.mbit_per_s, other.mbit_per_s),
            duration: lower(self.duration, other.duration),
        }
    }
}

fn lower<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn read_token(value: &str) -> Result<Secret, ConsentProofError> {
    let fits = value.chars().count() >= TOKEN_CHARACTERS_MIN && value.chars().all(|c| c.is_ascii_graphic());
    fits.then(|| Secret::new(value)).ok_or_else(|| {
        let message = format!("the token needs at least {TOKEN_CHARACTERS_MIN} printable ASCII characters");
        ConsentProofError::Malformed(message)
    })
}

fn read_target(value: &str) -> Result<(String, u16), ConsentProofError> {
    let wrong = || ConsentProofError::Malformed("the target is not `HOST:PORT`".into());
    let (host, port) = value.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    if host.is_empty() || host.contains(['*', '/', '@', ' ']) {
        Err(wrong())
    } else {
        Ok((normal_host(host), port))
    }
}

/// Lower case, without the brackets of IPv6 and without a final dot.
fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// `2026-12-31` (its end, UTC) or `2026-12-31T18:00:00Z`, as seconds since the Unix epoch.
fn read_expiry(value: &str) -> Result<u64, ConsentProofError> {
    let wrong =
        || ConsentProofError::Malformed("expires is not `2026-12-31` or `2026-12-31T18:00:00Z` (UTC)".into());
    let (date, time) = match value.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z').ok_or_else(wrong)?)),
        None => (value, None),
    };
    let [year, month, day] = fields(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = match time {
        Some(time) => fields(time, ':').ok_or_else(wrong)?,
        None => [24, 0, 0],
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return Err(wrong()),
    };
    let in_range = (1970..=9999).contains(&year) && (1..=days_in_month).contains(&day);
    if !in_range || (time.is_some() && hour > 23) || minute > 59 || second > 59 {
        return Err(wrong());
    }
    Ok(days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn fields(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits = !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    });
    let all = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(all)
}

/// Days from 1970-01-01 in the Gregorian calendar, counting years from March so that the leap day comes last.
/// `year` is at least 1970.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

fn number(key: &str, value: &str) -> Result<u32, ConsentProofError> {
    value
        .parse()
        .map_err(|_| ConsentProofError::Malformed(format!("{key}: `{}` is not a number", cut(value))))
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PROOF: &str = "# agreed with the network team\ntoken = 0123456789abcdef\ntarget = Media.Example.org:3333\n\
                         expires = 2026-12-31\nmax_users = 200\nmax_joins = 5/s\nmax_bit_rate = 100Mbit/s\nmax_duration = 30m\n";
    /// 2026-12-31T24:00:00Z.
    const END: u64 = 1_798_761_600;

    #[test]
    fn a_file_and_a_txt_record_say_the_same() {
        let proof = ConsentProof::parse(PROOF).unwrap();
        let record: Vec<&str> = PROOF.lines().skip(1).collect();
        assert_eq!(ConsentProof::parse(&record.join("; ")).unwrap(), proof);
        assert_eq!((proof.host.as_str(), proof.port, proof.expires_unix_s), ("media.example.org", 3333, END));
        let lowered = Caps::DEFAULT.lowered_by(&proof.caps);
        assert_eq!(
            lowered,
            Caps {
                users: Some(200),
                joins_per_s: Some(5.0),
                mbit_per_s: Some(100.0),
                duration: Some(Duration::from_secs(1800))
            }
        );
        assert_eq!(Caps { users: Some(50), ..Caps::NONE }.lowered_by(&proof.caps).users, Some(50));
    }

    #[test]
    fn a_proof_is_for_one_token_host_port_and_time() {
        let proof = ConsentProof::parse(PROOF).unwrap();
        let token = Secret::new("0123456789abcdef");
        assert_eq!(proof.validate(&token, "MEDIA.example.org.", 3333, END - 1), Ok(()));
        for (result, expect) in [
            (proof.validate(&Secret::new("0123456789abcdeX"), "media.example.org", 3333, 0), "token"),
            (proof.validate(&token, "example.org", 3333, END - 1), "is for media.example.org:3333"),
            (
                proof.validate(&token, "media.example.org", 3334, END - 1),
                "the target is media.example.org:3334",
            ),
            (proof.validate(&token, "media.example.org", 3333, END), "expired 0 s ago"),
            (proof.validate(&token, "media.example.org", 3333, END + 9), "expired 9 s ago"),
            (proof.validate(&token, "media.example.org", 3333, END - 367 * 86_400), "more than a year"),
        ] {
            assert!(result.as_ref().unwrap_err().to_string().contains(expect), "{result:?}");
        }
    }

    #[test]
    fn what_is_not_exactly_a_proof_is_none() {
        for (from, to, expect) in [
            ("token = 0123456789abcdef", "", "`token` is missing"),
            ("token = 0123456789abcdef", "token = short", "at least 16"),
            ("target = Media.Example.org:3333", "", "`target` is missing"),
            ("Media.Example.org:3333", "Media.Example.org", "HOST:PORT"),
            ("Media.Example.org:3333", "*.Example.org:3333", "HOST:PORT"),
            ("expires = 2026-12-31", "", "`expires` is missing"),
            ("2026-12-31", "2026-02-29", "expires is not"),
            ("2026-12-31", "2026-12-31T25:00:00Z", "expires is not"),
            ("2026-12-31", "0000-00-00", "expires is not"),
            ("max_users", "max_user", "unknown key `max_user`"),
            ("max_users = 200", "max_users = many", "not a number"),
            ("max_users = 200", "max_users = 200\nmax_users = 300", "twice"),
            ("max_duration = 30m", "max_duration", "key = value"),
        ] {
            let error = ConsentProof::parse(&PROOF.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(expect), "{to}: {error}");
            assert!(!error.contains("0123456789abcdef"), "{error}");
        }
        assert!(ConsentProof::parse(&"#".repeat(PROOF_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn dates_are_counted_with_their_leap_days() {
        for (text, expect) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01", 86_400),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("2026-03-01T00:00:00Z", 1_772_323_200),
        ] {
            assert_eq!(read_expiry(text), Ok(expect), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(token|target|expires|max_users|=|;|\n|:|[0-9]{1,20}|-|T|Z|\\PC){0,24}") {
            let _ = ConsentProof::parse(&text);
            let _ = read_expiry(&text);
        }
    }
}
