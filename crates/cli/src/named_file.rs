//! Files that the user names for an answer, beside those of the run folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::Access;
use throng_store::StoreError;

use crate::console::CliError;

/// Refuses a file of `flag` that cannot be written, before the run whose answer it would get. Makes
/// none, and opens no pipe: whoever reads it would take that for the end.
pub(crate) fn check(flag: &str, file: &Path) -> Result<(), CliError> {
    let problem = match fs::metadata(file) {
        Ok(found) if found.is_dir() => Some("it is a folder: name a file".to_owned()),
        Ok(found) if found.is_file() => opened(file).err().map(|error| error.to_string()),
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match file.parent() {
            Some(folder) => takes_files(folder).err(),
            None => Some(error.to_string()),
        },
        Err(error) => Some(error.to_string()),
    };
    match problem {
        Some(problem) => Err(CliError::usage(format!("{flag} {}: {problem}", file.display()))),
        None => Ok(()),
    }
}

/// The same of each flag that names a file.
pub(crate) fn check_each(named: &[(&str, Option<&Path>)]) -> Result<(), CliError> {
    named.iter().try_for_each(|(flag, file)| file.map_or(Ok(()), |file| check(flag, file)))
}

/// Writes a file, if there is to be one.
pub(crate) fn put(
    file: Option<&Path>,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), StoreError> {
    let Some(file) = file else { return Ok(()) };
    write(file).map_err(|error| StoreError::Io { path: file.to_owned(), error })
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

/// Whether a file may be made in the folder, by the word of the kernel; why not, in words.
fn takes_files(folder: &Path) -> Result<(), String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| io::Error::from(error).to_string())
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
        let named = [("--junit", None), ("--page", Some(folder.path()))];
        let said = check_each(&named).unwrap_err().error.to_string();
        assert!(said.starts_with("--page ") && said.ends_with("it is a folder: name a file"));
        assert!(check_each(&[("--junit", Some(&*file)), ("--page", None)]).is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_written_after_the_answer_is_no_usage_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(put(None, |_| unreachable!("no file")).is_ok());
        let failed = put(Some(folder.path()), |file| fs::write(file, "text")).unwrap_err();
        assert_eq!(CliError::unread(failed).exit, Exit::Invalid);
    }
}
