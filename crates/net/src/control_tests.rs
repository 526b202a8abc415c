//! Control messages in ordinary memory, as the kernel writes and reads them.

use super::*;

/// What is read of the first `length` bytes of `controls`, which are in memory of just that length.
fn read(controls: &[u64], length: usize) -> AncillaryData {
    let mut exact: Box<[u64]> = controls.get(..length.div_ceil(8)).unwrap().into();
    // SAFETY: all zeroes is a valid msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_control = exact.as_mut_ptr().cast();
    message.msg_controllen = length as _;
    ancillary(&message)
}

/// A timestamp, a count of drops and a local address, each in its own words.
fn all() -> (Control, [usize; 3]) {
    let mut control: Control = [0; 12];
    let time = libc::timespec { tv_sec: 7, tv_nsec: 5 };
    let s6_addr = Ipv4Addr::new(10, 0, 0, 9).to_ipv6_mapped().octets();
    let info = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr }, ipi6_ifindex: 3 };
    let first = write_control(&mut control, (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS), time);
    let second =
        first + write_control(&mut control[first..], (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), 11_u32);
    let kind = (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);
    let third = second + write_control(&mut control[second..], kind, info);
    (control, [first, second, third].map(|words| words * 8))
}

#[test]
fn what_was_written_is_read() {
    let (control, ends) = all();
    assert_eq!(ends, [32, 56, 96], "the room that `Control` is made for");
    for (count, end) in (1..).zip(ends) {
        let found = read(&control, end);
        assert_eq!(found.arrived_unix, Some(Duration::new(7, 5)));
        assert_eq!(found.dropped_so_far, (count >= 2).then_some(11));
        assert_eq!(found.local, (count >= 3).then_some(Ipv4Addr::new(10, 0, 0, 9).into()));
    }
    assert_eq!(read(&control, 0).arrived_unix, None);
}

#[test]
fn a_control_message_that_was_cut_off_has_no_value() {
    let (mut control, _) = all();
    // The kernel had room for the header and half of the time.
    control[0] = 24;
    let found = read(&control, 24);
    assert_eq!((found.arrived_unix, found.dropped_so_far, found.local), (None, None, None));
    // Only the header.
    control[0] = 16;
    assert_eq!(read(&control, 16).arrived_unix, None);
}
