//! A memory-mapped ring with the datagrams to a range of ports (packet(7), `PACKET_RX_RING` with
//! `TPACKET_V3`): the kernel writes frames into blocks, the reader takes whole blocks and gives
//! them back. A datagram costs no system call and no copy.
//!
//! The ring is a tap beside the sockets. It is bound to the protocols IPv4 or IPv6, so that it
//! stands behind ingress shaping and VLANs, but before firewall rules and the reverse path filter:
//! what it has may not have reached a socket. Its user compares both.

mod filter;
pub use filter::{InRing, leave_to_ring, take_all};

mod frame;
#[doc(hidden)]
pub use frame::read_any_frame;
pub use frame::{Frame, FrameKind, RingDatagram};

mod blocks;
use blocks::{BLOCK_BYTES, Blocks};
pub use blocks::{NoDatagram, Place};

mod interface;
pub use interface::{Interface, interface_of};

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::sockopt;

/// How long the kernel fills a block before it hands it over, milliseconds.
const RETIRE_MS: u32 = 4;

/// How long after its arrival a datagram may be handed over: the kernel looks each 4 ms at the
/// block that it fills, hands it over when it sees it for the second time
/// (`prb_retire_rx_blk_timer_expired` of `net/packet/af_packet.c`), and rounds both times up to its
/// own ticks, of 10 ms at most.
pub const HANDED_OVER_WITHIN: Duration = Duration::from_millis(5 * RETIRE_MS as u64);

/// `TPACKET_V3` of `linux/if_packet.h`.
const VERSION_3: i32 = 2;
const PACKET_VNET_HDR: i32 = 15;

/// Which datagrams a ring has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingConfig {
    /// Index of the interface.
    pub interface: u32,
    /// IPv4, or IPv6.
    pub is_ipv4: bool,
    /// To these local ports.
    pub ports: RangeInclusive<u16>,
    /// Bytes of memory, in blocks of 128 KiB. A block is handed over each 4 ms, however little is
    /// in it: a reader may be as late as there are such times in the ring, or as what arrives takes
    /// to fill it.
    pub bytes: usize,
}

/// A ring and the blocks that its reader has.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    /// Index of the interface.
    interface: u32,
    blocks: Blocks,
}

/// What the kernel counted since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStatistics {
    /// Frames for the ring, with those dropped.
    pub frames: u32,
    /// Frames for which the ring had no room.
    pub drops: u32,
}

impl PacketRing {
    /// Opens a ring. It gets what arrives from now on.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `OutOfMemory`, and whatever else the kernel says.
    pub fn open(config: &RingConfig) -> io::Result<Self> {
        // SAFETY: no pointers are passed; a descriptor that is returned is owned by nobody else.
        let socket = unsafe {
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(socket)
        };
        let set =
            |option, value: i32| sockopt::set(socket.as_fd(), libc::SOL_PACKET, option, &value);
        set(libc::PACKET_VERSION, VERSION_3)?;
        // Tells how a sender on this host joined datagrams; without it such a frame is one long
        // datagram.
        set(PACKET_VNET_HDR, 1)?;
        filter::take_only(socket.as_fd(), config.is_ipv4, &config.ports)?;
        let count = config.bytes.div_ceil(BLOCK_BYTES).max(2);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: u32::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory)?,
            tp_frame_size: BLOCK_BYTES as u32,
            tp_frame_nr: u32::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory)?,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        sockopt::set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = map(&socket, count)?;
        // SAFETY: a new mapping of so many blocks, zeroed, on a page; this process has no other
        // pointer to it, the kernel keeps to the protocol, and it is unmapped when the ring is
        // dropped.
        let blocks = unsafe { Blocks::new(memory, count) };
        let ring = Self { socket, interface: config.interface, blocks };
        ring.bind(config)?;
        Ok(ring)
    }

    /// Until it is bound to its interface and protocol, nothing arrives.
    fn bind(&self, config: &RingConfig) -> io::Result<()> {
        let protocol = if config.is_ipv4 { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        // SAFETY: all zeroes is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex =
            i32::try_from(config.interface).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the address is readable for its length during the call.
        let bound = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Bytes of its memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    /// Takes the blocks that the kernel has handed over, and calls `each` for their frames in the
    /// order of arrival. Returns the bytes of memory they take. What `each` notes of places is good
    /// until [`Self::release`].
    pub fn collect(&mut self, each: impl FnMut(Place, Frame)) -> usize {
        self.blocks.collect(each)
    }

    /// Whether `place` is of this ring, and good.
    #[must_use]
    pub fn has(&self, place: Place) -> bool {
        self.blocks.has(place)
    }

    /// Datagram number `index` of the frame that [`Self::collect`] found at `place`.
    ///
    /// # Errors
    /// [`NoDatagram::Stale`] after [`Self::release`], and for a place of another ring.
    pub fn datagram(&mut self, place: Place, index: u16) -> Result<RingDatagram<'_>, NoDatagram> {
        let mut datagram = self.blocks.datagram(place, index)?;
        // As a socket names a link-local address (RFC 4007 section 6).
        if let SocketAddr::V6(source) = &mut datagram.source
            && source.ip().is_unicast_link_local()
        {
            source.set_scope_id(self.interface);
        }
        Ok(datagram)
    }

    /// Has the CPU load the beginning of the frame at `place`, which [`Self::datagram`] will be
    /// asked for.
    pub fn prefetch(&self, place: Place) {
        self.blocks.prefetch(place);
    }

    /// Gives the memory of all blocks taken back to the kernel.
    pub fn release(&mut self) {
        self.blocks.release();
    }

    /// Why nothing comes any more: the socket's pending error, such as `ENETDOWN` when its
    /// interface went down. Reading it clears it.
    ///
    /// # Errors
    /// That error, or that of reading it.
    pub fn check(&self) -> io::Result<()> {
        socket2::SockRef::from(&self.socket).take_error()?.map_or(Ok(()), Err)
    }

    /// What the kernel counted since the last call.
    ///
    /// # Errors
    /// That of getsockopt(2).
    pub fn statistics(&self) -> io::Result<RingStatistics> {
        let mut counts = [0_u32; 3];
        let mut length = mem::size_of_val(&counts) as libc::socklen_t;
        // SAFETY: both pointers are to locals that outlive the call, and the kernel writes at most
        // `length` bytes.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let [frames, drops, _] = counts;
        if done == 0 {
            Ok(RingStatistics { frames, drops })
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn map(socket: &OwnedFd, count: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping, of a length and at an offset that the kernel checks against the
    // ring's.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            count * BLOCK_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        let (memory, bytes) = (self.blocks.memory(), self.blocks.bytes());
        // SAFETY: the mapping of `map`, to which no reference outlives `self`.
        unsafe { libc::munmap(memory.as_ptr().cast(), bytes) };
    }
}

// Miri has no sockets.
#[cfg(all(test, not(miri)))]
#[path = "ring_tests.rs"]
mod tests;
