//! Whether the server of a cell can be started from where it is said to be: its folder, and its
//! program.

use std::path::{Path, PathBuf};

use throng_scenario::matrix::CellConfig;

use super::plan::MatrixPlan;
use crate::console::CliError;

/// A folder that stands for that of the cell, of which nothing is there yet.
const NOT_YET: &str = "/throng-cell";

impl MatrixPlan {
    /// Checks the servers of all cells, whatever else is true of them. What a cell makes itself, by
    /// its setup or in its own folder, is there when its turn comes.
    pub(super) fn check_servers(&self) -> Result<(), CliError> {
        for cell in &self.cells {
            let config = self.config(cell, Path::new(NOT_YET));
            if let Some(why) = self.missing(&config) {
                let name = self.matrix.describe(cell);
                return Err(CliError::usage(format!("cell {} ({name}): {why}", cell.number)));
            }
        }
        Ok(())
    }

    /// What of a cell's server is not there.
    fn missing(&self, config: &CellConfig) -> Option<String> {
        let server = &config.server;
        let command = server.command.as_ref().filter(|_| config.setup.is_empty())?;
        let cwd = server.cwd.as_ref().map_or_else(|| self.base.clone(), |cwd| self.base.join(cwd));
        let is_made = |path: &Path| path.starts_with(NOT_YET);
        if !is_made(&cwd) && !cwd.is_dir() {
            return Some(format!("server.cwd: there is no folder {}", cwd.display()));
        }
        let program = Path::new(command.first()?);
        let path = server.env.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value);
        let path = path.map(Into::into).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let places: Vec<PathBuf> = match program.components().count() {
            1 => std::env::split_paths(&path).map(|folder| folder.join(program)).collect(),
            _ => vec![cwd.join(program)],
        };
        let is_there = places.iter().any(|place| is_made(place) || place.is_file());
        (!is_there).then(|| format!("server.command: there is no program {}", program.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::*;

    #[test]
    fn a_missing_folder_and_a_missing_program_are_told_apart_before_anything_starts() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("matrix.toml");
        let scenario = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n";
        std::fs::write(place.path().join("viewers.toml"), scenario).unwrap();
        std::fs::write(place.path().join("mine"), "").unwrap();
        for (server, expect) in [
            ("command = [\"sh\"]", None),
            ("command = [\"./mine\"]", None),
            ("command = [\"{{dir}}/made\"]\ncwd = \"{{dir}}/later\"", None),
            ("command = [\"sh\"]\ncwd = \"nowhere\"", Some("server.cwd: there is no folder")),
            ("command = [\"no-such-server\"]", Some("server.command: there is no program")),
            ("command = [\"./no\"]", Some("server.command: there is no program ./no")),
        ] {
            let text = format!(
                "scenario = \"viewers.toml\"\nhold = \"2s\"\n[server]\n{server}\n\
                 [[factor]]\nname = \"size\"\nset = \"crowd.size\"\nlevels = [1, 2]\n"
            );
            std::fs::write(&file, text).unwrap();
            let plan = MatrixPlan::read(&file, Options::default());
            let plan = plan.unwrap_or_else(|stop| panic!("{:#}", stop.error));
            let said = plan.check_servers().err().map(|stop| stop.error.to_string());
            let is_said = match (&said, expect) {
                (Some(said), Some(expect)) => said.contains(expect),
                (said, expect) => said.is_none() && expect.is_none(),
            };
            assert!(is_said, "{server}: {said:?}");
        }
    }
}
