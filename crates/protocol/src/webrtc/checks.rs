//! The pace of connectivity checks, and which responses to them count.
//!
//! *Before a pair works.* str0m repeats a check after 250 ms, 500 ms and so on; a server that
//! becomes ready just after its answer to the offer would be found a quarter of a second late. A
//! browser sends a check every 48 ms (libwebrtc's `WEAK_PING_INTERVAL`; Ta of RFC 8445 section 14.2
//! is 50 ms). Here the unanswered request is sent again unchanged: a retransmission of its
//! transaction (RFC 8489 section 6.2.1) costs no HMAC.
//!
//! *Once a pair works.* str0m would keep the pace of unanswered checks, up to 3 s. Consent (RFC
//! 7675 section 5.1) needs a check every 5 s, and each extra check costs a datagram in both
//! directions and two HMACs.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The interval of checks once the connection answers: libwebrtc's for a connection that is strong
/// and stable.
const CHECKED_EVERY: Duration = Duration::from_millis(2_500);

/// The interval of check datagrams while no pair works: Ta of RFC 8445 section 14.2.
const PACE: Duration = Duration::from_millis(50);

/// How many unanswered requests are kept; str0m accepts responses to the last nine of a pair.
const OPEN_MAX: usize = 64;
/// A response that is later than this belongs to no request that str0m still has open.
const OPEN_FOR: Duration = Duration::from_secs(30);

/// Message types of a binding request, its success response and its error response (RFC 8489
/// sections 5 and 18.2).
const REQUEST: [u8; 2] = [0x00, 0x01];
const RESPONSE: [u8; 2] = [0x01, 0x01];
const ERROR: [u8; 2] = [0x01, 0x11];

/// The local candidate that a check leaves from, and its destination.
pub(super) type Pair = (SocketAddr, SocketAddr);

/// A STUN transaction (RFC 8489 section 5).
type Transaction = [u8; 12];

/// The meaning of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// To be processed.
    Taken,
    /// A response from another address than was checked, or to another local address: such a check
    /// has failed (RFC 8445 section 7.2.5.2.1).
    Elsewhere {
        /// The address that was checked.
        asked: SocketAddr,
    },
    /// A response without an open request: repeated, too late, or forged.
    Unasked,
}

/// The state of one connection's checks.
#[derive(Debug, Default)]
pub(super) struct Checks {
    is_connected: bool,
    /// Time and pair of the last check since candidates or credentials changed.
    asked: Option<(Instant, Pair)>,
    /// When a request was last sent, first transmission or repeat.
    sent_at: Option<Instant>,
    /// Requests without a response, the oldest first.
    open: VecDeque<PendingCheck>,
    /// Pairs that have responded.
    working: Vec<Pair>,
    /// Local candidates that the peer sees at another address (NAT).
    translated: Vec<SocketAddr>,
}

#[derive(Debug)]
struct PendingCheck {
    transaction: Transaction,
    pair: Pair,
    at: Instant,
    /// The request, while it is the last of its pair and may be repeated.
    request: Option<Repeatable>,
}

#[derive(Debug)]
struct Repeatable {
    sent_at: Instant,
    bytes: Box<[u8]>,
}

impl Checks {
    /// Sets whether a pair works, as ICE reports it.
    pub(super) fn connected(&mut self, is_connected: bool) {
        self.is_connected = is_connected;
        if is_connected {
            self.open.iter_mut().for_each(|asked| asked.request = None);
        }
    }

    /// Candidates or credentials changed: all pairs must be checked again.
    pub(super) fn begin_anew(&mut self) {
        self.asked = None;
    }

    /// A datagram was sent over `pair`.
    pub(super) fn sent(&mut self, now: Instant, pair: Pair, datagram: &[u8]) {
        let Some(transaction) = transaction(datagram).filter(|_| datagram.starts_with(&REQUEST))
        else {
            return;
        };
        (self.asked, self.sent_at) = (Some((now, pair)), Some(now));
        self.open.retain(|asked| now.saturating_duration_since(asked.at) < OPEN_FOR);
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.open
            .iter_mut()
            .filter(|asked| asked.pair == pair)
            .for_each(|asked| asked.request = None);
        let request =
            (!self.is_connected).then(|| Repeatable { sent_at: now, bytes: datagram.into() });
        self.open.push_back(PendingCheck { transaction, pair, at: now, request });
    }

