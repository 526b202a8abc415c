//! The two programs of a packet ring, in classic BPF (`Documentation/networking/filter.rst` of
//! Linux): which frames come into the ring, and which datagrams a socket need not take because they
//! are in the ring. Both ask the same of a datagram, so that each is in one of the two at least.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;

use super::frame::UDP_HEADER;
use crate::sockopt;

/// Offset that means the network header (`SKF_NET_OFF` of `linux/filter.h`).
const NETWORK: u32 = 0xfff0_0000;
/// The frame's `pkt_type` (`SKF_AD_OFF + SKF_AD_PKTTYPE`).
const PACKET_TYPE: u32 = 0xffff_f004;
/// Index of the interface that it came in by (`SKF_AD_OFF + SKF_AD_IFINDEX`).
const INTERFACE: u32 = 0xffff_f008;
/// To this host: not to another, and no multicast (`PACKET_HOST` of `linux/if_packet.h`).
const TO_THIS_HOST: u32 = 0;
/// `IPPROTO_UDP`, in IPv4's protocol and in IPv6's next header.
const UDP: u32 = 17;
/// IPv6's next header of a fragment (RFC 8200 section 4.5).
const FRAGMENT: u32 = 44;
/// First byte of an IPv4 header without options, and of IPv6 with traffic class 0 to 15.
const IPV4_PLAIN: u32 = 0x45;
const IPV6_VERSION: u32 = 0x60;
/// Bytes of the headers before UDP's.
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_LENGTH: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_LEN) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IS_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IS_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const IS_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const HAS_ANY: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What a test of a [`Program`] leads to.
#[derive(Clone, Copy)]
enum Then {
    Next,
    Otherwise,
}

/// An instruction: its code, its operand, and where a test leads if it holds and if it does not.
type Instruction = (u16, u32, Option<(Then, Then)>);

/// A sequence of tests: all must go on to the next, else the program returns its other result.
#[derive(Default)]
struct Program(Vec<Instruction>);

impl Program {
    fn load(mut self, how: u16, from: u32) -> Self {
        self.0.push((how, from, None));
        self
    }

    fn and(self, mask: u32) -> Self {
        self.load(AND, mask)
    }

    /// Goes on if the loaded value compares so to `value`.
    fn must(mut self, compare: u16, value: u32) -> Self {
        self.0.push((compare, value, Some((Then::Next, Then::Otherwise))));
        self
    }

    /// Goes on if it does not.
    fn must_not(mut self, compare: u16, value: u32) -> Self {
        self.0.push((compare, value, Some((Then::Otherwise, Then::Next))));
        self
    }

    /// The program's instructions, which return `passed` after all tests and `otherwise` after one
    /// that failed.
    fn finish(self, passed: u32, otherwise: u32) -> Vec<libc::sock_filter> {
        let length = self.0.len();
        let mut all: Vec<libc::sock_filter> = self
            .0
            .into_iter()
            .enumerate()
            .map(|(at, (code, k, jumps))| {
                // `passed` is returned by the instruction after the tests, the other by the one
                // after it.
                let far = u8::try_from(length - at).unwrap_or(u8::MAX);
                let jump = |then| if matches!(then, Then::Next) { 0 } else { far };
                let (jt, jf) = jumps.map_or((0, 0), |(yes, no)| (jump(yes), jump(no)));
                libc::sock_filter { code, jt, jf, k }
            })
            .collect();
        all.extend([passed, otherwise].map(|k| libc::sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k,
        }));
        all
    }
}

/// Frames for the ring: to this host, UDP directly in IP, to one of `ports`. Of a fragmented
/// datagram only the first fragment comes, by which its flow is known.
fn wanted(is_ipv4: bool, ports: &RangeInclusive<u16>) -> Vec<libc::sock_filter> {
    let to_this_host = Program::default().load(LOAD_WORD, PACKET_TYPE).must(IS_EQUAL, TO_THIS_HOST);
    let port = if is_ipv4 { IPV4_HEADER + 2 } else { IPV6_HEADER + 2 };
    let udp = if is_ipv4 {
        to_this_host
            .load(LOAD_BYTE, NETWORK)
            .must(IS_EQUAL, IPV4_PLAIN)
            .load(LOAD_BYTE, NETWORK + 9)
            .must(IS_EQUAL, UDP)
            .load(LOAD_HALF, NETWORK + 6)
            .must_not(HAS_ANY, 0x1fff)
    } else {
        to_this_host.load(LOAD_BYTE, NETWORK + 6).must(IS_EQUAL, UDP)
    };
    udp.load(LOAD_HALF, NETWORK + port)
        .must(IS_AT_LEAST, (*ports.start()).into())
        .must_not(IS_ABOVE, (*ports.end()).into())
        .finish(u32::MAX, 0)
}

