//! A stream on the command line, such as `vp8:320x240@30:256k`.

use std::str::FromStr;

use throng_observation::Codec;

/// A video stream to encode and decode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Video {
    /// VP8, VP9, AV1 or H.264.
    pub codec: Codec,
    /// Width and height, pixels.
    pub size: (u16, u16),
    /// Pictures a second.
    pub fps: f64,
    /// Bits per second.
    pub bits_per_s: f64,
}

impl FromStr for Video {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |what: &str| {
            format!(
                "{what} in `{text}`: write CODEC:WIDTHxHEIGHT@FPS:RATE such as vp8:320x240@30:256k"
            )
        };
        let [codec, picture, rate] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(bad("three parts with colons between them are missing"));
        };
        let codec = match codec.to_ascii_lowercase().as_str() {
            "vp8" => Codec::Vp8,
            "vp9" => Codec::Vp9,
            "av1" => Codec::Av1,
            "h264" => Codec::H264,
            _ => return Err(bad("no codec that is encoded here (vp8, vp9, av1, h264)")),
        };
        let (size, fps) = picture.split_once('@').ok_or_else(|| bad("no @FPS"))?;
        let (width, height) = size.split_once('x').ok_or_else(|| bad("no WIDTHxHEIGHT"))?;
        let side = |text: &str| {
            text.parse::<u16>()
                .ok()
                .filter(|side| (16..=8_192).contains(side) && side.is_multiple_of(2))
        };
        let size =
            side(width).zip(side(height)).ok_or_else(|| bad("no even size from 16 to 8192"))?;
        let within =
            |number: f64, least: f64, most: f64| (least..=most).contains(&number).then_some(number);
        let fps = fps.parse().ok().and_then(|fps| within(fps, 1.0, 240.0));
        let rate = rate.trim_end_matches("bit/s");
        let (digits, unit) = match rate.as_bytes().last() {
            Some(b'k') => (&rate[..rate.len() - 1], 1e3),
            Some(b'M') => (&rate[..rate.len() - 1], 1e6),
            _ => (rate, 1.0),
        };
        let bits_per_s = digits.parse::<f64>().ok().and_then(|rate| within(rate * unit, 1e3, 1e9));
        Ok(Self {
            codec,
            size,
            fps: fps.ok_or_else(|| bad("no frame rate from 1 to 240"))?,
            bits_per_s: bits_per_s.ok_or_else(|| bad("no rate from 1k to 1000M"))?,
        })
    }
}

impl std::fmt::Display for Video {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (codec, (width, height)) = (self.codec.name(), self.size);
        write!(
            f,
            "{codec} {width}x{height} at {} fps, {:.0} kbit/s",
            self.fps,
            self.bits_per_s / 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_as_they_are_said() {
        for (text, expect) in [
            ("vp8:320x240@30:256k", (Codec::Vp8, (320, 240), 30.0, 256e3)),
            ("H264:1280x720@29.97:2.5M", (Codec::H264, (1280, 720), 29.97, 2.5e6)),
            ("av1:640x360@15:300000", (Codec::Av1, (640, 360), 15.0, 3e5)),
            ("vp9:16x16@1:1kbit/s", (Codec::Vp9, (16, 16), 1.0, 1e3)),
        ] {
            let (codec, size, fps, bits_per_s) = expect;
            assert_eq!(text.parse(), Ok(Video { codec, size, fps, bits_per_s }), "{text}");
        }
        for (text, expect) in [
            ("vp8", "three parts"),
            ("opus:320x240@30:256k", "no codec"),
            ("vp8:320x240:256k", "no @FPS"),
            ("vp8:320@30:256k", "no WIDTHxHEIGHT"),
            ("vp8:321x240@30:256k", "no even size"),
            ("vp8:320x240@0:256k", "no frame rate"),
            ("vp8:320x240@nan:256k", "no frame rate"),
            ("vp8:320x240@30:k", "no rate"),
            ("vp8:320x240@30:5G", "no rate"),
            ("vp8:320x240@30:µ", "no rate"),
        ] {
            let error = text.parse::<Video>().unwrap_err();
            assert!(
                error.contains(expect) && error.contains("vp8:320x240@30:256k"),
                "{text}: {error}"
            );
        }
    }
}
