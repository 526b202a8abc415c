//! The flags of comparisons between runs.

use std::path::PathBuf;

use clap::Args;

use super::parsers::share;

/// The difference that does not matter, unless `--margin` says otherwise.
const MARGIN: &str = "5%";

/// The exit codes of `throng compare`, for its help.
pub(crate) const COMPARE_EXITS: &str = "\
Exit codes:
    0  nothing is worse, and what was asked (the capacity or the service, and the objectives that \
                                        a new run misses) is
       better or the same
    1  something is worse
    2  usage error
    4  the runs cannot be compared, what was asked is not decided, or a file was not written";

/// The exit codes of `throng trend`, for its help.
pub(crate) const TREND_EXITS: &str = "\
Exit codes:
    0  the newest run is as usual, or better
    1  the newest run is worse than those before it
    2  usage error
    4  no run counts, or the page was not written";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXITS)]
pub(crate) struct Compare {
    /// BASE and NEW: a run folder each, or its name below runs/, or a folder of run folders, such
    /// as a cell of a matrix
    #[arg(
        num_args = 2,
        value_names = ["BASE", "NEW"],
        required_unless_present = "base",
        conflicts_with_all = ["base", "new"]
    )]
    pub(crate) sides: Vec<PathBuf>,
    /// A run to compare with; several with commas, or repeated
    #[arg(long, value_name = "RUN", value_delimiter = ',', requires = "new")]
    pub(crate) base: Vec<PathBuf>,
    /// A run to judge; several with commas, or repeated
    #[arg(long, value_name = "RUN", value_delimiter = ',', requires = "base")]
    pub(crate) new: Vec<PathBuf>,
    /// How large a difference does not matter, as a share of the base, such as 5%
    #[arg(long, value_name = "SHARE", default_value = MARGIN, value_parser = share)]
    pub(crate) margin: f64,
    /// Compare runs of different machines all the same
    #[arg(long)]
    pub(crate) allow_different_machines: bool,
    /// Write the page of the comparison to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Write JUnit XML to this file: a test case for each objective and each quantity
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Add the answer as Markdown to the end of this file, such as $GITHUB_STEP_SUMMARY
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Print compare.json instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = TREND_EXITS)]
pub(crate) struct Trend {
    /// Run folders, or their names below runs/, or folders of run folders, in any order
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// How large a difference does not matter, as a share, such as 5%
    #[arg(long, value_name = "SHARE", default_value = MARGIN, value_parser = share)]
    pub(crate) margin: f64,
    /// Write the page of the trend to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Print trend.json instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use throng_report::compare::CompareOptions;

    use super::*;

    #[test]
    fn a_comparison_without_flags_has_the_same_margin() {
        // Pages of `throng serve` have no flags.
        let margin_ratio = share(MARGIN).unwrap();
        let usual = CompareOptions::default();
        assert_eq!(CompareOptions { margin_ratio, ..usual }, usual);
    }
}
