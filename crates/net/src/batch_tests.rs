//! A batch whose receives are played here, without sockets: Miri tells of pointers that may not be
//! used any more.

use std::convert::identity;

use super::*;

/// Where the datagrams come from.
fn source(port: u16) -> Source {
    let [f0, f1] = (libc::AF_INET as u16).to_ne_bytes();
    let [p0, p1] = port.to_be_bytes();
    [u32::from_ne_bytes([f0, f1, p0, p1]), u32::from_ne_bytes([10, 0, 0, 9]), 0, 0, 0, 0, 0]
}

/// Writes as the kernel does, by the pointers of the headers: each payload with its number as the
/// port of its source and as the count of drops.
fn fill(headers: &mut [libc::mmsghdr], payloads: &[Vec<u8>]) -> libc::c_int {
    for ((header, payload), number) in headers.iter_mut().zip(payloads).zip(1_u16..) {
        let message = &mut header.msg_hdr;
        // SAFETY: the buffers of the header, which have room for a payload, a source and a message.
        unsafe {
            let room = (*message.msg_iov).iov_base.cast::<u8>();
            room.copy_from_nonoverlapping(payload.as_ptr(), payload.len());
            message.msg_name.cast::<Source>().write(source(number));
            let control = &mut *message.msg_control.cast::<Control>();
            let kind = (libc::SOL_SOCKET, libc::SO_RXQ_OVFL);
            message.msg_controllen = (write_control(control, kind, u32::from(number)) * 8) as _;
        }
        header.msg_len = payload.len() as _;
    }
    payloads.len() as _
}

/// A receive prepares the headers that the one before has used, and relies on the others.
#[test]
fn what_is_read_and_moved_leaves_the_pointers_of_all_headers_good() {
    let mut batch = ReceiveBatch::default();
    for count in [1, 3, 2, RECEIVE_BATCH] {
        let payloads: Vec<Vec<u8>> = (1..=count).map(|length| vec![7; length]).collect();
        assert_eq!(batch.receive_by(|headers| fill(headers, &payloads)).unwrap(), count);
        for ((index, payload), number) in payloads.iter().enumerate().zip(1_u16..) {
            let got = batch.get(index).unwrap();
            assert_eq!(*got.bytes, **payload);
            assert_eq!(got.source, SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9), number)));
            assert_eq!(got.dropped_so_far, Some(u32::from(number)));
            // Packets are decrypted in place.
            got.bytes.fill(0);
        }
        assert!(batch.get(count).is_none());
        batch = identity(batch);
    }
}
