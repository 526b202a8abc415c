//! The floor: the cost of receiving and decrypting the packets of N viewers, and nothing else.
//!
//! A child process seals and sends the packets that N Janus viewers of one stream would get, frame by frame; this
//! process does `epoll_wait`, `recvmmsg` and SRTP decryption on N sockets, one tick at a time, and prints its CPU
//! time per packet. No ICE, no feedback, no meters, no per-packet bookkeeping except the extended sequence number
//! that SRTP itself needs.
//!
//! ```text
//! floor -n 300 --seconds 10 --tick-ms 5
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use throng_protocol::webrtc::srtp::{IndexEstimator, Opener, Profile, SessionKeys};

/// Receive buffer of one datagram: an MTU and some.
const DATAGRAM: usize = 2048;
const BATCH: usize = 32;

#[derive(Parser)]
struct Arguments {
    /// Viewers
    #[arg(short, default_value_t = 300)]
    n: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 5)]
    tick_ms: u64,
    /// Frames per second of the video
    #[arg(long, default_value_t = 30)]
    fps: u64,
    /// Packets a video frame
    #[arg(long, default_value_t = 5)]
    packets_per_frame: usize,
    /// Payload bytes of a video packet
    #[arg(long, default_value_t = 850)]
    video_bytes: usize,
    /// Payload bytes of an audio packet; there are 50 a second
    #[arg(long, default_value_t = 120)]
    audio_bytes: usize,
    /// CPU of the child process that sends [default: any that this process may use]
    #[arg(long)]
    sender_cpu: Option<usize>,
    /// Send to these ports (the child process)
    #[arg(long, hide = true, value_delimiter = ',')]
    send_to: Vec<u16>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.send_to.is_empty() { receive(&arguments) } else { send(&arguments) }
}

fn keys(we_are_dtls_client: bool) -> Result<SessionKeys> {
    let profile = Profile::AeadAes256Gcm;
    let material: Vec<u8> = (0..profile.keying_material_len() as u8).collect();
    Ok(SessionKeys::new(profile, &material, we_are_dtls_client)?)
}

/// One RTP packet before sealing, with its place in time.
struct Planned {
    at: Duration,
    ssrc: u32,
    payload: usize,
    marker: bool,
}

/// One second of the stream, in order of time.
fn second(arguments: &Arguments) -> Vec<Planned> {
    let mut plan = Vec::new();
    for frame in 0..arguments.fps {
        for packet in 0..arguments.packets_per_frame {
            plan.push(Planned {
                at: Duration::from_micros(frame * 1_000_000 / arguments.fps),
                ssrc: 1,
                payload: arguments.video_bytes,
                marker: packet + 1 == arguments.packets_per_frame,
            });
        }
    }
    plan.extend((0..50).map(|n| Planned {
        at: Duration::from_millis(n * 20),
        ssrc: 2,
        payload: arguments.audio_bytes,
        marker: false,
    }));
    plan.sort_by_key(|planned| planned.at);
    plan
}

fn send(arguments: &Arguments) -> Result<()> {
    if let Some(cpu) = arguments.sender_cpu {
        throng_bench::process::pin_to(cpu)?;
    }
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let sealer = keys(true)?.sealer()?;
    let plan = second(arguments);
    let (start, mut sequences) = (Instant::now(), [0_u64; 3]);
    // All sockets get the same sealed bytes: the receiver's cost does not depend on how they were sealed.
    for elapsed in 0..arguments.seconds + 4 {
        for planned in &plan {
            let due = start + Duration::from_secs(elapsed) + planned.at;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let index = &mut sequences[planned.ssrc as usize];
            let mut packet = vec![0_u8; 12 + planned.payload + 16];
            packet[0] = 0x80;
            packet[1] = 96 | u8::from(planned.marker) << 7;
            packet[2..4].copy_from_slice(&(*index as u16).to_be_bytes());
            packet[8..12].copy_from_slice(&planned.ssrc.to_be_bytes());
            let len = sealer.seal_rtp(&mut packet, 12 + planned.payload, 12, planned.ssrc, *index)?;
            *index += 1;
            for port in &arguments.send_to {
                // The receiver may have ended already.
                let _ = socket.send_to(&packet[..len], SocketAddr::from(([127, 0, 0, 1], *port)));
            }
        }
    }
    Ok(())
}

struct Viewer {
    socket: UdpSocket,
    opener: Opener,
    indices: [IndexEstimator; 3],
}

