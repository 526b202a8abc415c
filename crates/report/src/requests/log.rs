//! The requests of an access log that may be those of the run, counted by URI and status.

use std::collections::{BTreeMap, HashMap};

use super::accounts::Accounts;
use super::kept_paths::KeptPaths;

/// Most distinct URIs that are counted each: a log may hold those of anyone.
const URIS_MAX: usize = 200_000;

/// A request as its server has logged it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogLine<'a> {
    /// Method; empty if the log has none.
    pub method: &'a str,
    /// Path without the query.
    pub path: &'a str,
    /// Status.
    pub status: u16,
    /// Bytes, as the log counts them.
    pub bytes: u64,
    /// The kind of its URI.
    pub kind: &'a str,
    /// When it was logged, seconds since 1970, if the log has it.
    pub at_unix_s: Option<f64>,
    /// `User-Agent`, if the log has it.
    pub user_agent: Option<&'a str>,
}

/// Which requests of a log may be those of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSelection {
    /// From this second since 1970 on, …
    pub from_unix_s: f64,
    /// … up to and with this one.
    pub to_unix_s: f64,
    /// Only paths that begin with this.
    pub prefix: String,
    /// Only user agents that begin with this, where the log has them.
    pub user_agent: String,
    /// The paths of the run, without their secrets.
    pub(super) paths: KeptPaths,
}

/// Requests of one method and path, by status.
pub(super) type OfUri = BTreeMap<u16, u64>;

/// The requests of a log.
#[derive(Clone, Debug)]
pub struct LogRequests {
    pub(super) selection: LogSelection,
    /// By method and path: of the wanted user agent, and without one.
    named: HashMap<(String, String), OfUri>,
    unnamed: HashMap<(String, String), OfUri>,
    pub(super) lines: u64,
    pub(super) unread: u64,
    /// Without a time.
    pub(super) untimed: u64,
    pub(super) at_other_times: u64,
    pub(super) elsewhere: u64,
    pub(super) of_other_agents: u64,
    /// Of URIs beyond the limit.
    pub(super) not_listed: u64,
    has_agents: bool,
    pub(super) accounts: Accounts,
    /// The first and the last moment of any line.
    pub(super) span: Option<(f64, f64)>,
}

impl LogRequests {
    /// None yet.
    #[must_use]
    pub fn new(selection: LogSelection) -> Self {
        Self {
            selection,
            named: HashMap::new(),
            unnamed: HashMap::new(),
            lines: 0,
            unread: 0,
            untimed: 0,
            at_other_times: 0,
            elsewhere: 0,
            of_other_agents: 0,
            not_listed: 0,
            has_agents: false,
            accounts: Accounts::default(),
            span: None,
        }
    }

    /// Counts a line; `None` is one that cannot be read.
    pub fn add(&mut self, line: Option<LogLine<'_>>) {
        self.lines += 1;
        let Some(line) = line else {
            self.unread += 1;
            return;
        };
        self.has_agents |= line.user_agent.is_some();
        let LogSelection { from_unix_s, to_unix_s, prefix, user_agent, paths } = &self.selection;
        match line.at_unix_s {
            Some(at) => {
                let (first, last) = self.span.unwrap_or((at, at));
                self.span = Some((first.min(at), last.max(at)));
                // A log with whole seconds has the beginning of the second.
                if !(from_unix_s.floor()..=*to_unix_s).contains(&at) {
                    self.at_other_times += 1;
                    return;
                }
            }
            None => self.untimed += 1,
        }
        let path = paths.of(line.path);
        if !path.starts_with(prefix.as_str()) {
            self.elsewhere += 1;
            return;
        }
        self.accounts.add(&line);
        if line.user_agent.is_some_and(|agent| !agent.starts_with(user_agent.as_str())) {
            self.of_other_agents += 1;
            return;
        }
        let counts = if line.user_agent.is_some() { &mut self.named } else { &mut self.unnamed };
        let uri = (line.method.to_owned(), path.into_owned());
        if counts.len() >= URIS_MAX && !counts.contains_key(&uri) {
            self.not_listed += 1;
            return;
        }
        *counts.entry(uri).or_default().entry(line.status).or_default() += 1;
    }

    /// Whether the log has user agents. throng sends one with each request, so that lines without
    /// one are then not its.
    pub(super) fn has_agents(&self) -> bool {
        self.has_agents
    }

    /// What counts as the run's.
    pub(super) fn of_run(&self) -> &HashMap<(String, String), OfUri> {
        if self.has_agents { &self.named } else { &self.unnamed }
    }

    /// Requests in the run's time without a user agent, though the log has user agents.
    pub(super) fn without_agent(&self) -> u64 {
        let sum = |counts: &HashMap<_, OfUri>| counts.values().flat_map(BTreeMap::values).sum();
        if self.has_agents { sum(&self.unnamed) } else { 0 }
    }
}
