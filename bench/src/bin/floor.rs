//! The floor: the cost of receiving and decrypting the packets of N viewers, and nothing else.
//!
//! A child process seals and sends the packets that N Janus viewers of one stream would get, frame
//! by frame; this process does `epoll_wait`, `recvmmsg` and SRTP decryption on N sockets, one tick
//! at a time, and prints its CPU time per packet. With `--ring` it takes the same packets from one
//! memory-mapped ring, sorted by viewer, and decrypts them where they are; the sockets stay open
//! and drop theirs, as those of throng do. No ICE, no feedback, no meters, no per-packet
//! bookkeeping except the extended sequence number that SRTP itself needs.
//!
//! ```text
//! floor -n 300 --seconds 10 --tick-ms 5
//! floor --ring -n 300
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use throng_bench::floor::Floor;
use throng_bench::generator::Receive;
use throng_bench::process::CoreTime;
use throng_net::packet_ring::{InRing, PacketRing, Place, RingConfig, interface_of, leave_to_ring};
use throng_protocol::webrtc::srtp::{IndexEstimator, Opener, Profile, SessionKeys};

/// Receive buffer of one datagram: an MTU and some.
const DATAGRAM: usize = 2048;
const BATCH: usize = 32;
/// Ports that the kernel does not choose by itself (`ip_local_port_range`).
const PORTS: std::ops::Range<u16> = 16_384..32_768;
/// Memory of a ring, as throng has it for streams of 1 Mbit/s.
const RING_BYTES_PER_VIEWER: usize = 160_000;
const RING_BYTES_MIN: usize = 40 << 20;
const RING_BYTES_MAX: usize = 256 << 20;

#[derive(Parser)]
struct Arguments {
    /// Viewers
    #[arg(short, default_value_t = 300)]
    n: usize,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 5)]
    tick_ms: u64,
    /// Receive from a memory-mapped ring; needs CAP_NET_RAW
    #[arg(long)]
    ring: bool,
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
    // All sockets get the same sealed bytes: the receiver's cost does not depend on how they were
    // sealed.
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
            let len =
                sealer.seal_rtp(&mut packet, 12 + planned.payload, 12, planned.ssrc, *index)?;
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
    /// The first and the last of its packets in [`Ring::arrived`].
    arrived: Option<(usize, usize)>,
}

impl Viewer {
    fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Decrypts a packet in place.
    fn open(&mut self, packet: &mut [u8]) -> Result<()> {
        let sequence = u16::from_be_bytes([packet[2], packet[3]]);
        let ssrc = u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]);
        let estimator = &mut self.indices[ssrc as usize];
        let index = estimator.estimate(sequence);
        self.opener.open_rtp(packet, 12, ssrc, index)?;
        estimator.accept(index);
        Ok(())
    }
}

/// Sockets on ports one after the other, so that a ring's filter selects theirs.
fn sockets(count: usize) -> Result<Vec<UdpSocket>> {
    let step = u16::try_from(count).context("too many viewers")?.max(1);
    let bind = |first: u16| {
        let ports = first..first.checked_add(step)?;
        let bound = ports.map(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)));
        bound.collect::<std::io::Result<Vec<_>>>().ok()
    };
    let mut firsts = PORTS.step_by(step.into()).filter(|first| PORTS.end - first >= step);
    firsts
        .find_map(bind)
        .context("there are no such ports, or too few open files are allowed (ulimit -n)")
}

fn receive(arguments: &Arguments) -> Result<()> {
    let keys = keys(false)?;
    let mut viewers = Vec::new();
    for socket in sockets(arguments.n)? {
        let (opener, indices) = (keys.opener()?, Default::default());
        viewers.push(Viewer { socket, opener, indices, arrived: None });
    }
    let mut way = if arguments.ring {
        Way::Ring(Ring::new(&viewers)?)
    } else {
        Way::Sockets(Sockets::new(&viewers)?)
    };
    let mut sender = spawn_sender(arguments, &viewers)?;
    let tick = Duration::from_millis(arguments.tick_ms);
    way.run(&mut viewers, Duration::from_secs(2), tick)?;
    way.drops()?;
    // SAFETY: no pointers are passed.
    let core = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0);
    let (cpu_before, core_before, start) = (cpu(), CoreTime::of(core)?, Instant::now());
    let packets = way.run(&mut viewers, Duration::from_secs(arguments.seconds), tick)?;
    let cpu_us = (cpu() - cpu_before).as_micros();
    let (steal_ratio, seconds) =
        (CoreTime::of(core)?.steal_since(core_before), start.elapsed().as_secs_f64());
    sender.kill()?;
    sender.wait()?;
    ensure!(packets > 0, "nothing arrived");
    let floor = Floor {
        receive: if arguments.ring { Receive::Ring } else { Receive::Sockets },
        viewers: u32::try_from(arguments.n)?,
        packets,
        packets_per_s: packets as f64 / seconds,
        cpu_us_per_packet: cpu_us as f64 / packets as f64,
        drops: way.drops()?,
        steal_ratio,
    };
    println!("{}", serde_json::to_string(&floor)?);
    Ok(())
}

