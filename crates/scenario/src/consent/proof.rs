//! The consent of a public server's owner to a load test: `key = value` lines in a file that the
//! server's own address serves, or the same pairs in a DNS TXT record. The engine fetches it; this
//! module parses and validates it.
//!
//! The text is public and contains no password. It has an HMAC-SHA-256 (RFC 2104) over its terms,
//! keyed with a secret that only the tester has: no other tester can use it, and no term can be
//! changed.

use std::fmt::Write as _;
use std::time::Duration;

use throng_observation::untrusted;

use super::expiry::read_expiry;
use super::ports::PortRange;
use super::secret::{self, ConsentSecret};
use crate::run::Caps;
use crate::units;

/// The path of the proof on the target's web server.
pub const WELL_KNOWN_PATH: &str = "/.well-known/throng-consent";
/// The label before the target's host name, for the optional DNS TXT record.
pub const DNS_LABEL: &str = "_throng-consent";

/// Longer texts are refused.
const PROOF_BYTES_MAX: usize = 4096;
/// The longest validity of a proof.
const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// The longest name of a tester.
const TESTER_CHARS_MAX: usize = 100;
/// The name of the authentication scheme.
const SEAL: &str = "hmac-sha256:";

/// The terms of a host owner's consent.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsentProof {
    /// The name of the tester, for people.
    pub tester: String,
    /// The host name or address that the proof is for, lower case.
    pub host: String,
    /// The signalling port that the proof is for.
    pub port: u16,
    /// Further ports of the host that may get load.
    pub ports: Vec<PortRange>,
    /// The only ports that may get media; empty: media may go to any port of UDP, because most
    /// servers draw them.
    pub media_ports: Vec<PortRange>,
    /// When it ends, seconds since the Unix epoch.
    pub expires_unix_s: u64,
    /// The owner's limits, which lower the run's. Users and bit rate are always set.
    pub caps: Caps,
    seal: [u8; 32],
}

/// Why a text is not a proof, or not valid for this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsentProofError {
    /// A syntax error.
    #[error("consent proof: {0}")]
    Malformed(String),
    /// The format of an earlier version, whose token was readable for all.
    #[error(
        "consent proof: it has a `token` of an earlier version, which any tester could use; \
         remove it, and publish the file that `throng consent HOST:PORT` makes (docs/consent.md)"
    )]
    ClearToken,
    /// A field that every proof needs is missing.
    #[error("consent proof: `{0}` is missing; `throng consent HOST:PORT` makes a complete one")]
    Missing(&'static str),
    /// It was not authenticated with the secret of this run.
    #[error(
        "consent proof: it is for `{tester}` and does not match the secret of this run: it \
         belongs to another tester, or was changed after `throng consent` made it"
    )]
    OtherSecret {
        /// The tester of the proof.
        tester: String,
    },
    /// It is for another host or port.
    #[error("consent proof: it is for {proven}, the target is {target}")]
    OtherTarget {
        /// The target of the proof.
        proven: String,
        /// The target of the run.
        target: String,
    },
    /// It has expired.
    #[error("consent proof: it expired {0} s ago; ask the owner for a new one")]
    Expired(u64),
    /// It is valid for more than a year.
    #[error("consent proof: it expires in more than a year; ask for one that ends after the test")]
    TooLong,
}

impl ConsentProof {
    /// Parses a proof: pairs `key = value`, one a line (file) or separated by `;` (TXT record); `#`
    /// begins a comment.
    ///
    /// # Errors
    /// For syntax errors, repeated, missing and unknown keys: a misspelt limit must not be silently
    /// no limit.
    pub fn parse(text: &str) -> Result<Self, ConsentProofError> {
        let (proof, is_sealed) = Self::read(text)?;
        if is_sealed { Ok(proof) } else { Err(ConsentProofError::Missing("proof")) }
    }

