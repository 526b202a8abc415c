//! The network interface of a local address, by getifaddrs(3).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::ptr;

/// An interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest packet that it takes, bytes.
    pub mtu: u32,
}

/// The interface that has `address`. The whole of 127.0.0.0/8 is that of 127.0.0.1.
///
/// # Errors
/// `AddrNotAvailable` if none has; otherwise the kernel's.
pub fn interface_of(address: IpAddr) -> io::Result<Interface> {
    let wanted = match address {
        IpAddr::V4(v4) if v4.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        address => address,
    };
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: getifaddrs writes a list to the pointer, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    let mut entry = list;
    while !entry.is_null() && found.is_none() {
        // SAFETY: an entry of the list, which lives until freeifaddrs; its name is a C string.
        let (this, name) = unsafe { (&*entry, CStr::from_ptr((*entry).ifa_name)) };
        if ip(this.ifa_addr) == Some(wanted) {
            found = Some(name.to_owned());
        }
        entry = this.ifa_next;
    }
    // SAFETY: the list of getifaddrs, of which nothing is used any more.
    unsafe { libc::freeifaddrs(list) };
    let name = found.ok_or(io::ErrorKind::AddrNotAvailable)?;
    // SAFETY: a C string that lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Interface { index, mtu: mtu(&name)?, name: name.to_string_lossy().into_owned() })
}

/// The address of a `sockaddr_in` or `sockaddr_in6`.
fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, and a sockaddr of its family, as getifaddrs gives them.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// netdevice(7), `SIOCGIFMTU`.
fn mtu(name: &CStr) -> io::Result<u32> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request is a whole ifreq with a terminated name, since an interface's name is
    // shorter than its field.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFMTU has filled this field of the union.
    Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

// Miri has no such system calls.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn all_loopback_addresses_are_of_one_interface_and_foreign_ones_of_none() {
        let own = interface_of([127, 0, 0, 1].into()).unwrap();
        assert!(own.index > 0 && own.mtu >= 1280, "{own:?}");
        assert_eq!(interface_of([127, 3, 2, 1].into()).unwrap(), own);
        let foreign = interface_of([203, 0, 113, 77].into()).unwrap_err();
        assert_eq!(foreign.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
