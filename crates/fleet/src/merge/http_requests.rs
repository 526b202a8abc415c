//! HTTP requests: each worker's row of a key has its sums since the run began, and replaces its row
//! before. The sum over the last rows of all workers is the row of the run.

use std::collections::HashMap;
use std::sync::Arc;

use throng_observation::run::Row;
use throng_observation::{HttpRequestCounters, HttpRequestKey, HttpRequestRow, RunTime};

/// Most rows that are kept, over all workers and keys.
const ROWS_MAX: usize = 2_000_000;

/// Most bytes of paths and hosts.
const TEXT_BYTES_MAX: usize = 256 << 20;

/// The last rows of all workers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    by_key: HashMap<Arc<HttpRequestKey>, Shares>,
    changed: Vec<Arc<HttpRequestKey>>,
    rows: usize,
    text_bytes: usize,
}

/// The requests of one key.
#[derive(Debug, Default)]
struct Shares {
    /// By worker, ascending.
    of: Vec<(u16, Share)>,
    is_changed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    counters: HttpRequestCounters,
    first_at: RunTime,
    last_at: RunTime,
}

impl Requests {
    /// Takes a worker's row; `false` when there is no room for another one.
    #[must_use]
    pub(super) fn take(&mut self, worker: u16, row: HttpRequestRow) -> bool {
        let HttpRequestRow { key, counters, first_at, last_at } = row;
        let is_known = self.by_key.get(&key).is_some_and(|shares| shares.find(worker).is_ok());
        let text_bytes = key.host.len() + key.path.len() + key.method.len();
        if !is_known && (self.rows >= ROWS_MAX || self.text_bytes + text_bytes > TEXT_BYTES_MAX) {
            return false;
        }
        self.rows += usize::from(!is_known);
        if !self.by_key.contains_key(&key) {
            self.text_bytes += text_bytes;
        }
        let key = Arc::new(key);
        let shares = self.by_key.entry(Arc::clone(&key)).or_default();
        shares.put(worker, Share { counters, first_at, last_at });
        if !std::mem::replace(&mut shares.is_changed, true) {
            self.changed.push(key);
        }
        true
    }

    /// The sums that have changed since the last call, by key.
    pub(super) fn take_changed(&mut self, out: &mut Vec<Row>) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort();
        for key in changed {
            if let Some(shares) = self.by_key.get_mut(&key) {
                shares.is_changed = false;
                out.extend(shares.row(&key).map(|row| Row::HttpRequests(Box::new(row))));
            }
        }
    }
}

impl Shares {
    fn find(&self, worker: u16) -> Result<usize, usize> {
        self.of.binary_search_by_key(&worker, |(worker, _)| *worker)
    }

    fn put(&mut self, worker: u16, share: Share) {
        match self.find(worker) {
            Ok(at) => self.of.get_mut(at).into_iter().for_each(|place| place.1 = share),
            Err(at) => self.of.insert(at, (worker, share)),
        }
    }

    fn row(&self, key: &HttpRequestKey) -> Option<HttpRequestRow> {
        let mut shares = self.of.iter().map(|(_, share)| *share);
        let mut sum = shares.next()?;
        for share in shares {
            sum.counters += share.counters;
            sum.first_at = sum.first_at.min(share.first_at);
            sum.last_at = sum.last_at.max(share.last_at);
        }
        let Share { counters, first_at, last_at } = sum;
        Some(HttpRequestRow { key: key.clone(), counters, first_at, last_at })
    }
}