    /// A datagram arrived from `source` at `local`, a local candidate.
    pub(super) fn received(
        &mut self,
        local: SocketAddr,
        source: SocketAddr,
        datagram: &[u8],
    ) -> Arrival {
        if !datagram.starts_with(&RESPONSE) && !datagram.starts_with(&ERROR) {
            return Arrival::Taken;
        }
        let answered = transaction(datagram).and_then(|transaction| {
            self.open.iter().position(|asked| asked.transaction == transaction)
        });
        let Some(at) = answered else { return Arrival::Unasked };
        let asked = self.open.get(at).map_or((local, source), |asked| asked.pair);
        if asked != (local, source) {
            return Arrival::Elsewhere { asked: asked.1 };
        }
        self.open.remove(at);
        if datagram.starts_with(&RESPONSE) {
            self.translated.retain(|known| *known != local);
            if mapped_address(datagram).is_some_and(|mapped| mapped != local) {
                self.translated.push(local);
            }
            if !self.working.contains(&asked) {
                self.working.push(asked);
            }
        }
        Arrival::Taken
    }

    /// Drops all local candidates but `local`.
    pub(super) fn keep_to(&mut self, local: SocketAddr) {
        self.working.retain(|(from, _)| *from == local);
        self.open.retain(|asked| asked.pair.0 == local);
    }

    /// Whether the peer's last response to `local` has another mapped address.
    pub(super) fn is_translated(&self, local: SocketAddr) -> bool {
        self.translated.contains(&local)
    }

    /// The request to repeat at `now`, if any: among those without a response, the least recently
    /// sent.
    pub(super) fn repeat(&mut self, now: Instant) -> Option<(Pair, Vec<u8>)> {
        if self.repeat_at().is_none_or(|at| now < at) {
            return None;
        }
        let waiting =
            self.open.iter_mut().filter_map(|asked| Some((asked.pair, asked.request.as_mut()?)));
        let (pair, request) = waiting.min_by_key(|(_, request)| request.sent_at)?;
        request.sent_at = now;
        self.sent_at = Some(now);
        Some((pair, request.bytes.to_vec()))
    }

    fn repeat_at(&self) -> Option<Instant> {
        let waits = !self.is_connected && self.open.iter().any(|asked| asked.request.is_some());
        self.sent_at.filter(|_| waits).map(|at| at + PACE)
    }

    /// When to pass the time to ICE, which requested `at`; `is_idle`: only ICE has a deadline.
    pub(super) fn due(&self, at: Instant, is_idle: bool) -> Instant {
        let at = match self.asked {
            Some((asked_at, pair)) if is_idle && self.is_connected && self.answers(pair) => {
                // The pairs that work share the interval.
                at.max(asked_at + CHECKED_EVERY / self.working.len().max(1) as u32)
            }
            _ => at,
        };
        self.repeat_at().map_or(at, |repeat_at| at.min(repeat_at))
    }

    /// Whether `pair`, checked last, works, and all working pairs still respond. Otherwise ICE
    /// keeps its own pace, to detect the failure in time.
    fn answers(&self, pair: Pair) -> bool {
        self.working.contains(&pair)
            && !self.open.iter().any(|asked| self.working.contains(&asked.pair))
    }
}

