//! The flags of `throng price`.

use std::path::PathBuf;

use clap::Args;
use throng_analysis::sizing::TARGET_UTILISATION;

use super::parsers::{not_negative, positive, sized_crowd, utilisation};

#[derive(Debug, Args)]
pub(crate) struct Price {
    /// A run folder, best of a watched `throng find`: at least three loads have to pass
    pub(crate) run: PathBuf,
    /// Viewers at a time
    #[arg(long, value_name = "N", value_parser = sized_crowd)]
    pub(crate) viewers: u32,
    /// How long the event lasts, hours
    #[arg(long, value_name = "HOURS", default_value_t = 1.0, value_parser = positive)]
    pub(crate) hours: f64,
    /// The prices (TOML), such as examples/prices/large-cloud.toml: docs/price.md; without it only
    /// the size is given
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// The share of each resource that is used, the rest is headroom
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = TARGET_UTILISATION,
        value_parser = utilisation
    )]
    pub(crate) target_utilisation: f64,
    /// GB that are kept for a month: the catalogue, or the recording
    #[arg(
        long,
        value_name = "GB",
        default_value_t = 0.0,
        value_parser = not_negative,
        allow_negative_numbers = true
    )]
    pub(crate) storage_gb: f64,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