fn receive(arguments: &Arguments) -> Result<()> {
    let keys = keys(false)?;
    let mut viewers = Vec::new();
    for _ in 0..arguments.n {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        viewers.push(Viewer { socket, opener: keys.opener()?, indices: Default::default() });
    }
    let mut sender = spawn_sender(arguments, &viewers)?;
    let mut floor = Floor::new(&viewers)?;
    let tick = Duration::from_millis(arguments.tick_ms);
    floor.run(&mut viewers, Duration::from_secs(2), tick)?;
    let (cpu_before, start) = (cpu(), Instant::now());
    let packets = floor.run(&mut viewers, Duration::from_secs(arguments.seconds), tick)?;
    let cpu_us = (cpu() - cpu_before).as_micros();
    let seconds = start.elapsed().as_secs_f64();
    sender.kill()?;
    sender.wait()?;
    ensure!(packets > 0, "nothing arrived");
    println!(
        "{}",
        serde_json::json!({
            "viewers": arguments.n,
            "packets": packets,
            "packets_per_s": packets as f64 / seconds,
            "cpu_us_per_packet": cpu_us as f64 / packets as f64,
        })
    );
    Ok(())
}

fn spawn_sender(arguments: &Arguments, viewers: &[Viewer]) -> Result<Child> {
    let ports: Vec<String> =
        viewers.iter().map(|v| Ok(v.socket.local_addr()?.port().to_string())).collect::<Result<_>>()?;
    let mut command = Command::new(std::env::current_exe()?);
    for (flag, value) in [
        ("--seconds", arguments.seconds.to_string()),
        ("--fps", arguments.fps.to_string()),
        ("--packets-per-frame", arguments.packets_per_frame.to_string()),
        ("--video-bytes", arguments.video_bytes.to_string()),
        ("--audio-bytes", arguments.audio_bytes.to_string()),
        ("--send-to", ports.join(",")),
    ] {
        command.args([flag, &value]);
    }
    command.args(arguments.sender_cpu.map(|cpu| format!("--sender-cpu={cpu}")));
    command.spawn().context("cannot start the sending process")
}

struct Floor {
    epoll: RawFd,
    events: Vec<libc::epoll_event>,
    buffers: Vec<[u8; DATAGRAM]>,
}

impl Floor {
    fn new(viewers: &[Viewer]) -> Result<Self> {
        // SAFETY: no pointers are passed.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        ensure!(epoll >= 0, "epoll_create1: {}", std::io::Error::last_os_error());
        for (index, viewer) in viewers.iter().enumerate() {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: index as u64 };
            // SAFETY: both descriptors are open, and the event outlives the call.
            let added = unsafe {
                libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, viewer.socket.as_raw_fd(), &raw mut event)
            };
            ensure!(added == 0, "epoll_ctl: {}", std::io::Error::last_os_error());
        }
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; viewers.len()];
        Ok(Self { epoll, events, buffers: vec![[0; DATAGRAM]; BATCH] })
    }

    fn run(&mut self, viewers: &mut [Viewer], how_long: Duration, tick: Duration) -> Result<u64> {
        let (end, mut packets) = (Instant::now() + how_long, 0);
        while Instant::now() < end {
            std::thread::sleep(tick);
            // SAFETY: `events` has the given length.
            let ready = unsafe {
                libc::epoll_wait(self.epoll, self.events.as_mut_ptr(), self.events.len() as i32, 0)
            };
            for at in 0..usize::try_from(ready).unwrap_or(0) {
                let viewer = &mut viewers[self.events[at].u64 as usize];
                loop {
                    let count = self.receive_batch(viewer, &mut packets)?;
                    if count < BATCH {
                        break;
                    }
                }
            }
        }
        Ok(packets)
    }

    fn receive_batch(&mut self, viewer: &mut Viewer, packets: &mut u64) -> Result<usize> {
        // SAFETY: all-zero is a valid value of both C structures.
        let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        for ((buffer, vector), header) in self.buffers.iter_mut().zip(&mut vectors).zip(&mut headers) {
            *vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: DATAGRAM };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every header points to a vector and a buffer that outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                viewer.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).unwrap_or(0);
        for (buffer, header) in self.buffers.iter_mut().zip(&headers).take(count) {
            let packet = &mut buffer[..header.msg_len as usize];
            let sequence = u16::from_be_bytes([packet[2], packet[3]]);
            let ssrc = u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]);
            let estimator = &mut viewer.indices[ssrc as usize];
            let index = estimator.estimate(sequence);
            viewer.opener.open_rtp(packet, 12, ssrc, index)?;
            estimator.accept(index);
            *packets += 1;
        }
        Ok(count)
    }
}

/// User and system time of this process.
fn cpu() -> Duration {
    // SAFETY: all-zero is a valid rusage, and the pointer outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let time =
        |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    time(usage.ru_utime) + time(usage.ru_stime)
}
