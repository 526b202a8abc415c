//! Pages as they are served: the same sections as in files, in parts that a script replaces while
//! somebody looks. They load nothing but what they are sent; the header of the answer says so, and
//! lets only the scripts run that know its nonce.

use throng_observation::run::RunData;

use super::markup::escape;
use super::outline::outlined;
use super::page::framed;
use super::{SCRIPT, flame, matrix, sections, server};
use crate::matrix::MatrixReport;
use crate::summary::Summary;

mod experiment;
mod history;
mod parts;
mod strip;

pub use experiment::{RunInProgress, experiment_strip};
pub use history::{HistoryRow, history};
pub use parts::{Part, Sent, parts, to_json};
pub use strip::strip;

/// What serves a page, which its end is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// A command with a crowd, of its own run.
    Run,
    /// `throng watch`, of what it watches.
    Watch,
    /// `throng matrix` and `throng prove`, of the whole experiment.
    Experiment,
    /// The same, of one of its runs, which another process writes.
    Cell,
    /// `throng serve`, which can be ended by nobody who looks.
    Serve,
}

impl ServedBy {
    /// Whether it keeps marks of a moment.
    #[must_use]
    pub fn keeps_marks(self) -> bool {
        match self {
            Self::Run | Self::Watch => true,
            Self::Experiment | Self::Cell | Self::Serve => false,
        }
    }
}

/// How a page is served.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// What the scripts of the page are let run by.
    pub nonce: &'a str,
    /// The strip at its top, as [`strip()`] or [`experiment_strip`] makes it; empty without one.
    pub strip: &'a str,
    /// What serves it.
    pub by: ServedBy,
}

impl Served<'_> {
    /// The page of a run, finished or in progress.
    #[must_use]
    pub fn run(&self, run: &RunData, summary: &Summary) -> String {
        let parts = sections(run, summary).map(|(id, html)| parts::wrapped(id, &html));
        self.page(&summary.headline, "", &parts.concat())
    }

    /// The page of watched hosts without a crowd.
    #[must_use]
    pub fn watch(&self, title: &str, run: &RunData) -> String {
        let head = format!("<header><h1>{}</h1></header>", escape(title));
        let parts = [("answer", head), ("server", server::render(run))];
        let parts = parts.map(|(id, html)| parts::wrapped(id, &html));
        self.page(title, "", &parts.concat())
    }

    /// The page of a matrix or a proof.
    #[must_use]
    pub fn matrix(&self, report: &MatrixReport) -> String {
        let parts = matrix::sections(report).map(|(id, html)| parts::wrapped(id, &html));
        self.page(&report.headline, matrix::STYLE, &parts.concat())
    }

    /// A page that only says something: that a run is about to begin, what is wrong with it.
    #[must_use]
    pub fn message(&self, title: &str, text: &str) -> String {
        let head = format!(
            "<header><h1>{}</h1></header><p class=\"over\">{}</p>",
            escape(title),
            escape(text)
        );
        self.page(title, "", &parts::wrapped("answer", &head))
    }

    fn page(&self, title: &str, style: &str, parts: &str) -> String {
        let strip = parts::wrapped("strip", self.strip);
        // Over all parts together: what one of them is called depends on the others.
        let (contents, main) = outlined(&format!("{strip}{}{parts}", controls(self.by)));
        let body = format!("{}<main>{main}</main>", parts::wrapped("contents", &contents));
        let script = format!(
            "const arm = (document) => {{\n{SCRIPT}{}\n}};\n{}",
            flame::SCRIPT,
            include_str!("live.js")
        );
        let style = format!("{style}{}{}", flame::STYLE, include_str!("live.css"));
        document(&format!("throng: {title}"), &style, &body, self.nonce, &script)
    }
}

/// What ends the command and marks a moment; shown to who has the token, where that is possible.
/// The script takes what it asks before the end from it, and what it says after the end.
fn controls(by: ServedBy) -> String {
    let (end, ask, over) = match by {
        ServedBy::Run => (
            "End the run",
            "End the run, and report?",
            "The command has ended. The page stays as it is, and is in the run folder.",
        ),
        ServedBy::Watch => (
            "End the watch",
            "End the watch?",
            "The watch has ended. The page stays as it is; its file has what was measured.",
        ),
        ServedBy::Experiment => (
            "End the experiment",
            "End the experiment, and report what is done? It can be continued.",
            "The command has ended. The page stays as it is, and is in the folder.",
        ),
        ServedBy::Cell => {
            ("", "", "The command has ended. The page stays as it is; its run folder has it.")
        }
        ServedBy::Serve => {
            ("", "", "throng serve has ended. The page stays as it is; the run may go on.")
        }
    };
    let mark = if by.keeps_marks() { MARK } else { "" };
    format!(
        "<form class=\"part controls\" id=\"controls\" data-ask=\"{ask}\" data-over=\"{over}\" \
         hidden>{mark}<button type=\"button\" id=\"stop\">{end}</button> <output></output></form>"
    )
}

