//! How long a report takes to open in Chromium:
//!
//! ```text
//! page_opens FOLDER/report.html [--times 5]
//! ```
//!
//! The browser's own times (Navigation Timing, Paint Timing), from the start of the navigation.

#![expect(clippy::print_stdout, reason = "the result of a benchmark")]

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Parser;
use throng_browser::{Chromium, find};

/// From the start of the navigation: the first paint, the end of all scripts of the page, the end
/// of its load event.
const TIMES: &str = "(() => {
  const navigation = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return [paint?.startTime ?? 0, navigation.domContentLoadedEventEnd, navigation.loadEventEnd];
})()";

/// The page to open.
#[derive(Parser)]
struct Arguments {
    /// The page.
    page: PathBuf,
    /// How often it is opened.
    #[arg(long, default_value_t = 5)]
    times: u32,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let page =
        arguments.page.canonicalize().with_context(|| arguments.page.display().to_string())?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = find(&path).context("there is no Chromium (apt: chromium)")?;
    let mut browser = Chromium::start(Command::new(program), &[])?;
    println!(
        "{}, {} bytes, ms: first paint, scripts done, loaded",
        browser.version(),
        page.metadata()?.len()
    );
    for _ in 0..arguments.times {
        browser.load("about:blank")?;
        browser.load(&format!("file://{}", page.display()))?;
        let times = browser.evaluate(TIMES)?;
        let ms: Vec<String> = times
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(serde_json::Value::as_f64)
            .map(|ms| format!("{ms:.0}"))
            .collect();
        println!("{}", ms.join(", "));
    }
    Ok(())
}