/// XOR-MAPPED-ADDRESS (RFC 8489 section 14.2): the address at which the other side saw the request.
pub(super) fn mapped_address(message: &[u8]) -> Option<SocketAddr> {
    const XOR_MAPPED_ADDRESS: u16 = 0x0020;
    let cookie_and_transaction: [u8; 16] = message.get(4..20)?.try_into().ok()?;
    let mut attributes = message.get(20..)?;
    while let [kind_high, kind_low, high, low, rest @ ..] = attributes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if u16::from_be_bytes([*kind_high, *kind_low]) != XOR_MAPPED_ADDRESS {
            attributes = rest.get(length.next_multiple_of(4)..)?;
            continue;
        }
        let [_, _, port_high, port_low, address @ ..] = rest.get(..length)? else { return None };
        let [first, second, ..] = cookie_and_transaction;
        let port = u16::from_be_bytes([port_high ^ first, port_low ^ second]);
        let plain: Vec<u8> =
            address.iter().zip(cookie_and_transaction).map(|(byte, key)| byte ^ key).collect();
        let ip = match plain.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(plain).ok()?),
            16 => IpAddr::from(<[u8; 16]>::try_from(plain).ok()?),
            _ => return None,
        };
        return Some(SocketAddr::new(ip, port));
    }
    None
}

/// Whether a datagram is a success response.
pub(super) fn is_answer(datagram: &[u8]) -> bool {
    datagram.starts_with(&RESPONSE)
}

