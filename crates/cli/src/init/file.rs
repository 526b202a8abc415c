//! The file that `throng init` writes.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use throng_observation::masked::masked;

use crate::args::Init;
use crate::console::CliError;
use crate::named_file;

/// The mode of a file that only its owner may read.
const OWNER_ALONE: u32 = 0o600;

/// Whether the file can be written, before anything is sent.
pub(super) fn check(command: &Init) -> Result<(), CliError> {
    let file = &command.output;
    if file.as_os_str() == "-" {
        return Ok(());
    }
    if !command.force && !file.is_dir() && file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    named_file::check("--output", file)
}

fn exists(file: &Path) -> CliError {
    let help = "name another with -o, or overwrite it with --force";
    CliError::usage(format!("{} exists: {help}", file.display()))
}

/// Writes it; for its owner alone if the URL has a secret.
pub(super) fn write(command: &Init, text: &str) -> Result<(), CliError> {
    let file = &command.output;
    let has_secret = masked(&command.url) != command.url;
    let mut options = OpenOptions::new();
    options.write(true).mode(if has_secret { OWNER_ALONE } else { 0o666 });
    if command.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options.open(file).and_then(|mut opened| {
        if has_secret {
            hide(&opened)?;
        }
        opened.write_all(text.as_bytes())
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => CliError::usage(format!("cannot write {}: {error}", file.display())),
    })
}

/// Makes a file readable for its owner alone: one that was there has kept the mode that it had. A
/// device or a pipe is not made so, as it is no file of the user's.
fn hide(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(OWNER_ALONE))?;
    }
    Ok(())
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
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        let forced = command(&file, "http://h", true);
        assert!(check(&forced).is_ok() && write(&forced, "2").is_ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2");
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
            std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            write(&command(&file, url, true), url).unwrap();
            assert_eq!(mode(), expect, "{url} over a file that all may read");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), url);
        }
    }
}
