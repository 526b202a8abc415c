//! Opus (RFC 7587): a packet is sent unchanged as a payload; the sender needs its duration.

/// Duration of an Opus packet, in samples at 48 kHz (the RTP clock of Opus), from its TOC byte (RFC
/// 6716 §3.1).
///
/// `None` when it is empty, its frame count is missing, or its duration is above the 120 ms that a
/// packet may have.
#[must_use]
pub fn duration_samples(packet: &[u8]) -> Option<u32> {
    let (&toc, rest) = packet.split_first()?;
    let config = toc >> 3;
    let frame = match config {
        // SILK: 10, 20, 40, 60 ms.
        0..=11 => [480, 960, 1920, 2880][usize::from(config & 3)],
        // Hybrid: 10, 20 ms.
        12..=15 => [480, 960][usize::from(config & 1)],
        // CELT: 2.5, 5, 10, 20 ms.
        _ => [120, 240, 480, 960][usize::from(config & 3)],
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(rest.first()? & 0x3f),
    };
    Some(frame * frames).filter(|samples| (1..=5760).contains(samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_follow_the_table_of_rfc_6716() {
        for (packet, expect) in [
            (&[0x00][..], Some(480)),
            (&[3 << 3], Some(2880)),
            (&[12 << 3], Some(480)),
            (&[15 << 3], Some(960)),
            (&[16 << 3], Some(120)),
            (&[31 << 3], Some(960)),
            (&[(31 << 3) | 1, 9], Some(1920)),
            (&[(31 << 3) | 3, 6], Some(5760)),
            (&[(31 << 3) | 3, 7], None), // 140 ms
            (&[(31 << 3) | 3, 0], None),
            (&[(31 << 3) | 3], None),
            (&[], None),
        ] {
            assert_eq!(duration_samples(packet), expect, "{packet:?}");
        }
    }
}