    /// Authenticates `terms`, the lines of a proof without `proof`, with the tester's secret: the
    /// text to publish.
    ///
    /// # Errors
    /// If the terms are invalid, or expire before `now_unix_s` or more than a year after it.
    pub fn sealed(
        terms: &str,
        secret: &ConsentSecret,
        now_unix_s: u64,
    ) -> Result<String, ConsentProofError> {
        let (proof, is_sealed) = Self::read(terms)?;
        if is_sealed {
            return Err(ConsentProofError::Malformed("the terms already have a `proof`".into()));
        }
        proof.is_of_today(now_unix_s)?;
        let seal = secret::digits(&secret.seal(&proof.terms()));
        Ok(format!("proof = {SEAL}{seal}\n{terms}"))
    }

    /// The terms of a text, and whether it has a `proof`.
    fn read(text: &str) -> Result<(Self, bool), ConsentProofError> {
        use ConsentProofError::{ClearToken, Malformed, Missing};
        if text.len() > PROOF_BYTES_MAX {
            return Err(Malformed(format!("longer than {PROOF_BYTES_MAX} bytes")));
        }
        let (mut seal, mut tester, mut target, mut expires_unix_s) = (None, None, None, None);
        let (mut ports, mut media_ports) = (None, None);
        let mut caps = Caps::NONE;
        for (key, value) in pairs(text) {
            let value = value.ok_or_else(|| Malformed("a line is not `key = value`".to_owned()))?;
            let unit = |error: units::UnitError| {
                Malformed(untrusted::line(&format!("{key}: {error}")).into())
            };
            let is_new = match key {
                "token" => return Err(ClearToken),
                "proof" => seal.replace(read_seal(value)?).is_none(),
                "tester" => tester.replace(read_tester(value)?).is_none(),
                "target" => target.replace(read_target(value)?).is_none(),
                "expires" => expires_unix_s.replace(read_expiry(value)?).is_none(),
                "ports" => ports.replace(read_ports(key, value)?).is_none(),
                "media_ports" => media_ports.replace(read_media_ports(key, value)?).is_none(),
                "max_users" => caps.users.replace(number(key, value)?).is_none(),
                "max_joins" => {
                    caps.joins_per_s.replace(units::rate_per_s(value).map_err(unit)?).is_none()
                }
                "max_bit_rate" => {
                    caps.mbit_per_s.replace(units::bit_rate(value).map_err(unit)? / 1e6).is_none()
                }
                "max_duration" => {
                    caps.duration.replace(units::duration(value).map_err(unit)?).is_none()
                }
                _ => return Err(Malformed(format!("unknown key `{}`", cut(key)))),
            };
            if !is_new {
                return Err(Malformed(format!("`{key}` is repeated")));
            }
        }
        let (host, port) = target.ok_or(Missing("target"))?;
        caps.users.ok_or(Missing("max_users"))?;
        caps.mbit_per_s.ok_or(Missing("max_bit_rate"))?;
        let proof = Self {
            tester: tester.ok_or(Missing("tester"))?,
            host,
            port,
            ports: ports.unwrap_or_default(),
            media_ports: media_ports.unwrap_or_default(),
            expires_unix_s: expires_unix_s.ok_or(Missing("expires"))?,
            caps,
            seal: seal.unwrap_or_default(),
        };
        Ok((proof, seal.is_some()))
    }

    /// Checks that it is valid for this run: the run's secret, this host and port, not expired at
    /// `now_unix_s`. Repeated during the run.
    ///
    /// # Errors
    /// If it is not.
    pub fn validate(
        &self,
        secret: &ConsentSecret,
        host: &str,
        port: u16,
        now_unix_s: u64,
    ) -> Result<(), ConsentProofError> {
        if !secret.has_sealed(&self.terms(), &self.seal) {
            return Err(ConsentProofError::OtherSecret { tester: cut(&self.tester) });
        }
        let host = normal_host(host);
        if self.host != host || self.port != port {
            let proven = format!("{}:{}", cut(&self.host), self.port);
            return Err(ConsentProofError::OtherTarget {
                proven,
                target: format!("{}:{port}", cut(&host)),
            });
        }
        self.is_of_today(now_unix_s)
    }

