//! Files that the user names for an answer, beside those of the run folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::Access;

use crate::console::CliError;

/// Refuses a file of `flag` that cannot be written, before the run whose answer it would get. Makes
/// none, and opens no pipe: whoever reads it would take that for the end.
pub(crate) fn check(flag: &str, file: &Path) -> Result<(), CliError> {
    let problem = match fs::metadata(file) {
        Ok(found) if found.is_file() || found.is_dir() => opened(file).err(),
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match file.parent() {
            Some(folder) => takes_files(folder).err(),
            None => Some(error),
        },
        Err(error) => Some(error),
    };
    match problem {
        Some(error) => Err(CliError::usage(format!("{flag} {}: {error}", file.display()))),
        None => Ok(()),
    }
}

/// Adds `text` to the end of a file, a blank line below what is there: the step summary of GitHub
/// Actions has what other commands said, and an answer does not end theirs.
pub(crate) fn append(file: &Path, text: &str) -> io::Result<()> {
    let mut to = OpenOptions::new().append(true).create(true).open(file)?;
    let gap = if to.metadata()?.len() > 0 { "\n" } else { "" };
    to.write_all(format!("{gap}{text}").as_bytes())
}

fn opened(file: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(file)
}

/// Whether a file may be made in the folder, by the word of the kernel.
fn takes_files(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::console::Exit;

    #[test]
    fn an_answer_is_added_below_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        append(&file, "one\n").unwrap();
        append(&file, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\n\ntwo\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_and_none_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        assert!(check("--markdown", &file).is_ok() && !file.exists());
        assert!(check("--markdown", Path::new("summary-that-nobody-makes.md")).is_ok());
        fs::write(&file, "kept").unwrap();
        assert!(check("--markdown", &file).is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert!(check("--markdown", Path::new("/dev/stdout")).is_ok());
        let (no_folder, no_file) = (folder.path().join("no/a.md"), folder.path().to_owned());
        // The kernel lets nobody make a file there, not even root.
        let no_right = PathBuf::from("/proc/sys/a.md");
        for wrong in [no_file, no_folder, no_right, file.join("a.md"), PathBuf::new()] {
            let stop = check("--markdown", &wrong).unwrap_err();
            let said = stop.error.to_string();
            assert_eq!(stop.exit, Exit::Usage);
            assert!(said.starts_with(&format!("--markdown {}: ", wrong.display())), "{said}");
        }
    }
}
