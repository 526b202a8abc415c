//! The stream of all viewers: a clip encoded once, sent to the server through a gate that counts
//! it.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use throng_sim::namespace::Namespace;

use crate::process::{Running, now_s};

/// Frames per second of the video.
const FPS: u64 = 30;
/// The ports that ffmpeg sends to, and those on which Janus's mountpoint 1 listens.
const VIDEO_PORTS: (u16, u16) = (6004, 5004);
const AUDIO_PORTS: (u16, u16) = (6002, 5002);

/// ffmpeg, which plays the clip into the gate in a loop, and the gate, which forwards to Janus.
/// Ends on drop.
#[derive(Debug)]
pub struct Stream {
    _ffmpeg: Running,
    video: Gate,
    audio: Gate,
}

/// The gate's counts so far.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Count {
    /// When it was read, seconds since the Unix epoch.
    pub at_s: f64,
    /// RTP packets of the video, whether or not the gate was open.
    pub video_packets: u64,
    /// Bytes of those, RTP headers included.
    pub video_bytes: u64,
    /// RTP packets of the audio.
    pub audio_packets: u64,
    /// Bytes of those.
    pub audio_bytes: u64,
}

impl Count {
    /// The counts since `earlier`, per second.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Rate {
        let seconds = self.at_s - earlier.at_s;
        let video = (self.video_packets - earlier.video_packets) as f64;
        let audio = (self.audio_packets - earlier.audio_packets) as f64;
        let (video_bytes, audio_bytes) = (
            (self.video_bytes - earlier.video_bytes) as f64,
            (self.audio_bytes - earlier.audio_bytes) as f64,
        );
        Rate {
            video_packets_per_s: video / seconds,
            video_packet_bytes: video_bytes / video.max(1.0),
            audio_packets_per_s: audio / seconds,
            audio_packet_bytes: audio_bytes / audio.max(1.0),
            bits_per_s: (video_bytes + audio_bytes) * 8.0 / seconds,
            fps: FPS,
        }
    }
}

/// The measured rates and packet sizes of the stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rate {
    /// RTP packets of video a second.
    pub video_packets_per_s: f64,
    /// Mean size of those, RTP header included, bytes.
    pub video_packet_bytes: f64,
    /// RTP packets of audio a second.
    pub audio_packets_per_s: f64,
    /// Mean size of those, RTP header included, bytes.
    pub audio_packet_bytes: f64,
    /// RTP bits a second, both together.
    pub bits_per_s: f64,
    /// Frames of video a second.
    pub fps: u64,
}

impl Rate {
    /// RTP packets a second, both together.
    #[must_use]
    pub fn packets_per_s(&self) -> f64 {
        self.video_packets_per_s + self.audio_packets_per_s
    }

    /// The mean size of a packet of either, RTP header included, bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        self.bits_per_s / 8.0 / self.packets_per_s()
    }
}

impl Stream {
    /// Encodes the clip into `folder` and starts to play it; the gate is open.
    ///
    /// # Errors
    /// When ffmpeg or a socket fails.
    pub fn start(namespace: &Namespace, folder: &Path) -> Result<Self> {
        let clip = folder.join("clip.nut");
        encode(&clip)?;
        let (video, audio) =
            (Gate::open(namespace, VIDEO_PORTS)?, Gate::open(namespace, AUDIO_PORTS)?);
        let mut ffmpeg = namespace.command("ffmpeg");
        ffmpeg
            .args("-hide_banner -loglevel error -nostdin -re -stream_loop -1 -i".split(' '))
            .arg(clip);
        for (kind, payload_type, (port, _)) in
            [("v", "100", VIDEO_PORTS), ("a", "111", AUDIO_PORTS)]
        {
            ffmpeg.args([
                "-map",
                &format!("0:{kind}"),
                "-c",
                "copy",
                "-payload_type",
                payload_type,
            ]);
            ffmpeg.args(["-f", "rtp", &format!("rtp://127.0.0.1:{port}?pkt_size=1200")]);
        }
        // ffmpeg prints the SDP, which is already known.
        ffmpeg.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self { _ffmpeg: Running::start(&mut ffmpeg)?, video, audio })
    }

    /// Whether the gate forwards to the server. The encoder plays on either way.
    pub fn set_open(&self, open: bool) {
        for gate in [&self.video, &self.audio] {
            gate.tally.open.store(open, Relaxed);
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn count(&self) -> Count {
        let (video, audio) = (&self.video.tally, &self.audio.tally);
        Count {
            at_s: now_s(),
            video_packets: video.packets.load(Relaxed),
            video_bytes: video.bytes.load(Relaxed),
            audio_packets: audio.packets.load(Relaxed),
            audio_bytes: audio.bytes.load(Relaxed),
        }
    }

    /// The rates over the next `how_long`.
    ///
    /// # Errors
    /// If nothing plays.
    pub fn rate(&self, how_long: Duration) -> Result<Rate> {
        let before = self.count();
        std::thread::sleep(how_long);
        let rate = self.count().since(&before);
        ensure!(
            rate.video_packets_per_s > 1.0 && rate.audio_packets_per_s > 1.0,
            "ffmpeg does not play: {rate:?}"
        );
        Ok(rate)
    }
}

/// Ten seconds of H.264 (constrained baseline, constant 1 Mbit/s, a key frame each second) and
/// Opus. Noise on the test picture makes the encoder use the whole rate.
fn encode(clip: &Path) -> Result<()> {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args("-hide_banner -loglevel error -nostdin -y".split(' '));
    ffmpeg.args(["-f", "lavfi", "-i", &format!("testsrc2=s=640x360:r={FPS},noise=alls=12:allf=t")]);
    ffmpeg.args("-f lavfi -i sine=f=440:r=48000 -t 10 -pix_fmt yuv420p".split(' '));
    ffmpeg.args(
        "-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -g 30".split(' '),
    );
    ffmpeg.args("-b:v 1000k -minrate 1000k -maxrate 1000k -bufsize 250k -threads 1".split(' '));
    ffmpeg.args("-x264-params repeat-headers=1 -c:a libopus -b:a 48k -ac 2".split(' '));
    let status = ffmpeg.arg(clip).status().context("cannot start ffmpeg")?;
    ensure!(status.success(), "ffmpeg could not encode the clip: {status}");
    Ok(())
}

#[derive(Debug, Default)]
struct Tally {
    packets: AtomicU64,
    bytes: AtomicU64,
    open: AtomicBool,
    ended: AtomicBool,
}

/// Counts the datagrams to one port and forwards them to another while it is open.
#[derive(Debug)]
struct Gate {
    tally: Arc<Tally>,
    thread: Option<JoinHandle<()>>,
}

impl Gate {
    fn open(namespace: &Namespace, (from, to): (u16, u16)) -> Result<Self> {
        let socket = namespace.enter(|| UdpSocket::bind(("127.0.0.1", from)))??;
        // So that it notices its end when nothing arrives.
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
        let tally = Arc::new(Tally { open: AtomicBool::new(true), ..Tally::default() });
        let counted = Arc::clone(&tally);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0_u8; 2048];
            while !counted.ended.load(Relaxed) {
                let Ok(len) = socket.recv(&mut buffer) else { continue };
                counted.packets.fetch_add(1, Relaxed);
                counted.bytes.fetch_add(len as u64, Relaxed);
                if counted.open.load(Relaxed) {
                    // The server may be shutting down.
                    let _ = socket.send_to(&buffer[..len], ("127.0.0.1", to));
                }
            }
        });
        Ok(Self { tally, thread: Some(thread) })
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.tally.ended.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked gate needs no stop.
            let _ = thread.join();
        }
    }
}
