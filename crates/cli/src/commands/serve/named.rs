//! How the runs of a folder are named in URLs, and found by what a request names: in the list, and
//! never along a path.

use std::os::unix::ffi::OsStrExt as _;

use throng_observation::percent::{decoded, encoded};
use url::form_urlencoded;

use crate::commands::runs::Entry;

/// A run, and its name as a part of a URL.
pub(super) struct Named {
    pub(super) address: String,
    pub(super) entry: Entry,
}

impl Named {
    pub(super) fn of(entry: Entry) -> Self {
        let address = encoded(entry.path.file_name().unwrap_or_default().as_bytes());
        Self { address, entry }
    }

    fn is_called(&self, name: &str) -> bool {
        self.entry.path.file_name().is_some_and(|own| own == name)
    }
}

/// The run that a part of a path names.
pub(super) fn in_path<'a>(runs: &'a [Named], part: &str) -> Option<&'a Named> {
    by_address(runs, part).or_else(|| by_name(runs, &decoded(part)))
}

/// The runs that the form of the list has chosen (`runs=a&runs=b`, or `runs=a,b`), as they are in
/// the list; an error names what is not there.
pub(super) fn in_query<'a>(runs: &'a [Named], query: &str) -> Result<Vec<&'a Named>, String> {
    let values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == "runs");
    let mut chosen: Vec<usize> = Vec::new();
    for name in
        values.flat_map(|(_, names)| names.split(',').map(str::to_owned).collect::<Vec<_>>())
    {
        let found = by_address(runs, &name).or_else(|| by_name(runs, &name));
        let place = found.and_then(|found| runs.iter().position(|run| std::ptr::eq(run, found)));
        chosen.push(place.ok_or_else(|| format!("no run is called {name}"))?);
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen.into_iter().filter_map(|place| runs.get(place)).collect())
}

fn by_address<'a>(runs: &'a [Named], address: &str) -> Option<&'a Named> {
    runs.iter().find(|run| run.address == address)
}

fn by_name<'a>(runs: &'a [Named], name: &str) -> Option<&'a Named> {
    runs.iter().find(|run| run.is_called(name))
}
