//! The strip at the top of a served page: the run of an experiment that is in progress.

use std::fmt::Write as _;

use crate::html::markup::escape;

/// A run of an experiment that is in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInProgress {
    /// Its place in the order of all runs, from 1, and how many there are as far as that is known;
    /// `None` of a search that chooses what they measure.
    pub place: Option<(usize, usize)>,
    /// What it is, in words.
    pub label: String,
    /// Its run folder, relative to that of the experiment.
    pub folder: String,
}

/// The strip: the run that is in progress and for how many seconds, if one is, and what is known,
/// in sentences. Empty without both.
#[must_use]
pub fn experiment_strip(run: Option<(&RunInProgress, u64)>, so_far: &[String]) -> String {
    if run.is_none() && so_far.is_empty() {
        return String::new();
    }
    let mut out = String::from("<p>");
    if let Some((run, for_s)) = run {
        let place = run.place.map_or_else(
            || "before all runs".to_owned(),
            |(place, of)| format!("run {place} of {of}"),
        );
        let _ = write!(
            out,
            "<b>{place}</b><span><a href=\"{}/report.html\">{}</a></span>\
             <span>for {for_s} s</span>",
            escape(&run.folder),
            escape(&run.label)
        );
    }
    for sentence in so_far {
        let _ = write!(out, "<span>{}</span>", escape(sentence));
    }
    out.push_str("</p>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strip_has_the_run_since_when_it_is_made_and_what_is_known() {
        let run = RunInProgress {
            place: Some((3, 8)),
            label: "variant=<two>, run 2".into(),
            folder: "cells/02_variant=two/2".into(),
        };
        let strip = experiment_strip(Some((&run, 42)), &["two: <confirmed>".to_owned()]);
        for text in [
            "<b>run 3 of 8</b>",
            "<a href=\"cells/02_variant=two/2/report.html\">variant=&lt;two&gt;, run 2</a>",
            "for 42 s",
            "<span>two: &lt;confirmed&gt;</span>",
        ] {
            assert!(strip.contains(text), "{text}: {strip}");
        }
        let first = RunInProgress { place: None, ..run };
        assert!(experiment_strip(Some((&first, 0)), &[]).contains("<b>before all runs</b>"));
        assert_eq!(experiment_strip(None, &["same".to_owned()]), "<p><span>same</span></p>");
        assert_eq!(experiment_strip(None, &[]), "");
    }
}