/// The words of a mark, and what keeps it.
const MARK: &str = "<input name=\"text\" maxlength=\"200\" placeholder=\"what happens now\" \
                    aria-label=\"Mark\"> <button>Mark</button> ";

/// A page whose `body`, its landmarks, is escaped already; its script runs where the header of the
/// answer has the nonce.
fn document(title: &str, style: &str, body: &str, nonce: &str, script: &str) -> String {
    let nonce = escape(nonce);
    let script = format!("<script nonce=\"{nonce}\">\"use strict\";\n{script}</script>");
    framed("", title, style, body, &script)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{example, html, summarise};

    const SERVED: Served<'_> = Served { nonce: "n0nce", strip: "<p>now</p>", by: ServedBy::Run };

    #[test]
    fn a_served_page_has_the_sections_of_the_file_in_parts() {
        let run = example::degraded();
        let summary = summarise(&run, &example::objectives(), Duration::ZERO);
        let page = SERVED.run(&run, &summary);
        let found: Vec<Part<'_>> = parts(&page).collect();
        assert_eq!(found.get(1), Some(&("strip", "<p>now</p>")));
        let file = html::render(&run, &summary);
        // Its contents, headings and links to the glossary, too.
        for (id, section) in found.iter().filter(|(id, _)| *id != "strip") {
            assert!(file.contains(section), "{id}");
        }
        assert!(found.first().is_some_and(|(_, contents)| contents.starts_with("<nav ")));
        assert!(page.contains("<a href=\"#term-") && page.contains("<dt id=\"term-"));
        assert_eq!(found.len(), sections(&run, &summary).len() + 2);
    }

    #[test]
    fn no_script_but_the_page_s_own_may_run_and_nothing_is_loaded() {
        let hostile = "</script></div><!--part--><script>alert(1)</script>";
        let mut run = example::degraded();
        run.info.target = hostile.into();
        let summary = summarise(&run, &example::objectives(), Duration::ZERO);
        for page in [
            SERVED.run(&run, &summary),
            SERVED.message(hostile, hostile),
            SERVED.watch(hostile, &run),
            SERVED.matrix(&MatrixReport { headline: hostile.into(), ..MatrixReport::default() }),
        ] {
            assert_eq!(page.matches("<script").count(), 1, "{page}");
            assert!(page.contains("<script nonce=\"n0nce\">"));
            for load in ["http://", "https://", "src=", "@import", "url(", "<iframe"] {
                assert!(!page.contains(load), "{load}");
            }
        }
    }

    #[test]
    fn the_end_is_told_by_what_serves_the_page_and_marks_are_of_what_keeps_them() {
        for (by, ask, over, keeps_marks) in [
            (ServedBy::Run, "End the run, and report?", "The command has ended.", true),
            (ServedBy::Watch, "End the watch?", "The watch has ended.", true),
            (ServedBy::Experiment, "End the experiment, and", "The command has ended.", false),
            (ServedBy::Cell, "\"", "The command has ended.", false),
            (ServedBy::Serve, "\"", "throng serve has ended.", false),
        ] {
            let page = Served { by, ..SERVED }.message("", "");
            for words in [format!("data-ask=\"{ask}"), format!("data-over=\"{over}")] {
                assert!(page.contains(&words), "{words}: {page}");
            }
            assert_eq!(page.contains("<button>Mark</button>"), keeps_marks, "{by:?}");
        }
    }

    #[test]
    fn a_matrix_is_served_in_the_sections_of_its_file() {
        let report = crate::matrix::tests::campus();
        let page = SERVED.matrix(&report);
        let ids: Vec<&str> = parts(&page).map(|(id, _)| id).collect();
        assert_eq!(ids[..3], ["contents", "strip", "answer"]);
        let file = html::matrix::render(&report);
        for (id, section) in parts(&page).filter(|(id, _)| *id != "strip") {
            assert!(file.contains(section), "{id}");
        }
    }

    #[test]
    fn a_message_is_replaced_by_the_page_whose_first_part_it_has() {
        let page = SERVED.message("about to begin", "");
        assert_eq!(
            parts(&page).map(|(id, _)| id).collect::<Vec<_>>(),
            ["contents", "strip", "answer"]
        );
    }
}
