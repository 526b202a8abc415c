//! Reads from a STUN message which session it is for.

/// Our ufrag in a Binding request: the part of USERNAME before the colon (RFC 8445 §7.2.2).
pub(crate) fn local_ufrag(datagram: &[u8]) -> Option<&str> {
    const BINDING_REQUEST: [u8; 2] = [0, 1];
    const USERNAME: u16 = 6;
    let (header, mut attributes) = datagram.split_first_chunk::<20>()?;
    if header[..2] != BINDING_REQUEST {
        return None;
    }
    while let Some((&[t0, t1, l0, l1], rest)) = attributes.split_first_chunk::<4>() {
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        let value = rest.get(..len)?;
        if u16::from_be_bytes([t0, t1]) == USERNAME {
            return std::str::from_utf8(value).ok()?.split(':').next();
        }
        attributes = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fragment_before_the_colon_is_ours() {
        let mut message = vec![0, 1, 0, 20];
        message.extend([0; 16]);
        message.extend([0x80, 0x22, 0, 3, b'a', b'b', b'c', 0]); // another attribute, padded
        message.extend([0, 6, 0, 5, b'o', b'u', b':', b't', b'h', 0, 0, 0]);
        assert_eq!(local_ufrag(&message), Some("ou"));
        for len in 0..message.len() - 3 {
            assert_eq!(local_ufrag(&message[..len]), None, "{len} bytes");
        }
        message[1] = 0x11;
        assert_eq!(local_ufrag(&message), None, "an indication has no session");
    }
}
