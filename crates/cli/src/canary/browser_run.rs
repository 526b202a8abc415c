//! One browser of the run, on a thread of its own. It starts before the crowd, joins at its time,
//! is asked for its statistics once a second, and leaves at the end. Its failures are reported and
//! end nothing else.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use serde_json::Value;
use throng_browser::{BrowserError, Chromium};
use throng_observation::canary::{BrowserId, CanaryBrowserRow, CanaryRow};
use throng_observation::masked::masked;
use throng_observation::run::{EventRow, Row};
use throng_observation::{RunTime, Url};
use throng_scenario::{Secret, secrets_of};

use super::host_cpu::HostCpu;
use super::proxy::Refusals;
use super::stats::StatsSnapshot;

/// How long `getStats()` may take on a busy machine.
const STATS_TIMEOUT: Duration = Duration::from_secs(8);
/// How long leaving may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// A browser that is not connected by then has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Without a connection a browser has failed only if the run continued for this long after its
/// join: a busy machine takes seconds to gather candidates.
const CONNECT_AT_LEAST: Duration = Duration::from_secs(10);
/// Without a picture it has failed only if the run continued this long after connecting: key frames
/// may be seconds apart.
const PICTURE_WITHIN: Duration = Duration::from_secs(5);

/// A browser that is to run.
pub(super) struct BrowserRun {
    pub(super) browser: BrowserId,
    pub(super) program: PathBuf,
    pub(super) flags: Vec<String>,
    pub(super) refusals: Refusals,
    pub(super) page: String,
    pub(super) config: Value,
    pub(super) joins_at: Duration,
    pub(super) leaves_at: Duration,
}

/// The start of the run: its time zero, and where rows go.
pub(super) struct RunStart {
    pub(super) zero: Instant,
    pub(super) rows: SyncSender<Row>,
}

impl BrowserRun {
    /// Runs until its time to leave, or until the sender of `start` is gone. Signals `ready` once
    /// its page is loaded or has failed to load. Returns what went wrong.
    pub(super) fn run(self, ready: &SyncSender<()>, start: &Receiver<RunStart>) -> Option<String> {
        let started = self.launch();
        let _ = ready.send(());
        // Without a start there is no run to report to.
        let begin = start.recv().ok()?;
        let mut row = CanaryBrowserRow {
            browser: self.browser,
            intended_at: RunTime::after_start(self.joins_at),
            ..CanaryBrowserRow::default()
        };
        let result = started.and_then(|mut chromium| {
            chromium.version().clone_into(&mut row.version);
            let result = self.stay(&mut chromium, &begin, start, &mut row);
            chromium.set_timeout(LEAVE_TIMEOUT);
            // A browser that does not answer is killed on drop.
            let _ = chromium.evaluate("canary.leave().then(() => true)");
            result
        });
        if let Err(error) = result {
            // It did not start, ended, or did not answer; the server is not the cause.
            fail(&mut row, begin.zero, true, &self.without_secrets(&error.to_string()));
        }
        row.ended_at = Some(now(begin.zero));
        begin.send(CanaryRow::Browser(row.clone()));
        self.report_refusals(&begin);
        let failure = row.failure?;
        let detail = format!("browser {}: {failure}", self.browser.0);
        begin.send_event("canary_failed", detail.clone());
        Some(detail)
    }

    /// Reports refusals that no browser has reported yet.
    fn report_refusals(&self, begin: &RunStart) {
        for what in self.refusals.take() {
            begin.send_event("canary_refused", format!("a browser was refused {what}"));
        }
    }

    fn launch(&self) -> Result<Chromium, BrowserError> {
        let mut chromium = Chromium::start(Command::new(&self.program), &self.flags)?;
        chromium.load(&self.page)?;
        chromium.set_timeout(STATS_TIMEOUT);
        Ok(chromium)
    }

