//! The requests of a run beside those of an access log, by URI and status.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use throng_observation::masked::masked_request_path;
use throng_observation::run::RunInfo;
use throng_observation::{HttpRequestRow, RequestOutcome};

use super::accounts::LogAccounts;
use super::explain;
use super::kept_paths::KeptPaths;
use super::log::{LogRequests, LogSelection, OfUri};

/// The comparison with a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogComparison {
    /// The answer.
    pub answer: LogAnswer,
    /// The seconds since 1970 that count: those of the run's requests, and one more on each side,
    /// because logs may have whole seconds.
    pub from_unix_s: f64,
    /// The last of them.
    pub to_unix_s: f64,
    /// Requests of the run, those without a response not included.
    pub ours: u64,
    /// Requests of the log.
    pub theirs: u64,
    /// Requests of the run without a response that may have reached the server.
    pub given_up: u64,
    /// Of them, those that the log has with a status.
    pub given_up_in_log: u64,
    /// Responses that players cut off and that the log has with a status for that, such as 499.
    pub cut_off_in_log: u64,
    /// Requests that the run had a response to and the log lacks.
    pub missing: u64,
    /// Requests of the log that the run did not make.
    pub surplus: u64,
    /// Lines of the log, and of them those that are not compared.
    pub lines: u64,
    /// In none of the formats.
    pub lines_unread: u64,
    /// At other times.
    pub lines_at_other_times: u64,
    /// Of other paths than those of the prefix.
    pub lines_elsewhere: u64,
    /// Of other user agents.
    pub lines_of_others: u64,
    /// What a difference may come from, as far as the data says so, and what the comparison cannot
    /// tell.
    pub remarks: Vec<String>,
    /// What the log has in this time by kind of URI, of all user agents.
    pub accounts: LogAccounts,
    /// All URIs and statuses of either side, those that differ first.
    pub uris: Vec<ComparedUri>,
}

/// Whether run and log agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogAnswer {
    /// For each URI and status.
    Equal,
    /// But for requests that players gave up or cut off, whose status the server decides without
    /// them.
    EqualButForCutOff,
    /// Not.
    Differs,
    /// One side has no request.
    NothingToCompare,
}

/// One URI and status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedUri {
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Status, or why there was no response.
    pub status: String,
    /// Requests of the run.
    pub ours: u64,
    /// Requests of the log; `null` for those without a response.
    pub theirs: Option<u64>,
    /// Of the run's, those that the player cut off.
    pub cut_off: u64,
}

impl ComparedUri {
    /// Requests of the log less those of the run; 0 where the log cannot have a status.
    #[must_use]
    pub fn difference(&self) -> i64 {
        self.theirs.map_or(0, |theirs| theirs as i64 - self.ours as i64)
    }
}

/// The run's requests of a URI by outcome: how many, and how many of them were cut off.
type Ours = BTreeMap<RequestOutcome, (u64, u64)>;

/// What does not fit at one URI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Misfit {
    given_up: u64,
    given_up_in_log: u64,
    cut_off_in_log: u64,
    missing: u64,
    surplus: u64,
}

/// Statuses with which servers log a request whose client has gone: nginx 499; 0 where no status
/// was sent.
const CLIENT_GONE: [u16; 3] = [0, 408, 499];

impl LogSelection {
    /// Which lines may be those of the run's requests; `None` without any. `host` selects the
    /// requests of one host.
    #[must_use]
    pub fn of_run(
        info: &RunInfo,
        rows: &[HttpRequestRow],
        host: Option<&str>,
        prefix: &str,
        user_agent: &str,
    ) -> Option<Self> {
        let of_host = || rows.iter().filter(|row| host.is_none_or(|host| row.key.host == host));
        let unix_s = |us: i64| info.started_at_unix_us.saturating_add(us) as f64 / 1e6;
        let from = of_host().map(|row| row.first_at.0).min()?;
        let to = of_host().map(|row| row.last_at.0).max()?;
        let (prefix, user_agent) =
            (masked_request_path(prefix).into_owned(), user_agent.to_owned());
        Some(Self {
            from_unix_s: unix_s(from) - 1.0,
            to_unix_s: unix_s(to) + 1.0,
            prefix,
            user_agent,
            paths: KeptPaths::new(of_host().map(|row| row.key.path.as_str())),
        })
    }
}