/// First fragments of IPv6 to one of `ports`, which have a header between IP and UDP.
fn wanted_fragments(ports: &RangeInclusive<u16>) -> Vec<libc::sock_filter> {
    Program::default()
        .load(LOAD_WORD, PACKET_TYPE)
        .must(IS_EQUAL, TO_THIS_HOST)
        .load(LOAD_BYTE, NETWORK + 6)
        .must(IS_EQUAL, FRAGMENT)
        .load(LOAD_BYTE, NETWORK + IPV6_HEADER)
        .must(IS_EQUAL, UDP)
        .load(LOAD_HALF, NETWORK + IPV6_HEADER + 2)
        .must_not(HAS_ANY, 0xfff8)
        .load(LOAD_HALF, NETWORK + IPV6_HEADER + 10)
        .must(IS_AT_LEAST, (*ports.start()).into())
        .must_not(IS_ABOVE, (*ports.end()).into())
        .finish(u32::MAX, 0)
}

/// Where two programs stand one after the other, the first's refusal must fall into the second.
fn either(
    mut first: Vec<libc::sock_filter>,
    second: Vec<libc::sock_filter>,
) -> Vec<libc::sock_filter> {
    first.pop();
    first.extend(second);
    first
}

/// Lets only frames of a ring into a packet socket.
///
/// # Errors
/// Those of setsockopt(2), `SO_ATTACH_FILTER`.
pub(super) fn take_only(
    socket: BorrowedFd<'_>,
    is_ipv4: bool,
    ports: &RangeInclusive<u16>,
) -> io::Result<()> {
    let udp = wanted(is_ipv4, ports);
    attach(socket, &if is_ipv4 { udp } else { either(udp, wanted_fragments(ports)) })
}

/// What a ring has of a socket's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRing {
    /// Index of the interface.
    pub interface: u32,
    /// Its MTU, bytes: a longer datagram was put together from fragments, which the ring does not
    /// do.
    pub mtu: u32,
    /// The local address.
    pub local: IpAddr,
}

impl InRing {
    /// Whether a datagram with so many bytes of payload is among them.
    #[must_use]
    pub fn has(&self, payload: usize) -> bool {
        let ip = if self.local.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        payload.saturating_add(UDP_HEADER) <= self.mtu.saturating_sub(ip) as usize
    }
}

fn unwanted(ring: &InRing) -> Vec<libc::sock_filter> {
    let by_it = Program::default()
        .load(LOAD_WORD, INTERFACE)
        .must(IS_EQUAL, ring.interface)
        .load(LOAD_WORD, PACKET_TYPE)
        .must(IS_EQUAL, TO_THIS_HOST);
    let to_it = match ring.local {
        IpAddr::V4(local) => by_it
            .load(LOAD_LENGTH, 0)
            .must_not(IS_ABOVE, ring.mtu.saturating_sub(IPV4_HEADER))
            .load(LOAD_BYTE, NETWORK)
            .must(IS_EQUAL, IPV4_PLAIN)
            .load(LOAD_WORD, NETWORK + 16)
            .must(IS_EQUAL, local.to_bits()),
        IpAddr::V6(local) => {
            let plain = by_it
                .load(LOAD_LENGTH, 0)
                .must_not(IS_ABOVE, ring.mtu.saturating_sub(IPV6_HEADER))
                .load(LOAD_BYTE, NETWORK)
                .and(0xf0)
                .must(IS_EQUAL, IPV6_VERSION)
                .load(LOAD_BYTE, NETWORK + 6)
                .must(IS_EQUAL, UDP);
            (0..4).zip([96, 64, 32, 0]).fold(plain, |program, (word, shift)| {
                program
                    .load(LOAD_WORD, NETWORK + 24 + 4 * word)
                    .must(IS_EQUAL, (local.to_bits() >> shift) as u32)
            })
        }
    };
    to_it.finish(0, u32::MAX)
}

/// Makes a UDP socket drop what `ring` has. It keeps its port, sends, and takes everything else:
/// datagrams by another interface, to another address, and those that arrived in fragments. The
/// kernel counts what is dropped so among the socket's drops (`SO_RXQ_OVFL`) and the host's
/// `InErrors`.
///
/// # Errors
/// Those of setsockopt(2), `SO_ATTACH_FILTER`.
pub fn leave_to_ring(socket: BorrowedFd<'_>, ring: &InRing) -> io::Result<()> {
    attach(socket, &unwanted(ring))
}

/// Ends [`leave_to_ring`].
///
/// # Errors
/// Those of setsockopt(2), `SO_DETACH_FILTER`.
pub fn take_all(socket: BorrowedFd<'_>) -> io::Result<()> {
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0_i32)
}

fn attach(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the program during the call; the struct's pointer is mutable for older uses
    // of it.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
