//! TCP relays whose connections end: all at once, as a network does that goes away for some, or
//! after so many bytes, as a server that dies.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A relay to a server on this host, on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct CutRelay {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl CutRelay {
    /// Starts a relay to `server`; its threads end with the process. Connections that begin with a
    /// request that has `spared` in it are not cut.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(server: SocketAddr, spared: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { continue };
                let kept = Arc::clone(&kept);
                thread::spawn(move || relay(&client, server, spared, &kept));
            }
        });
        Ok(Self { address, open })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections; how many. Others may be made.
    #[must_use]
    pub fn cut(&self) -> usize {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = open.len() / 2;
        open.drain(..).for_each(|stream| {
            let _ = stream.shutdown(Shutdown::Both);
        });
        cut
    }
}

fn relay(
    mut client: &TcpStream,
    server: SocketAddr,
    spared: &str,
    open: &Mutex<Vec<TcpStream>>,
) -> io::Result<()> {
    let mut request = [0; 2048];
    let read = client.read(&mut request)?;
    let request = request.get(..read).unwrap_or_default();
    let mut server = TcpStream::connect(server)?;
    server.write_all(request)?;
    if !String::from_utf8_lossy(request).contains(spared) && read > 0 {
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend([client.try_clone()?, server.try_clone()?]);
    }
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

/// Starts a relay of one connection to `server` on a free port of 127.0.0.1: after so many bytes of
/// the server's it listens no more and ends the connection, as a server that dies. Where the client
/// connects.
///
/// # Errors
/// When there is no port.
pub fn dying_relay(server: SocketAddr, after_bytes: u64) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || -> io::Result<()> {
        let (client, _) = listener.accept()?;
        let server = TcpStream::connect(server)?;
        let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || io::copy(&mut requests, &mut to_server));
        let _ = io::copy(&mut (&server).take(after_bytes), &mut &client);
        // Who tries again at once is refused.
        drop(listener);
        let _ = client.shutdown(Shutdown::Both);
        server.shutdown(Shutdown::Both)
    });
    Ok(address)
}