    /// Whether it opens all ports that an `earlier` proof of the same address opened.
    #[must_use]
    pub fn opens_all_of(&self, earlier: &Self) -> bool {
        let opened = self.opened_ports();
        earlier.opened_ports().into_iter().all(|range| range.is_within(&opened))
    }

    /// All ports of the host that it opens. A connection may go to the ports that it names only.
    pub(super) fn opened_ports(&self) -> Vec<PortRange> {
        let mut opened = vec![PortRange::of_port(self.port)];
        opened.extend(&self.ports);
        if self.media_ports.is_empty() {
            opened.push(PortRange::ALL_UDP);
        } else {
            opened.extend(&self.media_ports);
        }
        opened
    }

    fn is_of_today(&self, now_unix_s: u64) -> Result<(), ConsentProofError> {
        match self.expires_unix_s.checked_sub(now_unix_s) {
            None | Some(0) => {
                Err(ConsentProofError::Expired(now_unix_s.saturating_sub(self.expires_unix_s)))
            }
            Some(left) if left > LIFETIME_MAX.as_secs() => Err(ConsentProofError::TooLong),
            Some(_) => Ok(()),
        }
    }

    /// The authenticated text: the values of all terms, so that blanks, comments and the order of
    /// lines do not matter.
    fn terms(&self) -> String {
        let Self { tester, host, port, ports, media_ports, expires_unix_s, caps, seal: _ } = self;
        let mut terms = format!(
            "throng-consent 2\ntester={tester}\ntarget={host}:{port}\nexpires={expires_unix_s}\n"
        );
        // Writing to a String cannot fail.
        for (key, named) in [("ports", ports), ("media_ports", media_ports)] {
            let named: Vec<_> = named.iter().map(ToString::to_string).collect();
            let _ = (!named.is_empty()).then(|| writeln!(terms, "{key}={}", named.join(",")));
        }
        let _ = caps.users.map(|users| writeln!(terms, "max_users={users}"));
        let _ = caps.joins_per_s.map(|joins| writeln!(terms, "max_joins_per_s={joins}"));
        let _ = caps.mbit_per_s.map(|mbit| writeln!(terms, "max_mbit_per_s={mbit}"));
        let _ = caps.duration.map(|lasts| writeln!(terms, "max_duration_ns={}", lasts.as_nanos()));
        terms
    }
}

/// The pairs of a text; the value is `None` without a `=`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let pairs =
        lines.flat_map(|line| line.split(';')).map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| match pair.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (pair, None),
    })
}