impl LogComparison {
    /// Lays the requests of a run, or of one host of it, beside those of a log.
    #[must_use]
    pub fn of(rows: &[HttpRequestRow], host: Option<&str>, log: &LogRequests) -> Self {
        let selected = rows.iter().filter(|row| host.is_none_or(|host| row.key.host == host));
        let selected: Vec<_> =
            selected.map(|row| (masked_request_path(&row.key.path), row)).collect();
        let mut ours: BTreeMap<(&str, &str), Ours> = BTreeMap::new();
        for (path, row) in
            selected.iter().filter(|(path, _)| path.starts_with(&log.selection.prefix))
        {
            let of_uri = ours.entry((&row.key.method, &**path)).or_default();
            let (requests, cut_off) = of_uri.entry(row.key.outcome).or_default();
            *requests += row.counters.requests;
            *cut_off += row.counters.cut_off;
        }
        let theirs: BTreeMap<(&str, &str), &OfUri> = log
            .of_run()
            .iter()
            .map(|((method, path), of_uri)| ((&**method, &**path), of_uri))
            .collect();
        let (mut all, mut sum) = (Vec::new(), Misfit::default());
        let (none_ours, none_theirs) = (Ours::new(), OfUri::new());
        let keys: BTreeSet<(&str, &str)> = ours.keys().chain(theirs.keys()).copied().collect();
        for key in keys {
            let (ours, theirs) = (ours.get(&key).unwrap_or(&none_ours), theirs.get(&key).copied());
            let theirs = theirs.unwrap_or(&none_theirs);
            sum.add(Misfit::of(ours, theirs));
            all.extend(compared(key, ours, theirs));
        }
        all.sort_by_key(|uri| {
            let difference = uri.difference().unsigned_abs();
            (std::cmp::Reverse(difference), std::cmp::Reverse(uri.ours), uri.path.clone())
        });
        let selection = &log.selection;
        let answered = all.iter().filter(|uri| uri.theirs.is_some()).map(|uri| uri.ours).sum();
        let mut beside = Self {
            answer: LogAnswer::Equal,
            from_unix_s: selection.from_unix_s,
            to_unix_s: selection.to_unix_s,
            ours: answered,
            theirs: all.iter().filter_map(|uri| uri.theirs).sum(),
            given_up: sum.given_up,
            given_up_in_log: sum.given_up_in_log,
            cut_off_in_log: sum.cut_off_in_log,
            missing: sum.missing,
            surplus: sum.surplus,
            lines: log.lines,
            lines_unread: log.unread,
            lines_at_other_times: log.at_other_times,
            lines_elsewhere: log.elsewhere,
            lines_of_others: log.of_other_agents + log.without_agent(),
            remarks: Vec::new(),
            accounts: log.accounts.finish(),
            uris: all,
        };
        beside.answer = beside.judge();
        beside.remarks = explain::remarks(&beside, log, rows.iter().any(|row| row.key.is_others()));
        beside
    }

    fn judge(&self) -> LogAnswer {
        if self.ours == 0 || self.theirs == 0 {
            LogAnswer::NothingToCompare
        } else if self.missing + self.surplus > 0 {
            LogAnswer::Differs
        } else if self.given_up_in_log + self.cut_off_in_log > 0 {
            LogAnswer::EqualButForCutOff
        } else {
            LogAnswer::Equal
        }
    }
}

impl Misfit {
    fn of(ours: &Ours, theirs: &OfUri) -> Self {
        let of = |outcome| ours.get(&outcome).copied().unwrap_or_default();
        let (mut missing, mut surplus, mut gone, mut cut_off, mut given_up) = (0, 0, 0, 0, 0);
        for (outcome, (requests, cut)) in ours {
            match outcome {
                RequestOutcome::Status(status) => {
                    missing += requests.saturating_sub(theirs.get(status).copied().unwrap_or(0));
                    cut_off += cut;
                }
                RequestOutcome::NoResponse(why) if why.may_have_arrived() => given_up += requests,
                RequestOutcome::NoResponse(_) => {}
            }
        }
        for (status, requests) in theirs {
            let more = requests.saturating_sub(of(RequestOutcome::Status(*status)).0);
            surplus += more;
            gone += if CLIENT_GONE.contains(status) { more } else { 0 };
        }
        let cut_off_in_log = missing.min(gone).min(cut_off);
        (missing, surplus) = (missing - cut_off_in_log, surplus - cut_off_in_log);
        let given_up_in_log = surplus.min(given_up);
        Self {
            given_up,
            given_up_in_log,
            cut_off_in_log,
            missing,
            surplus: surplus - given_up_in_log,
        }
    }

    fn add(&mut self, other: Self) {
        self.given_up += other.given_up;
        self.given_up_in_log += other.given_up_in_log;
        self.cut_off_in_log += other.cut_off_in_log;
        self.missing += other.missing;
        self.surplus += other.surplus;
    }
}

fn compared((method, path): (&str, &str), ours: &Ours, theirs: &OfUri) -> Vec<ComparedUri> {
    let of_log = theirs.keys().map(|status| RequestOutcome::Status(*status));
    let outcomes: BTreeSet<RequestOutcome> = ours.keys().copied().chain(of_log).collect();
    let row = |outcome: RequestOutcome| {
        let (requests, cut_off) = ours.get(&outcome).copied().unwrap_or_default();
        let of_log = match outcome {
            RequestOutcome::Status(status) => Some(theirs.get(&status).copied().unwrap_or(0)),
            RequestOutcome::NoResponse(_) => None,
        };
        let (method, path, status) = (method.to_owned(), path.to_owned(), outcome.key());
        ComparedUri { method, path, status, ours: requests, theirs: of_log, cut_off }
    };
    outcomes.into_iter().map(row).collect()
}