    /// Joins at its time and reads its statistics until it leaves.
    fn stay(
        &self,
        chromium: &mut Chromium,
        begin: &RunStart,
        start: &Receiver<RunStart>,
        row: &mut CanaryBrowserRow,
    ) -> Result<(), BrowserError> {
        begin.send(CanaryRow::Browser(row.clone()));
        if !wait_until(begin.zero + self.joins_at, start) {
            return Ok(());
        }
        chromium.evaluate(&format!("canary.join({}), true", self.config))?;
        let (mut before, mut cpu_us): (Option<StatsSnapshot>, u64) = (None, chromium.cpu_us());
        let mut host = HostCpu::now();
        let mut second = self.joins_at.as_secs() + 1;
        while Duration::from_secs(second) <= self.leaves_at
            && wait_until(begin.zero + Duration::from_secs(second), start)
        {
            let snapshot = self.snapshot(chromium.evaluate("canary.stats()")?);
            let used_us = chromium.cpu_us();
            let last = before.unwrap_or_default();
            let ended = i64::try_from(second).unwrap_or(i64::MAX) - 1;
            let mut seen = snapshot.since(&last, ended, self.browser);
            // The CPU time of ended processes is not in the sum any more.
            seen.cpu_us = used_us.saturating_sub(cpu_us);
            cpu_us = used_us;
            let host_now = HostCpu::now();
            seen.host_cpu_ratio =
                host_now.zip(host).and_then(|(now, before)| now.ratio_since(before));
            host = host_now;
            begin.send(CanaryRow::Second(Box::new(seen)));
            self.report_refusals(begin);
            if self.has_changed(row, &snapshot, begin.zero) {
                begin.send(CanaryRow::Browser(row.clone()));
            }
            if row.connected_at.is_none() && begin.zero.elapsed() > self.joins_at + CONNECT_TIMEOUT
            {
                let within = CONNECT_TIMEOUT.as_secs();
                not_connected(row, begin.zero, &format!("it was not connected within {within} s"));
                return Ok(());
            }
            before = Some(snapshot);
            // After a slow reading the missed seconds are left out.
            second = (begin.zero.elapsed().as_secs() + 1).max(second + 1);
        }
        let there_for = begin.zero.elapsed().saturating_sub(self.joins_at);
        match row.connected_at {
            None if there_for >= CONNECT_AT_LEAST => {
                let after = there_for.as_secs();
                not_connected(
                    row,
                    begin.zero,
                    &format!("it was not connected {after} s after its join"),
                );
            }
            Some(at) if row.first_frame_at.is_none() => {
                let waited_ms = now(begin.zero).millis_since(at);
                if waited_ms >= PICTURE_WITHIN.as_millis() as f64 {
                    let why = before.unwrap_or_default().why_no_picture();
                    fail(row, begin.zero, false, &why);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What the page says of itself, which may repeat its server's words.
    fn snapshot(&self, said: Value) -> StatsSnapshot {
        let mut snapshot: StatsSnapshot = serde_json::from_value(said).unwrap_or_default();
        snapshot.problem = snapshot.problem.map(|problem| self.without_secrets(&problem));
        snapshot
    }

    /// A text without the secrets that the page was told.
    fn without_secrets(&self, said: &str) -> String {
        let text = |key: &str| self.config.get(key).and_then(Value::as_str);
        let url = text("url").and_then(|url| Url::parse(url).ok());
        let told = ["token", "pin"].into_iter().filter_map(text).map(Secret::new);
        let told: Vec<Secret> = told.chain(url.iter().flat_map(secrets_of)).collect();
        throng_protocol::without_secrets(said, told.iter().map(Secret::expose))
    }

    /// Updates `row` from the snapshot; whether that changed it.
    fn has_changed(
        &self,
        row: &mut CanaryBrowserRow,
        snapshot: &StatsSnapshot,
        zero: Instant,
    ) -> bool {
        let before = row.clone();
        let after_join = |ms: Option<f64>| {
            let ms = ms.filter(|ms| ms.is_finite())?;
            Some(RunTime(row.intended_at.0.saturating_add((ms.clamp(0.0, 1e9) * 1e3) as i64)))
        };
        let (connected_at, first_frame_at) =
            (after_join(snapshot.connected_ms), after_join(snapshot.first_frame_ms));
        row.connected_at = row.connected_at.or(connected_at);
        row.first_frame_at = row.first_frame_at.or(first_frame_at);
        row.candidates_refused = snapshot.refused;
        match (&snapshot.problem, row.connected_at) {
            (Some(problem), None) if !snapshot.problem_is_own => not_connected(row, zero, problem),
            (Some(problem), _) => fail(row, zero, snapshot.problem_is_own, problem),
            (None, _) => {}
        }
        *row != before
    }
}

/// Notes that there is no connection. The consent guard is the likely reason where it refused
/// addresses.
fn not_connected(row: &mut CanaryBrowserRow, zero: Instant, why: &str) {
    match row.candidates_refused {
        0 => fail(row, zero, false, why),
        refused => {
            fail(
                row,
                zero,
                true,
                &format!("{why}; {refused} of the server's addresses were refused to it"),
            );
        }
    }
}

/// Notes why it failed. The first reason stays, because it causes the others.
fn fail(row: &mut CanaryBrowserRow, zero: Instant, is_own: bool, why: &str) {
    if row.failure.is_none() {
        // The words of a page may name URLs.
        let why = masked(why).into_owned();
        (row.failure, row.failed_at, row.failure_is_own) = (Some(why), Some(now(zero)), is_own);
    }
}

impl RunStart {
    fn send(&self, row: CanaryRow) {
        // Without a store there is nowhere to send it.
        let _ = self.rows.send(Row::Canary(row));
    }

    fn send_event(&self, kind: &str, detail: String) {
        let at = now(self.zero);
        let detail = detail.into();
        let event = EventRow { at, participant: None, kind: kind.into(), count: 1, detail };
        let _ = self.rows.send(Row::Event(event));
    }
}

/// Waits until `moment`; `false` when the run ends before.
fn wait_until(moment: Instant, start: &Receiver<RunStart>) -> bool {
    let left = moment.saturating_duration_since(Instant::now());
    matches!(start.recv_timeout(left), Err(RecvTimeoutError::Timeout) | Ok(_))
}

fn now(zero: Instant) -> RunTime {
    RunTime::after_start(zero.elapsed())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_repeats_of_the_secrets_of_a_browser_is_not_told() {
        let browser_run = BrowserRun {
            browser: BrowserId(0),
            program: PathBuf::new(),
            flags: Vec::new(),
            refusals: Refusals::default(),
            page: String::new(),
            config: json!({
                "url": "http://h/whep?app=live&sig=a%2Bsignature",
                "token": "hunter2", "pin": "98765", "id": null,
            }),
            joins_at: Duration::ZERO,
            leaves_at: Duration::ZERO,
        };
        let said = json!({ "problem": "no hunter2 with 98765, a+signature", "refused": 3 });
        let snapshot = browser_run.snapshot(said);
        assert_eq!(snapshot.problem.as_deref(), Some("no … with …, …"));
        assert_eq!(snapshot.refused, 3);
    }
}
