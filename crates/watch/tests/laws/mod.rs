//! What must hold of the parsers of logs for any bytes.

#![allow(dead_code, reason = "a fuzz target checks one law")]

use throng_watch::logs::{Lines, access};

/// A line is read or refused; what is read is plausible, and takes no more memory than the line
/// allows.
pub(crate) fn access_log(bytes: &[u8]) {
    let mut lines = Lines::default();
    let check = |line: &[u8]| {
        let Some(read) = access::parse(line) else { return };
        assert!(read.status <= 999);
        assert!(!read.path.contains('?'), "{:?}", read.path);
        // A byte that is no UTF-8 is replaced by three.
        assert!(read.path.len() + read.method.len() <= 3 * line.len());
        assert!(read.user_agent.is_none_or(|agent| agent.len() <= 3 * line.len()));
        assert!(read.at_unix_s.is_none_or(|at| (6e8..4e10).contains(&at)), "{:?}", read.at_unix_s);
        assert!(read.duration_ms.is_none_or(|ms| ms >= 0.0));
    };
    lines.push(bytes, |line| check(line.bytes));
    lines.finish(|line| check(line.bytes));
}
