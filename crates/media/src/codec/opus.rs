//! Opus (RFC 7587): every packet is a frame of its own; its first bytes contain its duration (RFC
//! 6716 section 3).

use throng_observation::Codec;

use super::CodecError;

/// RTP's clock rate for Opus, independent of the audio's own (RFC 7587 section 4.1).
const SAMPLES_PER_MS: u32 = 48;
/// RFC 6716 section 3.2.5, R5.
const DURATION_MS_MAX: u32 = 120;

/// The header of an Opus packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpusPacket {
    /// Duration of its audio, in samples of the 48 kHz RTP clock; 120–5760.
    pub duration_samples: u32,
    /// It codes two channels.
    pub stereo: bool,
    /// Discontinuous transmission: it has no audio data (at most two bytes), the decoder conceals
    /// or is silent.
    pub is_dtx: bool,
}

impl OpusPacket {
    /// Reads the header of a packet.
    ///
    /// # Errors
    /// [`CodecError::Truncated`] when it is empty or its frame count is missing,
    /// [`CodecError::Malformed`] when it has no frames or more than 120 ms of them.
    #[inline]
    pub fn parse(payload: &[u8]) -> Result<Self, CodecError> {
        let truncated =
            CodecError::Truncated { codec: Codec::Opus, what: "head", len: payload.len() };
        let &toc = payload.first().ok_or(truncated)?;
        let frames = match toc & 3 {
            0 => 1,
            1 | 2 => 2,
            _ => u32::from(payload.get(1).ok_or(truncated)? & 0x3f),
        };
        let duration_samples = frames * frame_samples(toc >> 3);
        if duration_samples == 0 || duration_samples > DURATION_MS_MAX * SAMPLES_PER_MS {
            return Err(CodecError::Malformed { codec: Codec::Opus, what: "frame count" });
        }
        Ok(Self { duration_samples, stereo: toc & 4 != 0, is_dtx: payload.len() <= 2 })
    }
}

/// Samples of one frame of a configuration (RFC 6716 table 2).
fn frame_samples(configuration: u8) -> u32 {
    let ms = SAMPLES_PER_MS;
    match (configuration, configuration & 3) {
        (0..12, 0) => 10 * ms,
        (0..12, 1) => 20 * ms,
        (0..12, 2) => 40 * ms,
        (0..12, _) => 60 * ms,
        (12..16, size) => (10 * ms) << (size & 1),
        (_, size) => (5 * ms / 2) << size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_follow_the_table_of_rfc_6716() {
        for (configuration, tenths_of_ms) in [
            (0, 100),
            (1, 200),
            (2, 400),
            (3, 600),
            (11, 600),
            (12, 100),
            (13, 200),
            (14, 100),
            (15, 200),
            (16, 25),
            (17, 50),
            (18, 100),
            (19, 200),
            (31, 200),
        ] {
            let packet = OpusPacket::parse(&[configuration << 3, 0, 0]).unwrap();
            assert_eq!(packet.duration_samples, tenths_of_ms * 48 / 10, "{configuration}");
        }
    }

    #[test]
    fn frame_counts_multiply() {
        for (payload, expect) in [
            (&[0x78, 0, 0][..], Ok(960)), // configuration 15, one frame
            (&[0x79, 0, 0], Ok(1920)),
            (&[0x7a, 0, 0], Ok(1920)),
            (&[0x7b, 3, 0], Ok(2880)),
            (&[0x7b, 0xc6, 0], Ok(5760)), // VBR and padding flags are not part of the count
            (&[0x7b, 7, 0], Err(())),     // 140 ms
            (&[0x7b, 0, 0], Err(())),
            (&[0x7b], Err(())),
            (&[], Err(())),
        ] {
            let duration = OpusPacket::parse(payload).map(|p| p.duration_samples).map_err(|_| ());
            assert_eq!(duration, expect, "{payload:x?}");
        }
    }

    #[test]
    fn silence_and_channels() {
        let packet = OpusPacket::parse(&[0x7c, 0]).unwrap();
        assert!(packet.stereo && packet.is_dtx);
        let packet = OpusPacket::parse(&[0x78, 0, 0]).unwrap();
        assert!(!packet.stereo && !packet.is_dtx);
    }
}
