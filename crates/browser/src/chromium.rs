//! A running browser with one page.

use std::io::pipe;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::BrowserError;
use crate::pipe::{NoMessage, Pipe};
use crate::process::{self, ProcessGroup};

/// Time limit for the start of the browser, for loading a page, and for settling a promise, unless
/// the caller sets another.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// No network access of its own, no prompts, WebRTC on loopback and local addresses.
const FLAGS: [&str; 17] = [
    "--headless=new",
    "--disable-gpu",
    "--no-first-run",
    "--mute-audio",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-breakpad",
    "--no-pings",
    "--use-fake-device-for-media-stream=fps=30",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    // Since Chromium 142 a page's access to a private address prompts the user.
    concat!(
        "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints,\
         LocalNetworkAccessChecks,",
        "LocalNetworkAccessChecksWebSockets,LocalNetworkAccessChecksWebRTC"
    ),
    "--remote-debugging-pipe",
];

/// A running browser with one page; it ends when dropped, and with the thread that started it.
#[derive(Debug)]
pub struct Chromium {
    pipe: Pipe,
    version: String,
    session: Option<String>,
    asked: u64,
    timeout: Duration,
    group: ProcessGroup,
    profile: TempDir,
}

impl Chromium {
    /// Runs `command` (the browser, or a wrapper that executes it) with a fresh profile, and with
    /// `flags` in addition to those that every test page needs.
    ///
    /// # Errors
    /// When it cannot be started or does not come up within 20 s.
    pub fn start(mut command: Command, flags: &[String]) -> Result<Self, BrowserError> {
        let profile = tempfile::Builder::new().prefix("throng-browser-").tempdir()?;
        command
            .args(FLAGS)
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            // What it leaves behind when it is killed goes with the profile.
            .env("TMPDIR", profile.path());
        // SAFETY: geteuid has no preconditions and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            // Chromium refuses to start as root with its sandbox.
            command.arg("--no-sandbox");
        }
        command.arg("about:blank");
        let said = std::fs::File::create(said_file(profile.path()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let (its_commands, commands) = pipe()?;
        let (answers, its_answers) = pipe()?;
        let group = ProcessGroup::start(&mut command, &its_commands, &its_answers)?;
        // Only the browser holds its ends, so that the pipe closes when the browser ends.
        drop((its_commands, its_answers));
        let pipe = Pipe::new(commands, answers);
        let mut browser = Self {
            pipe,
            version: String::new(),
            session: None,
            asked: 0,
            timeout: REPLY_TIMEOUT,
            group,
            profile,
        };
        let version = browser.command("Browser.getVersion", &json!({}))?;
        version["product"].as_str().unwrap_or_default().clone_into(&mut browser.version);
        browser.attach()?;
        Ok(browser)
    }

    /// Its product name and version, e.g. `HeadlessChrome/156.0.8078.79`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Sets the time limit of each later command.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Attaches to the browser's first page.
    fn attach(&mut self) -> Result<(), BrowserError> {
        let until = Instant::now() + self.timeout;
        let page = loop {
            let targets = self.command("Target.getTargets", &json!({}))?;
            let pages = targets["targetInfos"].as_array().into_iter().flatten();
            match pages
                .filter(|target| target["type"] == "page")
                .find_map(|page| page["targetId"].as_str())
            {
                Some(page) => break page.to_owned(),
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                None => return Err(self.silent("its first page")),
            }
        };
        let attached =
            self.command("Target.attachToTarget", &json!({ "targetId": page, "flatten": true }))?;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        Ok(())
    }

    /// Loads `url` and waits until the document is complete.
    ///
    /// # Errors
    /// When it cannot be loaded in time.
    pub fn load(&mut self, url: &str) -> Result<(), BrowserError> {
        let loaded = self.command("Page.navigate", &json!({ "url": url }))?;
        if let Some(error) = loaded.get("errorText").and_then(Value::as_str) {
            return Err(BrowserError::Refused { what: url.to_owned(), said: error.to_owned() });
        }
        let until = Instant::now() + self.timeout;
        while Instant::now() < until {
            if self.evaluate("document.readyState")? == "complete" {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(self.silent(url))
    }

    /// The JSON value of `expression`; a promise is awaited (so the entries of `pc.getStats()` must
    /// be made an array).
    ///
    /// # Errors
    /// When it throws, or does not settle in time.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value, BrowserError> {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.command("Runtime.evaluate", &ask)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            let said = thrown["exception"]["description"].as_str().or(thrown["text"].as_str());
            let said = said.unwrap_or("it threw").lines().next().unwrap_or_default().to_owned();
            return Err(BrowserError::Refused { what: "a script".into(), said });
        }
        Ok(answer["result"]["value"].take())
    }

    /// A picture of the page, PNG as base64.
    ///
    /// # Errors
    /// When the browser does not answer.
    pub fn screenshot_base64(&mut self) -> Result<String, BrowserError> {
        let answer = self.command("Page.captureScreenshot", &json!({ "format": "png" }))?;
        Ok(answer["data"].as_str().unwrap_or_default().to_owned())
    }

    /// Sends a command of the protocol to the page and waits for its result.
    ///
    /// # Errors
    /// When the browser refuses, ended, or does not answer in time.
    pub fn command(&mut self, method: &str, params: &Value) -> Result<Value, BrowserError> {
        self.asked += 1;
        let mut command = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let until = Instant::now() + self.timeout;
        self.pipe.send(&command).map_err(|_| self.ended())?;
        loop {
            let mut answer = match self.pipe.receive(until) {
                Ok(answer) => answer,
                Err(NoMessage::Late) => return Err(self.silent(method)),
                Err(NoMessage::Gone) => return Err(self.ended()),
            };
            // Events have no id; responses to commands that timed out have an earlier one.
            if answer.get("id").and_then(Value::as_u64) != Some(self.asked) {
                if answer["method"] == "Inspector.targetCrashed" {
                    return Err(BrowserError::Ended { said: Some("its page crashed".into()) });
                }
                continue;
            }
            return match answer.get("error") {
                Some(error) => {
                    let said =
                        error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
                    Err(BrowserError::Refused { what: method.to_owned(), said })
                }
                None => Ok(answer["result"].take()),
            };
        }
    }

    /// CPU time that all its living processes have used, microseconds (user + system).
    #[must_use]
    pub fn cpu_us(&self) -> u64 {
        process::cpu_us(self.group.id())
    }

    fn silent(&self, what: &str) -> BrowserError {
        BrowserError::Silent { what: what.to_owned(), within_ms: self.timeout.as_millis() }
    }

    fn ended(&self) -> BrowserError {
        let said = std::fs::read(said_file(self.profile.path())).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        BrowserError::Ended { said: last.map(|line| line.chars().take(300).collect()) }
    }
}

fn said_file(profile: &Path) -> std::path::PathBuf {
    profile.join("stderr")
}