impl Caps {
    /// The lower of each limit: an owner can lower the run's limits, not raise them.
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

fn read_seal(value: &str) -> Result<[u8; 32], ConsentProofError> {
    value.strip_prefix(SEAL).and_then(secret::bytes).ok_or_else(|| {
        ConsentProofError::Malformed(format!("proof is not `{SEAL}` and 64 hexadecimal digits"))
    })
}

fn read_tester(value: &str) -> Result<String, ConsentProofError> {
    let fits = !value.is_empty()
        && value.chars().count() <= TESTER_CHARS_MAX
        && !value.contains(untrusted::is_harmful);
    fits.then(|| value.to_owned()).ok_or_else(|| {
        let what = format!("tester is not 1 to {TESTER_CHARS_MAX} printable characters");
        ConsentProofError::Malformed(what)
    })
}

fn read_target(value: &str) -> Result<(String, u16), ConsentProofError> {
    let wrong = || ConsentProofError::Malformed("target is not `HOST:PORT`".into());
    let (host, port) = value.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    if host.is_empty()
        || host.contains(['*', '/', '@', ' '])
        || host.contains(untrusted::is_harmful)
    {
        Err(wrong())
    } else {
        Ok((normal_host(host), port))
    }
}

fn read_ports(key: &str, value: &str) -> Result<Vec<PortRange>, ConsentProofError> {
    PortRange::list(value).map_err(|error| ConsentProofError::Malformed(format!("{key}: {error}")))
}

/// Media goes by UDP, whether that is written or not.
fn read_media_ports(key: &str, value: &str) -> Result<Vec<PortRange>, ConsentProofError> {
    let by_udp: Option<Vec<_>> =
        read_ports(key, value)?.into_iter().map(PortRange::by_udp).collect();
    by_udp.ok_or_else(|| {
        ConsentProofError::Malformed(format!(
            "{key}: media goes by UDP; a port of TCP goes into ports"
        ))
    })
}

/// Lower case, without the brackets of IPv6 and without a final dot.
fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn number(key: &str, value: &str) -> Result<u32, ConsentProofError> {
    value.parse().map_err(|_| {
        ConsentProofError::Malformed(format!("{key}: `{}` is not a number", cut(value)))
    })
}

fn cut(text: &str) -> String {
    untrusted::name(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::{AddressPolicy, IpProtocol};
    use proptest::prelude::*;

    const TERMS: &str = "# agreed with the network team\ntester = Load lab, ops@lab.example\n\
                         target = Media.Example.org:3333\nexpires = 2026-12-31\nmax_users = 200\nmax_joins = 5/s\n\
                         max_bit_rate = 100Mbit/s\nmax_duration = 30m\n";
    /// 2026-12-31T24:00:00Z.
    const END: u64 = 1_798_761_600;
    const DAY: u64 = 86_400;

    fn secret() -> ConsentSecret {
        ConsentSecret::new([7; 32])
    }

    fn published() -> String {
        ConsentProof::sealed(TERMS, &secret(), END - DAY).unwrap()
    }

    #[test]
    fn a_file_and_a_txt_record_say_the_same() {
        let proof = ConsentProof::parse(&published()).unwrap();
        let record: Vec<String> =
            published().lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        assert_eq!(ConsentProof::parse(&record.join("; ")).unwrap(), proof);
        assert_eq!(
            (proof.host.as_str(), proof.port, proof.expires_unix_s),
            ("media.example.org", 3333, END)
        );
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
    fn a_proof_is_for_one_tester_host_port_and_time() {
        let proof = ConsentProof::parse(&published()).unwrap();
        let valid = |host: &str, port, now| proof.validate(&secret(), host, port, now);
        assert_eq!(valid("MEDIA.example.org.", 3333, END - 1), Ok(()));
        let stranger = ConsentSecret::new([8; 32]);
        for (result, expect) in [
            (proof.validate(&stranger, "media.example.org", 3333, END - 1), "another tester"),
            (valid("example.org", 3333, END - 1), "is for media.example.org:3333"),
            (valid("media.example.org", 3334, END - 1), "the target is media.example.org:3334"),
            (valid("media.example.org", 3333, END), "expired 0 s ago"),
            (valid("media.example.org", 3333, END + 9), "expired 9 s ago"),
            (valid("media.example.org", 3333, END - 367 * DAY), "more than a year"),
        ] {
            assert!(result.as_ref().unwrap_err().to_string().contains(expect), "{result:?}");
        }
    }

    /// What a proof with `lines` more opens at its address, of these ports.
    fn opened(lines: &str) -> Vec<(IpProtocol, u16)> {
        let text = ConsentProof::sealed(&format!("{TERMS}{lines}"), &secret(), END - DAY).unwrap();
        let proof = ConsentProof::parse(&text).unwrap();
        assert_eq!(proof.validate(&secret(), "media.example.org", 3333, END - 1), Ok(()));
        let address = std::net::IpAddr::from([203, 0, 113, 9]);
        let mut policy = AddressPolicy::default();
        policy.prove(&proof, address);
        let all = [22, 443, 3333, 10_000, 40_000]
            .into_iter()
            .flat_map(|port| [(IpProtocol::Tcp, port), (IpProtocol::Udp, port)]);
        all.filter(|(protocol, port)| policy.permits(*protocol, (address, *port).into()).is_ok())
            .collect()
    }

    #[test]
    fn a_proof_opens_its_signalling_port_and_media_and_no_other_service() {
        use IpProtocol::{Tcp, Udp};
        let media = [22, 443, 3333, 10_000, 40_000].map(|port| (Udp, port));
        let with_media = |tcp: &[u16]| {
            let mut expect: Vec<_> = tcp.iter().map(|port| (Tcp, *port)).chain(media).collect();
            expect.sort_by_key(|(protocol, port)| (*port, *protocol == Udp));
            expect
        };
        assert_eq!(opened(""), with_media(&[3333]));
        assert_eq!(opened("ports = 443/tcp\n"), with_media(&[443, 3333]));
        let named = opened("media_ports = 10000-10100\n");
        assert_eq!(named, [(Tcp, 3333), (Udp, 3333), (Udp, 10_000)]);
        let both = opened("ports = 443\nmedia_ports = 10000-10100/udp, 40000\n");
        let expect =
            [(Tcp, 443), (Udp, 443), (Tcp, 3333), (Udp, 3333), (Udp, 10_000), (Udp, 40_000)];
        assert_eq!(both, expect);
    }

    #[test]
    fn a_proof_that_opens_fewer_ports_than_an_earlier_one_is_told_from_it() {
        let proof = |lines: &str| {
            let text = ConsentProof::sealed(&format!("{TERMS}{lines}"), &secret(), END - DAY);
            ConsentProof::parse(&text.unwrap()).unwrap()
        };
        for (earlier, later, expect) in [
            ("", "", true),
            ("", "ports = 443\n", true),
            ("ports = 443\n", "", false),
            ("ports = 443/udp\n", "", true),
            ("", "media_ports = 10000-10100\n", false),
            ("media_ports = 10000-10100\n", "", true),
            ("media_ports = 10000-10100\n", "media_ports = 10000-10050, 10051-10100\n", true),
        ] {
            assert_eq!(proof(later).opens_all_of(&proof(earlier)), expect, "{earlier} {later}");
        }
    }

    #[test]
    fn ports_are_terms_like_others() {
        let terms = format!("{TERMS}ports = 443\nmedia_ports = 10000-10100\n");
        let text = ConsentProof::sealed(&terms, &secret(), END - DAY).unwrap();
        for (from, to) in [
            ("= 443", "= 444"),
            ("ports = 443\n", ""),
            ("10000-", "9000-"),
            ("media_ports = 10000-10100", ""),
        ] {
            let changed = ConsentProof::parse(&text.replacen(from, to, 1)).unwrap();
            let result = changed.validate(&secret(), "media.example.org", 3333, END - 1);
            assert!(
                matches!(result, Err(ConsentProofError::OtherSecret { .. })),
                "{from}: {result:?}"
            );
        }
        for (line, expect) in [
            ("ports = 0", "ports: not a port"),
            ("ports = 1-2\nports = 3", "`ports` is repeated"),
            ("media_ports = 5000/tcp", "media_ports: media goes by UDP"),
            ("media_ports = some", "media_ports: not a port"),
        ] {
            let error = ConsentProof::parse(&format!("{}{line}\n", published())).unwrap_err();
            assert!(error.to_string().contains(expect), "{line}: {error}");
        }
    }

    #[test]
    fn the_published_proof_is_useless_to_its_readers() {
        let text = published();
        assert!(!text.contains(&secret().expose()));
        // Every word of the file is tried as the secret.
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let found: Vec<ConsentSecret> = words.filter_map(|word| word.parse().ok()).collect();
        assert_eq!(found.len(), 1, "the seal looks like a secret");
        let proof = ConsentProof::parse(&text).unwrap();
        let tried = proof.validate(&found[0], "media.example.org", 3333, END - 1);
        assert!(matches!(tried, Err(ConsentProofError::OtherSecret { .. })), "{tried:?}");
    }

    #[test]
    fn no_term_can_be_changed() {
        for (from, to) in [
            ("200", "201"),
            ("5/s", "6/s"),
            ("100Mbit/s", "1Gbit/s"),
            ("30m", "31m"),
            ("max_duration = 30m\n", ""),
            ("2026-12-31", "2027-12-30"),
            ("Load lab", "Another"),
            (":3333", ":3334"),
            ("Media.", "victim."),
        ] {
            let changed = ConsentProof::parse(&published().replace(from, to)).unwrap();
            let (host, port) = (changed.host.clone(), changed.port);
            let result = changed.validate(&secret(), &host, port, END - 1);
            assert!(
                matches!(result, Err(ConsentProofError::OtherSecret { .. })),
                "{from} {to}: {result:?}"
            );
        }
        let spaced = published()
            .replace(" = ", "=")
            .replace("2026-12-31", "2027-01-01T00:00:00Z # the same");
        let same = ConsentProof::parse(&spaced).unwrap();
        assert_eq!(same.validate(&secret(), "media.example.org", 3333, END - 1), Ok(()));
    }

    #[test]
    fn what_is_not_exactly_a_proof_is_none() {
        for (from, to, expect) in [
            ("proof = hmac", "# proof = hmac", "`proof` is missing"),
            ("hmac-sha256:", "sha256:", "proof is not"),
            ("hmac-sha256:", "hmac-sha256:0", "proof is not"),
            ("proof = hmac", "token = 0123456789abcdef\nproof = hmac", "throng consent HOST:PORT"),
            ("tester = Load lab, ops@lab.example", "", "`tester` is missing"),
            ("Load lab", "Load\u{1b}[2J lab", "printable characters"),
            ("target = Media.Example.org:3333", "", "`target` is missing"),
            ("Media.Example.org:3333", "Media.Example.org", "HOST:PORT"),
            ("Media.Example.org:3333", "*.Example.org:3333", "HOST:PORT"),
            ("expires = 2026-12-31", "", "`expires` is missing"),
            ("2026-12-31", "2026-02-29", "expires is not"),
            ("2026-12-31", "2026-12-31T25:00:00Z", "expires is not"),
            ("2026-12-31", "0000-00-00", "expires is not"),
            ("max_users = 200", "", "`max_users` is missing"),
            ("max_bit_rate = 100Mbit/s", "", "`max_bit_rate` is missing"),
            ("max_users", "max_user", "unknown key `max_user`"),
            ("max_users", "max\u{1b}_users", "unknown key `max\\u{1b}_users`"),
            ("max_users = 200", "max_users = many", "not a number"),
            ("max_users = 200", "max_users = 200\nmax_users = 300", "is repeated"),
            ("max_duration = 30m", "max_duration", "key = value"),
        ] {
            let error =
                ConsentProof::parse(&published().replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(expect), "{to}: {error}");
            assert!(!error.contains("0123456789abcdef"), "{error}");
        }
        assert!(ConsentProof::parse(&"#".repeat(PROOF_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_token_in_clear_is_refused_with_what_to_do() {
        let old = "token = 0123456789abcdef\ntarget = media.example.org:3333\nexpires = 2026-12-31\nmax_users = 200\n";
        assert_eq!(ConsentProof::parse(old), Err(ConsentProofError::ClearToken));
        assert_eq!(
            ConsentProof::parse(&old.replace('\n', ";")),
            Err(ConsentProofError::ClearToken)
        );
    }

    #[test]
    fn only_whole_terms_that_hold_for_a_test_are_sealed() {
        let sealed = |terms: &str, now| ConsentProof::sealed(terms, &secret(), now);
        assert_eq!(sealed(TERMS, END), Err(ConsentProofError::Expired(0)));
        assert_eq!(sealed(TERMS, END - 367 * DAY), Err(ConsentProofError::TooLong));
        assert!(sealed(&published(), END - DAY).is_err());
        assert!(sealed(&TERMS.replace("max_users = 200", ""), END - DAY).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(proof|hmac-sha256:|tester|target|expires|max_users|=|;|\n|:|[0-9]{1,20}|-|T|Z|\\PC){0,24}") {
            let _ = ConsentProof::parse(&text);
            let _ = ConsentProof::sealed(&text, &ConsentSecret::new([1; 32]), 0);
        }
    }
}
