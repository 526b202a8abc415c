//! The runs that a command line names: folders of runs, and folders of such folders.

use std::path::{Path, PathBuf};

use throng_report::compare::{CompareRows, MeasuredRun};

use crate::console::CliError;
use crate::kept::FolderKind;
use crate::{kept, report};

/// Measures every run that `paths` name, one at a time.
pub(super) fn measure(paths: &[PathBuf]) -> Result<Vec<MeasuredRun>, CliError> {
    let mut folders = Vec::new();
    for path in paths {
        folders.extend(folders_of(path)?);
    }
    folders.iter().map(|folder| one(folder)).collect()
}

fn one(folder: &Path) -> Result<MeasuredRun, CliError> {
    let run = report::read(folder, &mut CompareRows::default()).map_err(CliError::unread)?;
    let summary = report::summary(&run);
    Ok(MeasuredRun::of(&folder.display().to_string(), &run, &summary))
}

/// The run folder at `path`, or those directly in it, by name; `path` may be a name below runs/.
fn folders_of(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let path = &*kept::run_folder(path);
    let is_run = |folder: &Path| FolderKind::of(folder) == Some(FolderKind::Run);
    if is_run(path) {
        return Ok(vec![path.to_owned()]);
    }
    let wrong = |error| CliError::usage(format!("{}: {error}", path.display()));
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(path).map_err(wrong)? {
        let folder = entry.map_err(wrong)?.path();
        if is_run(&folder) {
            folders.push(folder);
        }
    }
    folders.sort();
    if folders.is_empty() {
        return Err(CliError::usage(format!(
            "{} is not a run folder and contains none",
            path.display()
        )));
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Exit;

    #[test]
    fn a_folder_of_runs_stands_for_its_runs_in_their_order() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b", "a", "no-run"] {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            if name != "no-run" {
                std::fs::write(folder.join("run.db"), "").unwrap();
            }
        }
        let names = |path: &Path| folders_of(path).map_err(|stop| stop.exit);
        assert_eq!(names(root.path()).unwrap(), [root.path().join("a"), root.path().join("b")]);
        assert_eq!(names(&root.path().join("a")).unwrap(), [root.path().join("a")]);
        assert_eq!(names(&root.path().join("no-run")), Err(Exit::Usage));
        assert_eq!(names(&root.path().join("nowhere")), Err(Exit::Usage));
        // An empty file is no database: an error, and not an empty run.
        assert!(measure(&[root.path().to_owned()]).is_err());
    }
}