fn spawn_sender(arguments: &Arguments, viewers: &[Viewer]) -> Result<Child> {
    let ports: Vec<String> =
        viewers.iter().map(|viewer| Ok(viewer.port()?.to_string())).collect::<Result<_>>()?;
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

/// Where the packets come from.
enum Way {
    Sockets(Sockets),
    Ring(Ring),
}

impl Way {
    fn run(&mut self, viewers: &mut [Viewer], how_long: Duration, tick: Duration) -> Result<u64> {
        let (end, mut packets) = (Instant::now() + how_long, 0);
        while Instant::now() < end {
            std::thread::sleep(tick);
            packets += match self {
                Self::Sockets(sockets) => sockets.receive(viewers)?,
                Self::Ring(ring) => ring.receive(viewers)?,
            };
        }
        Ok(packets)
    }

    /// What the ring had no room for since the last call.
    fn drops(&self) -> Result<Option<u64>> {
        match self {
            Self::Sockets(_) => Ok(None),
            Self::Ring(ring) => Ok(Some(ring.ring.statistics()?.drops.into())),
        }
    }
}

/// A packet of this tick, and the next one of its viewer.
#[derive(Clone, Copy)]
struct Arrived {
    place: Place,
    index: u16,
    next: Option<usize>,
}

struct Ring {
    ring: PacketRing,
    /// The port of the first viewer.
    first: u16,
    arrived: Vec<Arrived>,
    /// Viewers with packets in this tick.
    touched: Vec<usize>,
}

impl Ring {
    /// Opens it, and makes the viewers' sockets drop what it has.
    fn new(viewers: &[Viewer]) -> Result<Self> {
        let first = viewers.first().context("no viewers")?.port()?;
        let last = viewers.last().context("no viewers")?.port()?;
        let local = Ipv4Addr::LOCALHOST.into();
        let interface = interface_of(local)?;
        let bytes = (viewers.len() * RING_BYTES_PER_VIEWER).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        let config =
            RingConfig { interface: interface.index, is_ipv4: true, ports: first..=last, bytes };
        let ring = PacketRing::open(&config).context("cannot open a packet ring")?;
        let in_ring = InRing { interface: interface.index, mtu: interface.mtu, local };
        for viewer in viewers {
            leave_to_ring(viewer.socket.as_fd(), &in_ring)?;
        }
        Ok(Self { ring, first, arrived: Vec::new(), touched: Vec::new() })
    }

    /// Takes what has arrived, sorts it by viewer as throng does, and decrypts it.
    fn receive(&mut self, viewers: &mut [Viewer]) -> Result<u64> {
        let Self { ring, first, arrived, touched } = self;
        ring.collect(|place, frame| {
            let at = usize::from(frame.local.port().wrapping_sub(*first));
            let Some(viewer) = viewers.get_mut(at) else { return };
            for index in 0..frame.datagrams() {
                let new = arrived.len();
                arrived.push(Arrived { place, index, next: None });
                match &mut viewer.arrived {
                    Some((_, last)) => {
                        arrived[*last].next = Some(new);
                        *last = new;
                    }
                    none => {
                        *none = Some((new, new));
                        touched.push(at);
                    }
                }
            }
        });
        let mut packets = 0;
        for at in touched.drain(..) {
            let viewer = &mut viewers[at];
            let mut next = viewer.arrived.take().map(|(first, _)| first);
            while let Some(number) = next {
                let one = arrived[number];
                if let Ok(datagram) = ring.datagram(one.place, one.index) {
                    viewer.open(datagram.bytes)?;
                    packets += 1;
                }
                next = one.next;
            }
        }
        arrived.clear();
        ring.release();
        Ok(packets)
    }
}

struct Sockets {
    epoll: RawFd,
    events: Vec<libc::epoll_event>,
    buffers: Vec<[u8; DATAGRAM]>,
}

impl Sockets {
    fn new(viewers: &[Viewer]) -> Result<Self> {
        // SAFETY: no pointers are passed.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        ensure!(epoll >= 0, "epoll_create1: {}", std::io::Error::last_os_error());
        for (index, viewer) in viewers.iter().enumerate() {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: index as u64 };
            // SAFETY: both descriptors are open, and the event outlives the call.
            let added = unsafe {
                libc::epoll_ctl(
                    epoll,
                    libc::EPOLL_CTL_ADD,
                    viewer.socket.as_raw_fd(),
                    &raw mut event,
                )
            };
            ensure!(added == 0, "epoll_ctl: {}", std::io::Error::last_os_error());
        }
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; viewers.len()];
        Ok(Self { epoll, events, buffers: vec![[0; DATAGRAM]; BATCH] })
    }

    fn receive(&mut self, viewers: &mut [Viewer]) -> Result<u64> {
        let mut packets = 0;
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
        Ok(packets)
    }

    fn receive_batch(&mut self, viewer: &mut Viewer, packets: &mut u64) -> Result<usize> {
        // SAFETY: all-zero is a valid value of both C structures.
        let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        for ((buffer, vector), header) in
            self.buffers.iter_mut().zip(&mut vectors).zip(&mut headers)
        {
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
            viewer.open(&mut buffer[..header.msg_len as usize])?;
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
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
