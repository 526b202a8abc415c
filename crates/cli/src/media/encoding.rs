//! What a file of a catalogue holds, and the arguments with which FFmpeg makes it.

use crate::args::{Container, MediaMake, VideoCodec};
use crate::console::CliError;

/// Bits per second of the sound.
const AUDIO_BITS_PER_S: u64 = 96_000;
/// Frame rates that MPEG-2 can express (ISO/IEC 13818-2, table 6-4), whole numbers only.
const MPEG2_FPS: [u32; 5] = [24, 25, 30, 50, 60];

/// A valid combination of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) codec: VideoCodec,
    pub(super) container: Container,
    pub(super) bits_per_s: u64,
    pub(super) seconds: u32,
    pub(super) size: (u32, u32),
    pub(super) fps: u32,
    pub(super) gop: u32,
    layout: Layout,
    /// Threads of one encoder.
    threads: u32,
}

/// Where an MP4 has its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    First,
    Last,
    Fragments,
}

impl Encoding {
    /// The flags' encoding on a machine with that many cores.
    pub(super) fn of(command: &MediaMake, cores: u32) -> Result<Self, CliError> {
        let codec = command.codec;
        let container = command.container.unwrap_or(match codec {
            VideoCodec::Mpeg2 => Container::Ts,
            VideoCodec::Vp9 => Container::Webm,
            VideoCodec::H264 | VideoCodec::H265 | VideoCodec::Mpeg4 => Container::Mp4,
        });
        let holds = match container {
            Container::Webm => codec == VideoCodec::Vp9,
            Container::Ts => codec != VideoCodec::Vp9,
            Container::Mp4 => true,
        };
        let (codec_name, container_name) = (codec.key(), container.key());
        if !holds {
            return Err(CliError::usage(format!(
                "--container {container_name}: it cannot hold {codec_name}; leave the flag out, \
                 or use mp4"
            )));
        }
        let layout = match (command.fragmented, command.moov_last) {
            (true, _) => Layout::Fragments,
            (_, true) => Layout::Last,
            _ => Layout::First,
        };
        if layout != Layout::First && container != Container::Mp4 {
            let flag = if command.fragmented { "--fragmented" } else { "--moov-last" };
            return Err(CliError::usage(format!(
                "{flag}: only for --container mp4, not {container_name}"
            )));
        }
        if codec == VideoCodec::Mpeg2 && !MPEG2_FPS.contains(&command.fps) {
            return Err(CliError::usage(format!(
                "--fps {}: MPEG-2 has 24, 25, 30, 50 and 60 frames per second",
                command.fps
            )));
        }
        let encoding = Self {
            codec,
            container,
            bits_per_s: command.bitrate,
            seconds: command.seconds,
            size: command.size,
            fps: command.fps,
            gop: command.gop.unwrap_or(command.fps),
            layout,
            threads: (cores / command.count).max(1),
        };
        if encoding.video_bits_per_s() < 20_000 {
            return Err(CliError::usage(format!(
                "--bitrate {}: too little for video next to {AUDIO_BITS_PER_S} bit/s of audio; at \
                 least 200k",
                command.bitrate
            )));
        }
        Ok(encoding)
    }

    /// The encoder of the video, by FFmpeg's name.
    pub(super) fn encoder(&self) -> &'static str {
        match self.codec {
            VideoCodec::Mpeg2 => "mpeg2video",
            VideoCodec::H264 => "libx264",
            VideoCodec::H265 => "libx265",
            VideoCodec::Mpeg4 => "mpeg4",
            VideoCodec::Vp9 => "libvpx-vp9",
        }
    }

    /// The encoder of the sound, by FFmpeg's name.
    pub(super) fn audio_encoder(&self) -> &'static str {
        match (self.codec, self.container) {
            (VideoCodec::Mpeg2, _) => "mp2",
            (_, Container::Webm) => "libopus",
            _ => "aac",
        }
    }

    /// Frames of a whole file.
    pub(super) fn frames(&self) -> u64 {
        u64::from(self.seconds) * u64::from(self.fps)
    }

    /// What is left for video at first: the overhead of a transport stream is 4 to 6 %, that of
    /// others about 1 %.
    pub(super) fn video_bits_per_s(&self) -> u64 {
        let payload = match self.container {
            Container::Ts => 0.92,
            Container::Mp4 | Container::Webm => 0.985,
        };
        ((self.bits_per_s as f64 * payload) as u64).saturating_sub(AUDIO_BITS_PER_S)
    }

    /// FFmpeg's arguments for file `number`, but for the name of the file.
    pub(super) fn arguments(&self, number: u32, video_bits_per_s: u64) -> Vec<String> {
        let Self { fps, gop, seconds, threads, size: (width, height), .. } = self;
        // Noise takes up the bits of a constant bitrate, which a clean test card would leave
        // unused. Noise and colours follow from the number, so that no two files have a picture in
        // common.
        let card = format!(
            "testsrc2=s={width}x{height}:r={fps}:d={seconds},noise=alls=4:allf=t:all_seed={number},\
             hue=h={},format=yuv420p",
            number * 37 % 360
        );
        let tone = format!("sine=f={}:r=48000:d={seconds}", 200 + number * 10 % 2_000);
        let rate = video_bits_per_s;
        let video = format!(
            "-c:v {} {} -b:v {rate} -minrate {rate} -maxrate {rate} -bufsize {} -g {gop} -threads \
             {threads}",
            self.encoder(),
            self.encoder_options(),
            rate / 2
        );
        let audio = format!("-c:a {} -b:a {AUDIO_BITS_PER_S} -ac 2", self.audio_encoder());
        let sources = ["-f", "lavfi", "-i", &card, "-f", "lavfi", "-i", &tone].map(str::to_owned);
        let coding = [video, audio, self.muxer_options()].join(" ");
        // The muxers would note their version and the time.
        let coding =
            coding.split_whitespace().chain(["-map_metadata", "-1", "-fflags", "+bitexact"]);
        sources.into_iter().chain(coding.map(str::to_owned)).collect()
    }

    fn encoder_options(&self) -> String {
        let gop = self.gop;
        match self.codec {
            VideoCodec::Mpeg2 | VideoCodec::Mpeg4 => "-bf 0".into(),
            VideoCodec::H264 => {
                "-preset veryfast -bf 0 -sc_threshold 0 -x264-params nal-hrd=cbr:force-cfr=1".into()
            }
            VideoCodec::H265 => format!(
                "-preset ultrafast -x265-params \
                 log-level=error:bframes=0:scenecut=0:strict-cbr=1:keyint={gop}:min-keyint={gop}"
            ),
            VideoCodec::Vp9 => "-deadline realtime -cpu-used 8".into(),
        }
    }

    fn muxer_options(&self) -> String {
        let tag = if self.codec == VideoCodec::H265 { "-tag:v hvc1 " } else { "" };
        match (self.container, self.layout) {
            (Container::Ts, _) => format!("-f mpegts -muxrate {}", self.bits_per_s),
            (Container::Webm, _) => "-f webm".into(),
            (Container::Mp4, Layout::First) => format!("{tag}-f mp4 -movflags +faststart"),
            (Container::Mp4, Layout::Last) => format!("{tag}-f mp4"),
            (Container::Mp4, Layout::Fragments) => {
                format!("{tag}-f mp4 -movflags +frag_keyframe+empty_moov+default_base_moof")
            }
        }
    }
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
