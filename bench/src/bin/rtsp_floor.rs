//! The floor of RTSP: sets viewers up and reads what the server sends, and nothing else, until it
//! is ended: `epoll_wait` each tick, then `recvmmsg` on each socket (UDP) or `read` on each
//! connection (interleaved). No RTCP, no keepalive, no parsing, no meters.
//!
//! ```text
//! rtsp_floor rtsp://127.0.0.1:8554/live -n 100 --transport udp
//! ```

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

const DATAGRAM: usize = 2048;
const BATCH: usize = 32;

#[derive(Parser)]
struct Arguments {
    url: String,
    /// Viewers
    #[arg(short, default_value_t = 100)]
    n: usize,
    #[arg(long, value_parser = ["udp", "tcp"])]
    transport: String,
    #[arg(long, default_value_t = 5)]
    tick_ms: u64,
    /// Between two viewers
    #[arg(long, default_value_t = 50)]
    every_ms: u64,
}

/// The sockets of a viewer; they stay open.
struct Viewer {
    connection: TcpStream,
    media: Vec<UdpSocket>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let epoll = epoll()?;
    let mut viewers = Vec::new();
    let mut buffers = Buffers::new();
    for _ in 0..arguments.n {
        let viewer = set_up(&arguments.url, arguments.transport == "udp")?;
        watch(epoll, viewer.connection.as_raw_fd(), false)?;
        viewer.media.iter().try_for_each(|socket| watch(epoll, socket.as_raw_fd(), true))?;
        viewers.push(viewer);
        for _ in 0..arguments.every_ms.div_ceil(arguments.tick_ms) {
            tick(epoll, &arguments, &mut buffers);
        }
    }
    loop {
        tick(epoll, &arguments, &mut buffers);
    }
}

struct Buffers {
    events: Vec<libc::epoll_event>,
    datagrams: Vec<[u8; DATAGRAM]>,
    bytes: Vec<u8>,
}

impl Buffers {
    fn new() -> Self {
        Self {
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 1024],
            datagrams: vec![[0; DATAGRAM]; BATCH],
            bytes: vec![0; 65_536],
        }
    }
}

/// Asks for one viewer's tracks, and plays.
fn set_up(url: &str, is_udp: bool) -> Result<Viewer> {
    let authority = url
        .strip_prefix("rtsp://")
        .and_then(|rest| rest.split('/').next())
        .context("no RTSP URL")?;
    let mut connection = TcpStream::connect(authority)?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let description = ask(&mut connection, &format!("DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\n\r\n"))?;
    let controls: Vec<&str> =
        description.lines().filter_map(|line| line.strip_prefix("a=control:stream=")).collect();
    let (mut session, mut media) = (String::new(), Vec::new());
    for (at, control) in controls.iter().enumerate() {
        let transport = if is_udp {
            let pair = pair()?;
            let port = pair[0].local_addr()?.port();
            media.extend(pair);
            format!("RTP/AVP;unicast;client_port={port}-{}", port + 1)
        } else {
            format!("RTP/AVP/TCP;unicast;interleaved={}-{}", 2 * at, 2 * at + 1)
        };
        let request = format!(
            "SETUP {url}/stream={control} RTSP/1.0\r\nCSeq: {}\r\n{session}Transport: \
             {transport}\r\n\r\n",
            at + 2
        );
        let answer = ask(&mut connection, &request)?;
        let id =
            answer.lines().find_map(|line| line.strip_prefix("Session: ")).context("no session")?;
        session = format!("Session: {}\r\n", id.split(';').next().unwrap_or_default());
    }
    // The answer is read with the media that follows it.
    connection.write_all(format!("PLAY {url} RTSP/1.0\r\nCSeq: 99\r\n{session}\r\n").as_bytes())?;
    connection.set_nonblocking(true)?;
    media.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
    Ok(Viewer { connection, media })
}

fn ask(connection: &mut TcpStream, request: &str) -> Result<String> {
    connection.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = connection.read(&mut buffer)?;
        ensure!(read > 0, "the server has closed the connection");
        answer.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if !head.starts_with("RTSP/1.0 200") {
            bail!("{head}");
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Ok(text.into_owned());
        }
    }
}

/// Sockets with neighbouring ports.
fn pair() -> Result<[UdpSocket; 2]> {
    for _ in 0..1_000 {
        let rtp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = rtp.local_addr()?.port();
        if port % 2 == 0
            && let Ok(rtcp) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port + 1))
        {
            return Ok([rtp, rtcp]);
        }
    }
    bail!("no neighbouring ports are free")
}

fn epoll() -> Result<RawFd> {
    // SAFETY: no pointers are passed.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    ensure!(epoll >= 0, "epoll_create1: {}", std::io::Error::last_os_error());
    Ok(epoll)
}

/// The kind of a socket is the highest bit of its event.
const IS_DATAGRAM: u64 = 1 << 63;

fn watch(epoll: RawFd, socket: RawFd, is_datagram: bool) -> Result<()> {
    let kind = if is_datagram { IS_DATAGRAM } else { 0 };
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: socket as u64 | kind };
    // SAFETY: both descriptors are open, and the event outlives the call.
    let added = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) };
    ensure!(added == 0, "epoll_ctl: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Sleeps for a tick, and reads what has come.
fn tick(epoll: RawFd, arguments: &Arguments, buffers: &mut Buffers) {
    std::thread::sleep(Duration::from_millis(arguments.tick_ms));
    let Buffers { events, datagrams, bytes } = buffers;
    // SAFETY: `events` has the given length.
    let ready = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, 0) };
    for event in events.iter().take(usize::try_from(ready).unwrap_or(0)) {
        let socket = (event.u64 & !IS_DATAGRAM) as RawFd;
        if event.u64 & IS_DATAGRAM == 0 {
            // SAFETY: the buffer has the given length.
            while unsafe { libc::read(socket, bytes.as_mut_ptr().cast(), bytes.len()) }
                == bytes.len() as isize
            {}
        } else {
            while receive(socket, datagrams) == BATCH {}
        }
    }
}

fn receive(socket: RawFd, datagrams: &mut [[u8; DATAGRAM]]) -> usize {
    // SAFETY: all-zero is a valid value of both C structures.
    let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    for ((buffer, vector), header) in datagrams.iter_mut().zip(&mut vectors).zip(&mut headers) {
        *vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: DATAGRAM };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: every header points to a vector and a buffer that outlive the call.
    let count = unsafe {
        libc::recvmmsg(
            socket,
            headers.as_mut_ptr(),
            BATCH as u32,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    usize::try_from(count).unwrap_or(0)
}
