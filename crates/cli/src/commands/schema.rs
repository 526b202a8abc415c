//! `throng schema`: prints the JSON Schema of a file format.

use crate::args::Format;
use crate::console::{CliError, Exit, print};

pub(super) fn schema(format: Format) -> Result<Exit, CliError> {
    let schema = match format {
        Format::Scenario => throng_scenario::json_schema().to_value(),
        Format::Summary => throng_report::json_schema(),
        Format::Matrix => throng_report::matrix::json_schema(),
        Format::Compare => throng_report::compare::json_schema(),
        Format::Trend => throng_report::trend::json_schema(),
        Format::Price => throng_report::price::json_schema(),
        Format::Ipc => throng_ipc::json_schema(),
    };
    print(&format!("{schema:#}\n"));
    Ok(Exit::Met)
}
