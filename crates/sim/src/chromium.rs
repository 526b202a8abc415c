//! A headless Chromium that loads a page and evaluates script in it (Chrome DevTools Protocol over its WebSocket): the
//! second opinion on what a viewer should see.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::client;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use crate::namespace::Namespace;
use crate::stand::{Guarded, StandError};

/// How long the browser may take to start, to load a page, and to settle a promise.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running browser with one page; it ends when dropped.
#[derive(Debug)]
pub struct Chromium {
    socket: WebSocket<TcpStream>,
    asked: u64,
    _process: Guarded,
    _profile: TempDir,
}

impl Chromium {
    /// Starts it inside `namespace`, with a fresh profile, nothing that reaches out by itself, and WebRTC on loopback
    /// and local addresses allowed.
    ///
    /// # Errors
    /// When Chromium is not installed or does not come up.
    pub fn start(namespace: &Namespace) -> Result<Self, StandError> {
        let profile = tempfile::tempdir()?;
        let mut command = namespace.command("chromium");
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-default-apps", "--disable-domain-reliability", "--no-pings"]);
        command.args(["--use-fake-device-for-media-stream=fps=30", "--use-fake-ui-for-media-stream"]);
        command.args(["--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection"]);
        command.arg("--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // Port 0: the browser writes the port that it got into its profile.
        command.args(["--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Guarded::start(&mut command)?;
        let port = debugging_port(&profile)?;
        let socket = namespace.enter(|| attach(port))??;
        Ok(Self { socket, asked: 0, _process: process, _profile: profile })
    }

    /// Loads `url` and waits until the document is complete.
    ///
    /// # Errors
    /// When it cannot be loaded within 20 s.
    pub fn load(&mut self, url: &str) -> Result<(), StandError> {
        let loaded = self.ask("Page.navigate", &json!({ "url": url }))?;
        if let Some(error) = loaded.get("errorText").and_then(Value::as_str) {
            return Err(StandError::Said(format!("{url}: {error}")));
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.evaluate("document.readyState")? == "complete" {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(StandError::NotReady { what: url.into(), within_ms: PATIENCE.as_millis() })
    }

    /// The JSON value of `expression`; a promise is awaited (so `pc.getStats()` needs its entries made an array).
    ///
    /// # Errors
    /// When it throws, or does not settle within 20 s.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, StandError> {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.ask("Runtime.evaluate", &ask)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            return Err(StandError::Said(format!("{expression}: {thrown}")));
        }
        Ok(answer["result"]["value"].take())
    }

    /// A picture of the page, PNG as base64.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn screenshot_base64(&mut self) -> Result<String, StandError> {
        let answer = self.ask("Page.captureScreenshot", &json!({ "format": "png" }))?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    /// Sends a DevTools command and waits for its result.
    ///
    /// # Errors
    /// When the browser refuses or does not answer within 20 s.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, StandError> {
        let said = |error: &dyn std::fmt::Display| StandError::Said(format!("Chromium, {method}: {error}"));
        self.asked += 1;
        let command = json!({ "id": self.asked, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string())).map_err(|error| said(&error))?;
        loop {
            let message = self.socket.read().map_err(|error| said(&error))?;
            let mut answer: Value = serde_json::from_slice(&message.into_data()).unwrap_or_default();
            // Events have no id.
            if answer.get("id").and_then(Value::as_u64) == Some(self.asked) {
                return match answer.get("error") {
                    Some(error) => Err(said(error)),
                    None => Ok(answer["result"].take()),
                };
            }
        }
    }
}

fn debugging_port(profile: &TempDir) -> Result<u16, StandError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let written = std::fs::read_to_string(profile.path().join("DevToolsActivePort")).unwrap_or_default();
        if let Some(port) = written.lines().next().and_then(|line| line.parse().ok()) {
            return Ok(port);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(StandError::NotReady { what: "Chromium".into(), within_ms: PATIENCE.as_millis() })
}

/// Connects to the browser's first page.
fn attach(port: u16) -> Result<WebSocket<TcpStream>, StandError> {
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let until = Instant::now() + PATIENCE;
    let page = loop {
        let pages: Value = serde_json::from_str(&get(to, "/json/list")?).unwrap_or_default();
        let page = pages.as_array().into_iter().flatten().find(|page| page["type"] == "page");
        match page.and_then(|page| page["webSocketDebuggerUrl"].as_str()) {
            Some(url) => break url.to_owned(),
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            None => return Err(StandError::Said(format!("Chromium has no page: {pages}"))),
        }
    };
    let stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let connected = client(page, stream);
    connected.map(|(socket, _)| socket).map_err(|error| StandError::Said(format!("Chromium: {error}")))
}

/// The body of an HTTP/1.0 response.
fn get(from: SocketAddr, path: &str) -> Result<String, StandError> {
    let mut stream = TcpStream::connect(from)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {from}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&response).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, length)| length.trim().parse::<usize>().ok());
            if length.is_none_or(|length| body.len() >= length) {
                return Ok(body.to_owned());
            }
        }
        match stream.read(&mut chunk)? {
            0 => return Err(StandError::Said(format!("{path}: cut off"))),
            n => response.extend_from_slice(chunk.get(..n).unwrap_or(&chunk)),
        }
    }
}
