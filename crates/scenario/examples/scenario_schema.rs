//! Prints the JSON Schema of the scenario file: `cargo run -p throng-scenario --example
//! scenario_schema`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(&throng_scenario::json_schema())?;
    writeln!(std::io::stdout(), "{text}")
}
