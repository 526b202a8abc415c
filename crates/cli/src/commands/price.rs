//! `throng price`: sizes and prices another crowd from a run folder.

use std::path::Path;

use throng_report::ReportRows;
use throng_report::price::{PriceReport, PriceRequest, text};
use throng_scenario::prices::PriceTable;

use crate::args::Price;
use crate::console::{CliError, Exit, print, print_json};
use crate::{kept, report};

/// A longer file is none of prices.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn price(command: &Price) -> Result<Exit, CliError> {
    // Before the run is read, which takes longer.
    let prices = command.prices.as_deref().map(read).transpose()?;
    let folder = kept::run_folder(&command.run);
    let run = report::read(&folder, &mut ReportRows::default()).map_err(CliError::usage)?;
    let summary = report::summary(&run);
    let request = PriceRequest {
        viewers: command.viewers,
        hours: command.hours,
        target_utilisation: command.target_utilisation,
        storage_gb: command.storage_gb,
    };
    let report = PriceReport::of(&run, &summary, &request, prices.as_ref());
    if command.json {
        print_json(&report.to_json());
    } else {
        print(&text::summary(&report));
    }
    // Without the demand of a user there is no size.
    Ok(if report.has_no_size() { Exit::Invalid } else { Exit::Met })
}

fn read(file: &Path) -> Result<PriceTable, CliError> {
    let wrong = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("cannot read {}: {error}", file.display()))
    };
    let bytes = std::fs::metadata(file).map_err(|error| wrong(&error))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(wrong(&format_args!("{bytes} bytes are too many for a list of prices")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    PriceTable::parse(&text).map_err(|error| {
        CliError::usage(format!("{} cannot be used as it is:\n{error}", file.display()))
    })
}
