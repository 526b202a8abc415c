//! The page of a folder of runs: a list that can be filtered, with links to the page of each run,
//! to comparisons and trends.

use throng_observation::units::count;

use super::document;
use crate::html::markup::{Cell, Table, escape};
use crate::html::outline::landmarks;

/// A run in the list. All of it is text of others.
#[derive(Clone, Debug, Default)]
pub struct HistoryRow {
    /// Its name.
    pub name: String,
    /// Its name as a part of a URL, percent-encoded.
    pub address: String,
    /// When it began, to the minute.
    pub began: String,
    /// `run`, `view`, `find`, `matrix` or `proof`.
    pub kind: String,
    /// How it ended.
    pub outcome: String,
    /// The name of its scenario.
    pub scenario: String,
    /// What was loaded.
    pub target: String,
    /// Its answer in a sentence.
    pub answer: String,
    /// What limited the server.
    pub cause: String,
    /// Its labels and note, and what is wrong with it.
    pub remarks: String,
}

const HEADER: [&str; 10] =
    ["", "run", "began", "kind", "outcome", "scenario", "target", "answer", "cause", "remarks"];

/// The page of a list, the newest run first, and below it what could not be looked at, in
/// sentences; scripts are let run by `nonce`.
#[must_use]
pub fn history(folder: &str, rows: &[HistoryRow], unreadable: &[String], nonce: &str) -> String {
    let mut table = Table::new("", &HEADER, &[]);
    for row in rows {
        table.row("", cells(row));
    }
    let problems = unreadable.iter().map(|problem| format!("<p>{}</p>", escape(problem)));
    let body = format!(
        "<header><h1>{}</h1><p class=\"over\">{}, the newest first; reload for newer \
         ones</p></header><form><p><input id=\"filter\" type=\"search\" placeholder=\"only rows \
         with these words\" aria-label=\"Filter\"> <button formaction=\"compare\">Compare \
         two</button> <button formaction=\"trend\">Trend</button></p>{}</form>{}",
        escape(folder),
        count(rows.len() as u64, "runs"),
        table.finish(),
        problems.collect::<String>()
    );
    let title = format!("throng: runs of {folder}");
    let (style, script) = (include_str!("live.css"), include_str!("history.js"));
    document(&title, style, &landmarks(&body), nonce, script)
}

fn cells(row: &HistoryRow) -> Vec<Cell> {
    let (name, address) = (escape(&row.name), escape(&row.address));
    let chosen = format!(
        "<input type=\"checkbox\" name=\"runs\" value=\"{address}\" aria-label=\"Choose {name}\">"
    );
    let texts = [&row.began, &row.kind, &row.outcome, &row.scenario, &row.target, &row.answer];
    let mut cells =
        vec![Cell::markup(chosen), Cell::markup(format!("<a href=\"./{address}/\">{name}</a>"))];
    cells.extend(texts.into_iter().chain([&row.cause, &row.remarks]).map(|text| Cell::text(text)));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_links_to_each_run_and_names_stay_text() {
        let hostile = "\"><img src=x>";
        let row = HistoryRow {
            name: hostile.into(),
            address: hostile.into(),
            answer: hostile.into(),
            ..HistoryRow::default()
        };
        let plain =
            HistoryRow { name: "a b".into(), address: "a%20b".into(), ..HistoryRow::default() };
        let unreadable = ["runs: <b>denied</b>".to_owned()];
        let page = history("runs", &[plain, row], &unreadable, "n0nce");
        assert!(page.contains("</form><p>runs: &lt;b&gt;denied"), "{page}");
        assert!(page.contains("<a href=\"./a%20b/\">a b</a>") && page.contains("2 runs"), "{page}");
        assert!(page.contains("value=\"a%20b\"") && !page.contains("<img"), "{page}");
        assert_eq!(page.matches("<script nonce=\"n0nce\">").count(), 1);
        assert!(history("<b>", &[], &[], "").contains("0 runs"));
    }
}
