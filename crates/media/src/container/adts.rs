//! AAC in ADTS: each frame with a header of its own (ISO/IEC 13818-7, 6.2), as `ffmpeg -f adts`
//! writes it.

/// Sample rates by their index (ISO/IEC 14496-3, table 1.18).
const RATES_HZ: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// Samples that a frame adds.
pub const FRAME_SAMPLES: u32 = 1_024;

/// What a decoder of AAC has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioConfig {
    /// Audio object type; 2 is AAC-LC (ISO/IEC 14496-3, table 1.17).
    pub object_type: u8,
    /// Samples a second.
    pub sample_rate_hz: u32,
    /// Channel configuration, for up to six the number of channels (table 1.19).
    pub channels: u8,
}

impl AudioConfig {
    /// `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1).
    #[must_use]
    pub fn specific(&self) -> [u8; 2] {
        let rate = RATES_HZ.iter().position(|hz| *hz == self.sample_rate_hz).unwrap_or(3) as u8;
        [self.object_type << 3 | rate >> 1, rate << 7 | self.channels << 3]
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdtsError {
    /// No header where one has to be.
    #[error("no ADTS header at offset {0}")]
    NoHeader(usize),
    /// A value that is reserved, or that this reader does not know.
    #[error("the ADTS header at offset {at} has {what}")]
    Header {
        /// Bytes before it.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A frame that is cut off.
    #[error("the frame at offset {0} is cut off")]
    CutOff(usize),
}

/// The frames of a file, without their headers.
#[derive(Debug)]
pub struct AdtsReader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> AdtsReader<'a> {
    /// A reader of `file`.
    #[must_use]
    pub fn new(file: &'a [u8]) -> Self {
        Self { file, at: 0 }
    }

    fn frame(&mut self) -> Result<(AudioConfig, &'a [u8]), AdtsError> {
        let at = self.at;
        let header = self.file.get(at..).and_then(|rest| rest.first_chunk::<7>());
        let [0xff, b1, b2, b3, b4, b5, b6] = header.ok_or(AdtsError::CutOff(at))? else {
            return Err(AdtsError::NoHeader(at));
        };
        // Sync word and layer.
        if b1 & 0xf6 != 0xf0 {
            return Err(AdtsError::NoHeader(at));
        }
        let wrong = |what| Err(AdtsError::Header { at, what });
        let Some(sample_rate_hz) = RATES_HZ.get(usize::from(b2 >> 2 & 0xf)).copied() else {
            return wrong("a reserved sample rate");
        };
        let channels = (b2 & 1) << 2 | b3 >> 6;
        if channels == 0 {
            return wrong("channels that are described in the frame, which is not supported");
        }
        if b6 & 3 != 0 {
            return wrong("several blocks of samples, which is not supported");
        }
        let length = usize::from(b3 & 3) << 11 | usize::from(*b4) << 3 | usize::from(b5 >> 5);
        let header_bytes = if b1 & 1 == 0 { 9 } else { 7 };
        let frame = self.file.get(at + header_bytes..at + length.max(header_bytes));
        let frame = frame.filter(|frame| !frame.is_empty()).ok_or(AdtsError::CutOff(at))?;
        self.at += length;
        Ok((AudioConfig { object_type: (b2 >> 6) + 1, sample_rate_hz, channels }, frame))
    }
}

impl<'a> Iterator for AdtsReader<'a> {
    type Item = Result<(AudioConfig, &'a [u8]), AdtsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.file.len() {
            return None;
        }
        let frame = self.frame();
        if frame.is_err() {
            self.at = self.file.len();
        }
        Some(frame)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A frame with its header: AAC-LC, 48 kHz, one channel.
    pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
        let length = body.len() + 7;
        let header = [
            0xff,
            0xf1,
            1 << 6 | 3 << 2,
            1 << 6 | (length >> 11) as u8,
            (length >> 3) as u8,
            (length << 5) as u8 | 0x1f,
            0xfc,
        ];
        [&header[..], body].concat()
    }

    #[test]
    fn frames_come_without_headers_and_damage_names_its_place() {
        let file = [frame(&[1, 2, 3]), frame(&[9; 700])].concat();
        let frames: Vec<_> = AdtsReader::new(&file).map(Result::unwrap).collect();
        let config = AudioConfig { object_type: 2, sample_rate_hz: 48_000, channels: 1 };
        assert_eq!(frames, [(config, &[1, 2, 3][..]), (config, &[9; 700][..])]);
        assert_eq!(config.specific(), [0x11, 0x88]);
        let stereo = AudioConfig { object_type: 2, sample_rate_hz: 44_100, channels: 2 };
        assert_eq!(stereo.specific(), [0x12, 0x10]);
        for (bytes, expect) in [
            (&file[..12], "the frame at offset 10 is cut off"),
            (&file[..300], "the frame at offset 10 is cut off"),
            (b"\xff\xf1\x50\x40\x02\x1f\xfc\xff\xff", "the frame at offset 0 is cut off"),
            (
                b"\xff\xf1\x7c\x40\x01\x1f\xfc",
                "the ADTS header at offset 0 has a reserved sample rate",
            ),
            (b"ID3\x04\0\0\0", "no ADTS header at offset 0"),
        ] {
            let result = AdtsReader::new(bytes).last();
            assert_eq!(result.unwrap().unwrap_err().to_string(), expect);
        }
    }
}