fn transaction(datagram: &[u8]) -> Option<Transaction> {
    datagram.get(8..20)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "10.0.0.2:6000";
    const THEIRS: &str = "10.0.0.1:5000";

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn pair() -> Pair {
        (address(OURS), address(THEIRS))
    }

    fn message(kind: [u8; 2], transaction: u8) -> Vec<u8> {
        let mut bytes = vec![kind[0], kind[1], 0, 0, 0x21, 0x12, 0xa4, 0x42];
        bytes.extend([transaction; 12]);
        bytes
    }

    fn answered(checks: &mut Checks, transaction: u8) -> Arrival {
        checks.received(address(OURS), address(THEIRS), &message(RESPONSE, transaction))
    }

    #[test]
    fn only_a_connection_that_answers_every_check_is_checked_seldom() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut checks = Checks::default();
        let due = |checks: &Checks| checks.due(at(350), true).duration_since(start).as_millis();
        checks.sent(at(100), pair(), &message(REQUEST, 1));
        assert_eq!(answered(&mut checks, 1), Arrival::Taken);
        assert_eq!(due(&checks), 350, "no pair works");
        checks.connected(true);
        assert_eq!(due(&checks), 2_600);
        assert_eq!(checks.due(at(350), false), at(350), "DTLS is not done");
        assert_eq!(checks.due(at(9_000), true), at(9_000), "ICE may want it later");
        // Other datagrams change nothing: the peer's checks, responses to them, indications, DTLS.
        for theirs in [message(REQUEST, 7), message([0x00, 0x11], 7), vec![0x16, 0xfe]] {
            assert_eq!(checks.received(address(OURS), address(THEIRS), &theirs), Arrival::Taken);
        }
        checks.sent(at(150), pair(), &message(RESPONSE, 7));
        checks.sent(at(150), pair(), &[0x16, 0xfe]);
        assert_eq!(due(&checks), 2_600);
        // A pair that never responded fails at the pace of ICE, and does not belong to the
        // connection.
        let dead = (address(OURS), address("10.0.0.9:5000"));
        checks.sent(at(160), dead, &message(REQUEST, 2));
        assert_eq!(due(&checks), 350);
        checks.sent(at(200), pair(), &message(REQUEST, 3));
        assert_eq!(due(&checks), 350, "the second is not answered");
        assert_eq!(answered(&mut checks, 3), Arrival::Taken);
        assert_eq!(due(&checks), 2_700);
        checks.connected(false);
        assert_eq!(due(&checks), 350, "consent was lost");
    }

    #[test]
    fn new_candidates_are_checked_at_the_pace_of_ice() {
        let start = Instant::now();
        let mut checks = Checks::default();
        checks.connected(true);
        checks.sent(start, pair(), &message(REQUEST, 1));
        assert_eq!(answered(&mut checks, 1), Arrival::Taken);
        assert_eq!(checks.due(start, true), start + CHECKED_EVERY);
        checks.begin_anew();
        assert_eq!(checks.due(start, true), start);
    }

    #[test]
    fn an_answer_counts_only_between_the_addresses_of_its_request() {
        let (start, mut checks) = (Instant::now(), Checks::default());
        checks.sent(start, pair(), &message(REQUEST, 1));
        let answer = message(RESPONSE, 1);
        for (local, source) in [
            (OURS, "10.0.0.1:5001"),
            (OURS, "10.0.0.3:5000"),
            ("10.0.0.4:6000", THEIRS),
            ("10.0.0.2:6001", THEIRS),
        ] {
            let arrival = checks.received(address(local), address(source), &answer);
            assert_eq!(
                arrival,
                Arrival::Elsewhere { asked: address(THEIRS) },
                "{source} to {local}"
            );
        }
        assert_eq!(answered(&mut checks, 2), Arrival::Unasked);
        assert_eq!(
            checks.received(address(OURS), address(THEIRS), &[0x01, 0x01, 0x00]),
            Arrival::Unasked
        );
        // The right response still counts when it arrives, once.
        assert_eq!(answered(&mut checks, 1), Arrival::Taken);
        assert_eq!(answered(&mut checks, 1), Arrival::Unasked);
    }

    #[test]
    fn an_answer_says_where_the_peer_sees_us() {
        // The sample responses of RFC 5769 sections 2.2 and 2.3, without their integrity and
        // fingerprint.
        let transaction = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];
        let head = [&[0x01, 0x01, 0x00, 0x3c, 0x21, 0x12, 0xa4, 0x42][..], &transaction].concat();
        let software = [&[0x80, 0x22, 0x00, 0x0b][..], b"test vector "].concat();
        let v4 = [0x00, 0x20, 0x00, 0x08, 0x00, 0x01, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43];
        let v6 = [
            0x00, 0x20, 0x00, 0x14, 0x00, 0x02, 0xa1, 0x47, 0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3,
            0xf1, 0x79, 0xbc, 0x25, 0xf4, 0xb5, 0xbe, 0xd2, 0xb9, 0xd9,
        ];
        for (attribute, expect) in [
            (&v4[..], "192.0.2.1:32853"),
            (&v6[..], "[2001:db8:1234:5678:11:2233:4455:6677]:32853"),
        ] {
            let message = [&head[..], &software, attribute].concat();
            assert_eq!(mapped_address(&message), Some(address(expect)));
            // A truncated message yields `None`, without a panic.
            (0..message.len())
                .for_each(|cut| assert_eq!(mapped_address(&message[..cut]), None, "{cut}"));
        }
    }

    #[test]
    fn without_an_answer_a_check_goes_out_again_every_50_ms_until_a_pair_works() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut checks = Checks::default();
        let second = (address(OURS), address("10.0.0.9:5000"));
        checks.sent(at(0), pair(), &message(REQUEST, 1));
        assert_eq!(checks.due(at(250), false), at(50));
        assert_eq!(checks.repeat(at(49)), None);
        assert_eq!(checks.repeat(at(50)), Some((pair(), message(REQUEST, 1))));
        assert_eq!(checks.repeat(at(51)), None);
        // Pairs take turns: together they keep the pace.
        checks.sent(at(60), second, &message(REQUEST, 2));
        assert_eq!(checks.due(at(250), true), at(110));
        assert_eq!(checks.repeat(at(110)), Some((pair(), message(REQUEST, 1))));
        assert_eq!(checks.repeat(at(160)), Some((second, message(REQUEST, 2))));
        // When a pair is checked again, only the new request is repeated.
        checks.sent(at(170), pair(), &message(REQUEST, 3));
        assert_eq!(checks.repeat(at(220)), Some((second, message(REQUEST, 2))));
        assert_eq!(checks.repeat(at(270)), Some((pair(), message(REQUEST, 3))));
        checks.connected(true);
        assert_eq!(checks.repeat(at(400)), None);
        checks.sent(at(400), pair(), &message(REQUEST, 4));
        assert_eq!(checks.repeat(at(900)), None, "a pair that works is asked at ICE's pace");
    }
}
