//! The file that `throng init` writes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use throng_folder::{Folder, unfinished};
use throng_observation::masked::masked;

use crate::args::Init;
use crate::console::CliError;
use crate::named_file;

/// The modes of a file that only its owner may read, and of one that all may read.
const OWNER_ALONE: u32 = 0o600;
const ALL: u32 = 0o644;

/// Whether the file can be written, before anything is sent.
pub(super) fn check(command: &Init) -> Result<(), CliError> {
    let file = &command.output;
    if file.as_os_str() == "-" {
        return Ok(());
    }
    if !command.force && !file.is_dir() && file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    named_file::check("--output", file)?;
    // What is there is replaced by a file that is written beside it.
    match file.canonicalize() {
        Ok(there) if there.is_file() => {
            let name = unfinished(there.file_name().unwrap_or_default());
            named_file::check("--output", &there.with_file_name(name))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn exists(file: &Path) -> CliError {
    let help = "name another with -o, or overwrite it with --force";
    CliError::usage(format!("{} exists: {help}", file.display()))
}

/// Writes it; for its owner alone if the URL has a secret.
pub(super) fn write(command: &Init, text: &str) -> Result<(), CliError> {
    let file = &command.output;
    let has_secret = masked(&command.url) != command.url;
    put(file, text, command.force, has_secret).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => CliError::usage(format!("cannot write {}: {error}", file.display())),
    })
}

/// Writes a file completely or not at all: on a full disk the one that was there stays, and no half
/// of the new one. One that is replaced keeps its mode.
fn put(file: &Path, text: &str, force: bool, has_secret: bool) -> io::Result<()> {
    let there = fs::metadata(file).ok().filter(|_| force);
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A device or a pipe stays what it is: it is no file of the user's.
        return OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
    }
    // Who named a link means where it leads.
    let file = if there.is_some() { file.canonicalize()? } else { file.to_owned() };
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "is no name of a file");
    let (folder, name) = file.parent().zip(file.file_name()).ok_or_else(no_name)?;
    let (folder, text) = (Folder::open(folder)?, text.as_bytes());
    let mode = if has_secret { OWNER_ALONE } else { ALL };
    match there {
        Some(there) if !has_secret => folder.put_over(name, text, there.permissions().mode()),
        None if !force => folder.put_new(name, text, mode),
        Some(_) | None => folder.put_as(name, text, mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(output: &Path, url: &str, force: bool) -> Init {
        use clap::Parser;

        use crate::args::{Arguments, Command};
        let output = output.display().to_string();
        let mut words = vec!["throng", "init", url, "-o", &output];
        words.extend(force.then_some("--force"));
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Init(init) => init,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn a_file_is_not_overwritten_unless_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let first = command(&file, "http://h", false);
        assert!(check(&first).is_ok() && write(&first, "one").is_ok());
        for refused in [check(&first), write(&first, "two")] {
            let error = refused.unwrap_err().error.to_string();
            assert!(error.contains("a.toml exists") && error.contains("--force"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        let forced = command(&file, "http://h", true);
        assert!(check(&forced).is_ok() && write(&forced, "2").is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "2");
    }

    #[test]
    fn what_cannot_be_written_whole_costs_nothing_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        // In the way of what is written first.
        fs::create_dir(folder.path().join(".a.toml.unfinished")).unwrap();
        fs::write(&file, "old").unwrap();
        let forced = command(&file, "http://h", true);
        assert!(check(&forced).is_err() && write(&forced, "new").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["a.toml", "link.toml"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("a.toml", &link).unwrap();
        for output in [link.as_path(), Path::new("/dev/null")] {
            let forced = command(output, "http://me:secret@h", true);
            assert!(check(&forced).is_ok() && write(&forced, "new").is_ok(), "{output:?}");
        }
        assert!(link.is_symlink() && !Path::new("/dev/null").is_file());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before() {
        let folder = tempfile::tempdir().unwrap();
        for (output, words) in [
            (folder.path().to_owned(), "is a folder"),
            (folder.path().join("none/a.toml"), "there is no folder"),
            // The kernel lets nobody make a file there, not even root.
            ("/proc/sys/a.toml".into(), "--output /proc/sys/a.toml: "),
        ] {
            let error = check(&command(&output, "http://h", true)).unwrap_err();
            assert!(error.error.to_string().contains(words), "{}", error.error);
        }
        assert!(check(&command(Path::new("-"), "http://h", false)).is_ok());
    }

    #[test]
    fn a_url_with_a_password_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
        write(&command(&file, "rtsp://me:secret@h/cam", false), "x").unwrap();
        assert_eq!(mode(), 0o600);
        for (url, expect) in [("rtsp://h/cam", 0o644), ("rtsp://me:secret@h/cam", 0o600)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            write(&command(&file, url, true), url).unwrap();
            assert_eq!(mode(), expect, "{url} over a file that all may read");
            assert_eq!(fs::read_to_string(&file).unwrap(), url);
        }
        // Whoever may write it goes on to.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        write(&command(&file, "rtsp://h/cam", true), "x").unwrap();
        assert_eq!(mode(), 0o664);
    }
}
