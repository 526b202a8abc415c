//! Canaries: real browsers among the crowd. They start before the crowd joins, so that the
//! measurement does not contain their start, and end with the run.

mod browser_run;
mod candidates;
mod host_cpu;
mod loopback;
mod page;
mod page_config;
mod proxy;
mod stats;

use std::path::PathBuf;
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use throng_media::quality::WallClock;
use throng_observation::canary::BrowserId;
use throng_observation::run::Row;
use throng_observation::units::count;
use throng_scenario::Plan;

use crate::console::{CliError, say};
use crate::permission::Permission;
use browser_run::{BrowserRun, RunStart};
use loopback::LoopbackServer;
use proxy::{Refusals, Rules};

/// How long all browsers together may take to load their page; one that takes longer joins late or
/// not at all.
const START_TIMEOUT: Duration = Duration::from_secs(45);

/// The program of the plan's canaries; `None` where it has none, an error where it is missing.
pub(crate) fn program(plan: &Plan) -> Result<Option<PathBuf>, CliError> {
    let Some(canary) = &plan.canary else { return Ok(None) };
    let (program, problem) = match &canary.browser {
        Some(named) => (
            Some(PathBuf::from(named)).filter(|path| path.is_file()),
            format!("[canary] browser = \"{named}\": there is no such program"),
        ),
        None => (
            throng_browser::find(&std::env::var_os("PATH").unwrap_or_default()),
            format!(
                "[canary] needs a browser, and none of {} is in PATH",
                throng_browser::NAMES.join(", ")
            ),
        ),
    };
    program.map(Some).ok_or_else(|| {
        CliError::usage(format!(
            "{problem}; install one (Debian, Ubuntu: `apt-get install chromium`), name yours with \
             browser = \"/path\", or remove [canary]"
        ))
    })
}

/// The browsers of a run.
pub(crate) struct Canaries {
    browsers: Vec<(SyncSender<RunStart>, JoinHandle<Option<String>>)>,
    refusals: Refusals,
    // The page and the proxy, which end after the browsers that use them.
    _servers: Vec<LoopbackServer>,
}

/// How many refusals are printed; all of them are events of the run.
const REFUSALS_PRINTED_MAX: usize = 5;

impl Canaries {
    /// Starts the plan's browsers, if it has any, and waits until they have loaded their page. One
    /// that fails to is reported with the run.
    pub(crate) fn start(
        plan: &Plan,
        program: Option<PathBuf>,
        permission: &Permission,
    ) -> Result<Self, CliError> {
        let mut canaries =
            Self { browsers: Vec::new(), refusals: Refusals::default(), _servers: Vec::new() };
        let (Some(canary), Some(program), Some(server)) =
            (&plan.canary, program, permission.server())
        else {
            return Ok(canaries);
        };
        let browsers = count(canary.browsers.into(), "browsers");
        say(&format!("starting {browsers} ({})", program.display()));
        let failed = |error: std::io::Error| CliError::usage(format!("[canary]: {error}"));
        let (may_reach, refusals) = (permission.browser_check(), canaries.refusals.clone());
        let page = page::serve(may_reach.clone(), refusals.clone()).map_err(failed)?;
        let (host, _) = plan.target.host_and_port();
        let rules = Rules { page: page.address, host, server: server.ip(), may_reach };
        let proxy = proxy::open(rules, refusals.clone()).map_err(failed)?;
        let unix_ns =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let clock =
            WallClock { at: Instant::now(), unix_ns: u64::try_from(unix_ns).unwrap_or(u64::MAX) };
        let (ready, up) = mpsc::sync_channel(usize::from(canary.browsers));
        for number in 0..canary.browsers {
            let browser = BrowserId(number);
            let browser_run = BrowserRun {
                browser,
                program: program.clone(),
                flags: page_config::browser_flags(plan, proxy.address),
                refusals: refusals.clone(),
                page: format!("http://{}/", page.address),
                config: page_config::page_config(plan, browser, clock)?,
                joins_at: canary.joins_at(number),
                leaves_at: plan.duration,
            };
            let (begin, start) = mpsc::sync_channel(1);
            let ready = ready.clone();
            let thread = std::thread::Builder::new().name(browser.name());
            let thread = thread.spawn(move || browser_run.run(&ready, &start)).map_err(failed)?;
            canaries.browsers.push((begin, thread));
        }
        drop(ready);
        let until = Instant::now() + START_TIMEOUT;
        let is_ready =
            |_: &u16| up.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok();
        (0..canary.browsers).take_while(is_ready).for_each(drop);
        canaries._servers = vec![page, proxy];
        Ok(canaries)
    }

    /// Starts the run at `zero`, the intended time of the first join; rows go to `rows`.
    pub(crate) fn begin(&self, zero: Instant, rows: &SyncSender<Row>) {
        for (begin, _) in &self.browsers {
            // A thread that has ended reports why.
            let _ = begin.try_send(RunStart { zero, rows: rows.clone() });
        }
    }

    /// Lets the browsers leave, ends them, and prints their failures.
    pub(crate) fn stop(self) {
        let (begins, threads): (Vec<_>, Vec<_>) = self.browsers.into_iter().unzip();
        // All browsers get the signal to leave at once.
        drop(begins);
        for thread in threads {
            match thread.join() {
                Ok(Some(failure)) => say(&format!("warning: {failure}")),
                Ok(None) => {}
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let refused = self.refusals.all();
        for what in refused.iter().take(REFUSALS_PRINTED_MAX) {
            say(&format!("warning: a browser was refused {what}"));
        }
        if let Some(more @ 1..) = refused.len().checked_sub(REFUSALS_PRINTED_MAX) {
            say(&format!("warning: and {more} more (events `canary_refused`)"));
        }
    }
}
