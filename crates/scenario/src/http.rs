//! How viewers of video over HTTP make their requests: the version of HTTP, and whether they bring
//! cookies.

use throng_observation::seed;

use crate::keys::{Named as _, named};

/// With which requests cookies are sent, and of which responses they are kept (Fetch standard,
/// section 2.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CredentialsPolicy {
    /// Those to the origin of the page, as `fetch` and `XMLHttpRequest` without further words do.
    #[default]
    SameOrigin,
    /// All (`withCredentials`).
    Include,
    /// None.
    Omit,
}

named! { CredentialsPolicy: SameOrigin = "same-origin", Include = "include", Omit = "omit" }

/// The version of HTTP that a player uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersionPolicy {
    /// As a browser on its first visit: over TLS HTTP/2 or HTTP/1.1 by ALPN, HTTP/1.1 without TLS.
    #[default]
    Negotiated,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2,
    /// HTTP/3.
    Http3,
    /// As [`Self::Negotiated`], and HTTP/3 once a response has offered it (`Alt-Svc`, RFC 7838).
    Browser,
}

named! {
    HttpVersionPolicy: Negotiated = "negotiated", Http1 = "1.1", Http2 = "2", Http3 = "3",
    Browser = "browser",
}

/// The versions of HTTP of a cohort's viewers, by weights in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpMix {
    weights_milli: [u32; HttpVersionPolicy::ALL.len()],
}

impl Default for HttpMix {
    fn default() -> Self {
        HttpVersionPolicy::default().into()
    }
}

impl From<HttpVersionPolicy> for HttpMix {
    fn from(policy: HttpVersionPolicy) -> Self {
        Self::weighted([(policy, 1_000)])
    }
}

impl HttpMix {
    /// Policies with weights in thousandths; those not named have none.
    #[must_use]
    pub fn weighted(entries: impl IntoIterator<Item = (HttpVersionPolicy, u32)>) -> Self {
        let mut weights_milli = [0; HttpVersionPolicy::ALL.len()];
        for (policy, weight_milli) in entries {
            let all = weights_milli.iter_mut().zip(HttpVersionPolicy::ALL);
            all.filter(|(_, (known, _))| *known == policy)
                .for_each(|(weight, _)| *weight = weight_milli);
        }
        Self { weights_milli }
    }

    /// The policies with their weights, without those of weight 0.
    pub fn entries(&self) -> impl Iterator<Item = (HttpVersionPolicy, u32)> + '_ {
        HttpVersionPolicy::ALL
            .iter()
            .map(|(policy, _)| *policy)
            .zip(self.weights_milli)
            .filter(|(_, weight_milli)| *weight_milli > 0)
    }

    /// The policy of all viewers, if they have the same.
    #[must_use]
    pub fn only(&self) -> Option<HttpVersionPolicy> {
        let mut entries = self.entries();
        entries.next().filter(|_| entries.next().is_none()).map(|(policy, _)| policy)
    }

    /// The policy of viewer `number`. Multiples of the golden ratio modulo 1 fill the interval
    /// evenly from any number on (a Kronecker sequence), so that a hundred viewers are as close to
    /// the weights as a hundred thousand.
    #[must_use]
    pub fn of(&self, seed: u64, number: u32) -> HttpVersionPolicy {
        // Fixed-point: 2^64 stands for 1.
        let begin = seed.wrapping_mul(0xd134_2543_de82_ef95);
        let point = seed::weyl(begin, u64::from(number));
        let total: u128 = self.weights_milli.iter().copied().map(u128::from).sum();
        let at = (u128::from(point) * total) >> 64;
        let mut end = 0;
        let of_point = self.entries().find(|(_, weight_milli)| {
            end += u128::from(*weight_milli);
            at < end
        });
        of_point.map(|(policy, _)| policy).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_hundred_viewers_are_close_to_the_shares_and_each_keeps_its_version() {
        let mix = HttpMix::weighted([
            (HttpVersionPolicy::Http3, 41_000),
            (HttpVersionPolicy::Http2, 51_000),
            (HttpVersionPolicy::Http1, 8_000),
        ]);
        for (seed, first) in [(1, 0), (1, 917), (7, 12_345), (u64::MAX, 4_000_000_000)] {
            let of: Vec<_> = (first..first + 100).map(|number| mix.of(seed, number)).collect();
            let count = |policy| of.iter().filter(|of| **of == policy).count();
            assert!(count(HttpVersionPolicy::Http3).abs_diff(41) <= 2, "{seed} {first}");
            assert!(count(HttpVersionPolicy::Http2).abs_diff(51) <= 2, "{seed} {first}");
            assert!(count(HttpVersionPolicy::Http1).abs_diff(8) <= 2, "{seed} {first}");
            assert_eq!(of[42], mix.of(seed, first + 42));
        }
        assert_eq!(HttpMix::default().of(3, 9), HttpVersionPolicy::Negotiated);
        assert_eq!(
            HttpMix::from(HttpVersionPolicy::Browser).only(),
            Some(HttpVersionPolicy::Browser)
        );
        assert_eq!(mix.only(), None);
    }
}
