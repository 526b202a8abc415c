//! The pages of several folders at one server, by their addresses: of a folder of runs, and of the
//! runs of a matrix below its own.

use std::collections::BTreeMap;

use throng_report::html::live::{Served, ServedBy};

use super::live_page::{LivePage, Now, new_nonce};
use super::source::Source;
use crate::console::CliError;
use crate::http_server::Reply;

/// From so many pages on, those are forgotten at which nobody looks. As each is kept until its cost
/// is made up for, they are few more: the one thread makes no more in that time.
const PAGES_MAX: usize = 16;
/// The name by which reports lead to the page of a run.
const REPORT: &str = "report.html";

/// The pages, each made while somebody looks at it.
pub(crate) struct Pages {
    pages: BTreeMap<String, (Source, LivePage)>,
    nonce: String,
    by: ServedBy,
}

impl Pages {
    /// None yet, of what serves them.
    pub(crate) fn new(by: ServedBy) -> Result<Self, CliError> {
        Ok(Self { pages: BTreeMap::new(), nonce: new_nonce()?, by })
    }

    /// What is asked below the address of a folder: its page, what changes of it (`events`), and of
    /// a matrix the same of its runs. `None` if there is no such thing.
    pub(crate) fn answer(&mut self, address: &str, source: Source, path: &str) -> Option<Reply> {
        let (address, source, what) = match source.run_at(path) {
            Some((run, source, what)) => (format!("{address}/{run}"), source, what),
            None => (address.to_owned(), source, path),
        };
        let act = match what {
            "" | REPORT => LivePage::page,
            "events" => LivePage::events,
            _ => return None,
        };
        if self.pages.len() >= PAGES_MAX {
            self.pages.retain(|_, (_, page)| !page.is_idle());
        }
        // A name may have become that of another kind of run.
        if self.pages.get(&address).is_none_or(|(before, _)| *before != source) {
            self.pages.insert(address.clone(), (source, LivePage::default()));
        }
        let (source, page) = self.pages.get_mut(&address)?;
        let served = served(&self.nonce, self.by);
        Some(act(page, &Now { source: Some(source), served, is_readable: true }))
    }

    /// Sends what has changed to those who look.
    pub(crate) fn each_second(&mut self) {
        let served = served(&self.nonce, self.by);
        for (source, page) in self.pages.values_mut() {
            page.each_second(&Now { source: Some(source), served, is_readable: true });
        }
    }

    /// Sends the last to those who look; how many were dropped because they were slow.
    pub(crate) fn end(&mut self) -> u32 {
        let served = served(&self.nonce, self.by);
        // The runs of a command end with it, and their pages have that; other folders go on, and
        // nobody who ends the server waits for their pages.
        let is_readable = self.by == ServedBy::Cell;
        let end = |(source, page): &mut (Source, LivePage)| {
            page.end(&Now { source: Some(source), served, is_readable })
        };
        self.pages.values_mut().map(end).sum()
    }
}

/// How each page is served.
fn served(nonce: &str, by: ServedBy) -> Served<'_> {
    Served { nonce, strip: "", by }
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::run::{Ending, RunInfo};
    use throng_store::RunFolder;

    use super::*;

    #[test]
    fn the_page_of_a_name_is_of_what_has_it_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let mut pages = Pages::new(ServedBy::Serve).unwrap();
        assert!(pages.answer("run", Source::Run(path.clone()), "").is_some());
        assert!(matches!(pages.pages["run"].0, Source::Run(_)));
        assert!(pages.answer("run", Source::Matrix(path), "events").is_some());
        assert!(matches!(pages.pages["run"].0, Source::Matrix(_)));
    }

    #[test]
    fn the_runs_of_a_matrix_are_below_it_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("cells/01_a=1/2");
        std::fs::create_dir_all(run.parent().unwrap()).unwrap();
        RunFolder::create(&run, &RunInfo::default())
            .unwrap()
            .finish(Ending::Complete, RunTime(5_000_000))
            .unwrap();
        let mut pages = Pages::new(ServedBy::Cell).unwrap();
        let mut asked = |source: &Source, path: &str| {
            pages.answer("m", source.clone(), path).map(|_| pages.pages.len())
        };
        let matrix = Source::Matrix(folder.path().to_owned());
        // Both names are of one page.
        for path in ["cells/01_a=1/2/", "cells/01_a=1/2/report.html", "cells/01_a=1/2/events"] {
            assert_eq!(asked(&matrix, path), Some(1), "{path}");
            assert_eq!(asked(&Source::Run(folder.path().to_owned()), path), None, "{path}");
        }
        for path in ["cells/01_a=1/2", "cells/01_a=1/3/", "cells/01_a=1/2/run.db", "other"] {
            assert_eq!(asked(&matrix, path), None, "{path}");
        }
    }
}
