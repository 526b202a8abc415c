//! Whose a folder is that says what is to be run: throng does so with the rights of who started it.

use std::path::{Path, PathBuf};

use throng_observation::shell;

use crate::console::CliError;

/// Whether no other user can have written these files of a folder. The error says what to do if
/// that user is trusted.
pub(crate) fn check_own(
    folder: &Path,
    files: impl IntoIterator<Item = PathBuf>,
) -> Result<(), CliError> {
    for path in files {
        throng_folder::check_own(&path).map_err(|error| {
            let mend = error.mend().map(shell::line);
            let mend = mend.map(|line| format!(". If all that lies there is yours: {line}"));
            CliError::usage(format!(
                "{error}: the commands of {} are not run{}",
                folder.display(),
                mend.unwrap_or_default()
            ))
        })?;
    }
    Ok(())
}
