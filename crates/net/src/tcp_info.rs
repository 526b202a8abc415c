//! The kernel's account of a TCP connection: `struct tcp_info` of Linux
//! (`include/uapi/linux/tcp.h`), read by offset, so that a kernel with a shorter or longer struct
//! is read as well.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes read of the struct: up to and with `tcpi_rcv_ooopack`, which kernels have since Linux 5.4.
const LENGTH: usize = 228;

/// Figures of a TCP connection since it began. Those that the kernel does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds (`tcpi_rtt`). A side that only receives measures it
    /// while it sends its request.
    pub round_trip_us: Option<u32>,
    /// Segments that this side sent again (`tcpi_total_retrans`).
    pub retransmitted: Option<u32>,
    /// Bytes received in order, without headers of TCP (`tcpi_bytes_received`, since Linux 4.1).
    pub received_bytes: Option<u64>,
    /// Segments that arrived out of order (`tcpi_rcv_ooopack`, since Linux 5.4).
    pub received_out_of_order: Option<u32>,
}

impl TcpInfo {
    /// Reads the start of a struct, of whatever length.
    fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let u64_at = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        Self {
            round_trip_us: u32_at(68),
            retransmitted: u32_at(100),
            received_bytes: u64_at(128),
            received_out_of_order: u32_at(224),
        }
    }
}

/// The state of a TCP socket.
///
/// # Errors
/// When `socket` is not one.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: both pointers are to locals that outlive the call, and the kernel writes at most
    // `length` bytes.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo::parse(bytes.get(..length as usize).unwrap_or(&bytes)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no TCP_INFO")]
    fn received_bytes_are_counted_and_other_sockets_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener.accept().unwrap().0.write_all(&[7; 5000]).unwrap();
        client.read_exact(&mut [0; 5000]).unwrap();
        let info = tcp_info(client.as_fd()).unwrap();
        // The FIN takes a sequence number, but is no byte.
        assert!(matches!(info.received_bytes, Some(5000 | 5001)), "{info:?}");
        assert!(info.round_trip_us.is_some_and(|us| us < 1_000_000), "{info:?}");
        assert_eq!((info.retransmitted, info.received_out_of_order), (Some(0), Some(0)));
        assert!(tcp_info(UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()).is_err());
    }

    #[test]
    fn a_shorter_struct_leaves_the_later_figures_out() {
        let bytes = [1; LENGTH];
        let all = TcpInfo::parse(&bytes);
        assert!(all.received_out_of_order.is_some());
        // Linux 3.x ended after tcpi_total_retrans.
        let old = TcpInfo::parse(&bytes[..104]);
        assert_eq!((old.round_trip_us, old.retransmitted), (all.round_trip_us, all.retransmitted));
        assert_eq!((old.received_bytes, old.received_out_of_order), (None, None));
        assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
    }
}
