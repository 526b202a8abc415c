//! An open folder: names are looked up in it, and not along a path that somebody can change.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A folder is only searched for names, which needs no right to list it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// What the umask leaves of it is allowed: never that others write, who could then change what is
/// run ([`check_own`](crate::check_own) refuses such files).
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
/// Of a file until it has the mode of another one, and what a mode may have (chmod(2)).
const OWNER_ALONE: u32 = 0o600;
const MODE_BITS: u32 = 0o7777;

/// A folder that is open.
#[derive(Debug)]
pub struct Folder {
    opened: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder. Links on the way are followed: whoever named it means where they lead.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::opened(path.into(), FOLDER)
    }

    /// Opens a folder whose name was not chosen by whoever started throng: it must be no link.
    ///
    /// # Errors
    /// Those of the file system; if it is a link.
    pub fn open_itself(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::opened(path.into(), FOLDER.union(OFlags::NOFOLLOW))
    }

    fn opened(path: PathBuf, flags: OFlags) -> io::Result<Self> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path.as_path() };
        let opened = rustix::fs::open(named, flags, Mode::empty())?;
        Ok(Self { opened, path })
    }

    /// Its path as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in it, which is made if there is none. A link is refused.
    ///
    /// # Errors
    /// Those of the file system; if it is a link or a file.
    pub fn inside(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = plain(name.as_ref())?;
        match rustix::fs::mkdirat(&self.opened, name, Mode::from_raw_mode(FOLDER_MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = FOLDER.union(OFlags::NOFOLLOW);
        let opened = rustix::fs::openat(&self.opened, name, flags, Mode::empty())
            .map_err(|error| self.refusal(name, error))?;
        Ok(Self { opened, path: self.path.join(name) })
    }

    /// Makes a file, in place of what has its name: of a link, the link goes, and what it names
    /// stays as it is.
    ///
    /// # Errors
    /// Those of the file system; if a folder has this name.
    pub fn create(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.create_as(name.as_ref(), FILE_MODE)
    }

    fn create_as(&self, name: &Path, mode: u32) -> io::Result<File> {
        self.remove(name)?;
        self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
    }

    /// Makes a file where nothing has its name.
    ///
    /// # Errors
    /// Those of the file system; `AlreadyExists` also if a link has this name.
    pub fn create_new(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.file(name.as_ref(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, FILE_MODE)
    }

    /// Opens a file to read it and to write at its end; it is made if there is none.
    ///
    /// # Errors
    /// Those of the file system; if it is a link or no ordinary file.
    pub fn append(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.file(name.as_ref(), OFlags::RDWR | OFlags::CREATE | OFlags::APPEND, FILE_MODE)
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// Those of the file system; if it is a link or no ordinary file.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.file(name.as_ref(), OFlags::RDONLY, FILE_MODE)
    }

    /// Writes a file completely or not at all: under another name first, so that a reader never
    /// gets half of it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.put_as(name, contents, FILE_MODE)
    }

    /// The same with a mode of its own, such as 0o600, of which the umask leaves what it leaves of
    /// any file; others never may write.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put_as(&self, name: impl AsRef<OsStr>, contents: &[u8], mode: u32) -> io::Result<()> {
        self.put_by(name.as_ref(), contents, |unfinished| self.create_as(unfinished, mode))
    }

    /// The same with exactly this mode, whatever the umask: that of the file which it replaces.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put_over(&self, name: impl AsRef<OsStr>, contents: &[u8], mode: u32) -> io::Result<()> {
        self.put_by(name.as_ref(), contents, |unfinished| {
            let file = self.create_as(unfinished, OWNER_ALONE)?;
            file.set_permissions(Permissions::from_mode(mode & MODE_BITS))?;
            Ok(file)
        })
    }

    /// [`Self::put_as`] where nothing has its name: who has it first keeps it.
    ///
    /// # Errors
    /// Those of the file system; `AlreadyExists` also if a link has this name.
    pub fn put_new(&self, name: impl AsRef<OsStr>, contents: &[u8], mode: u32) -> io::Result<()> {
        let name = name.as_ref();
        match self.link_new(plain(name.as_ref())?, contents, mode) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                self.claim_new(name, contents, mode)
            }
            written => written,
        }
    }

    /// Writes a file without a name, which a kill leaves nothing of, and names it then. Some file
    /// systems have no such files.
    fn link_new(&self, name: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & FILE_MODE);
        let mut file = File::from(rustix::fs::openat(&self.opened, ".", flags, mode)?);
        file.write_all(contents)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        Ok(rustix::fs::linkat(rustix::fs::CWD, path, &self.opened, name, follow)?)
    }

    /// Takes the name by an empty file, which what is written then replaces.
    fn claim_new(&self, name: &OsStr, contents: &[u8], mode: u32) -> io::Result<()> {
        self.create_new(name)?;
        let written = self.put_as(name, contents, mode);
        if written.is_err() {
            let _ = self.remove(name);
        }
        written
    }

    fn put_by(
        &self,
        name: &OsStr,
        contents: &[u8],
        create: impl FnOnce(&Path) -> io::Result<File>,
    ) -> io::Result<()> {
        let unfinished = unfinished(name);
        let write = || {
            create(unfinished.as_ref())?.write_all(contents)?;
            self.rename(&unfinished, name)
        };
        let written = write();
        if written.is_err() {
            let _ = self.remove(&unfinished);
        }
        written
    }

    /// Gives a file of it another name in it; what had that name is gone.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from, to) = (plain(from.as_ref())?, plain(to.as_ref())?);
        Ok(rustix::fs::renameat(&self.opened, from, &self.opened, to)?)
    }

    /// Removes a file, or a link and not what it names. That there is none is no error.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let name = plain(name.as_ref())?;
        match rustix::fs::unlinkat(&self.opened, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a link has this name.
    #[must_use]
    pub fn is_link(&self, name: impl AsRef<Path>) -> bool {
        let found = rustix::fs::statat(&self.opened, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
    }

    fn file(&self, name: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
        let name = plain(name)?;
        // Without NONBLOCK whoever made a FIFO of this name decides when the opening ends.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & FILE_MODE);
        let opened = rustix::fs::openat(&self.opened, name, flags, mode)
            .map_err(|error| self.refusal(name, error))?;
        let file = File::from(opened);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("is no ordinary file"))
        }
    }

    /// openat(2) says `too many levels of symbolic links` of one link, or `not a directory`.
    fn refusal(&self, name: &Path, error: Errno) -> io::Error {
        if self.is_link(name) && error != Errno::EXIST {
            return io::Error::other("is a link, which is not followed");
        }
        error.into()
    }
}

/// The name under which a file is written until it is complete.
#[must_use]
pub fn unfinished(name: impl AsRef<OsStr>) -> OsString {
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".unfinished");
    unfinished
}

/// [`Folder::create`] of a path: its folder is opened as it is named.
///
/// # Errors
/// Those of the file system.
pub fn create(path: &Path) -> io::Result<File> {
    let (folder, name) = split(path)?;
    Folder::open(folder)?.create(name)
}

/// [`Folder::put_as`] of a path: its folder is opened as it is named.
///
/// # Errors
/// Those of the file system.
pub fn put_as(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let (folder, name) = split(path)?;
    Folder::open(folder)?.put_as(name, contents, mode)
}

/// [`Folder::append`] of a path: its folder is opened as it is named.
///
/// # Errors
/// Those of the file system; if it is a link or no ordinary file.
pub fn append(path: &Path) -> io::Result<File> {
    let (folder, name) = split(path)?;
    Folder::open(folder)?.append(name)
}

/// [`Folder::read`] of a path: its folder is opened as it is named.
///
/// # Errors
/// Those of the file system; if it is a link or no ordinary file.
pub fn read(path: &Path) -> io::Result<File> {
    let (folder, name) = split(path)?;
    Folder::open(folder)?.read(name)
}

/// What is in a file that others may have put there: neither a link nor a pipe, nor of any length.
///
/// # Errors
/// Those of [`read`]; if it is no text, or longer than 64 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    let file = read(path)?;
    if file.metadata()?.len() > TEXT_BYTES_MAX {
        return Err(io::Error::other("is longer than 64 MiB"));
    }
    let mut text = String::new();
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
/// A file without content may say of itself that it is as long as a disk.
const TEXT_BYTES_MAX: u64 = 64 << 20;

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(no_name)
}

/// A name of one part: the folders on a longer way could be links.
fn plain(name: &Path) -> io::Result<&Path> {
    let mut parts = name.components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(name),
        _ => Err(no_name()),
    }
}

fn no_name() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is no name of a file")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with links to a file and to a folder that are none of its business.
    fn planted(names: &[&str]) -> (tempfile::TempDir, tempfile::TempDir, Folder) {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("victim"), "precious").unwrap();
        for name in names {
            symlink(outside.path().join("victim"), place.path().join(name)).unwrap();
        }
        let folder = Folder::open(place.path()).unwrap();
        (place, outside, folder)
    }

    fn victim(outside: &tempfile::TempDir) -> String {
        std::fs::read_to_string(outside.path().join("victim")).unwrap()
    }

    #[test]
    fn what_is_written_replaces_a_link_and_not_what_it_names() {
        let (place, outside, folder) = planted(&["a", ".b.unfinished", "b"]);
        folder.create("a").unwrap().write_all(b"mine").unwrap();
        folder.put("b", b"mine").unwrap();
        for name in ["a", "b"] {
            assert_eq!(std::fs::read_to_string(place.path().join(name)).unwrap(), "mine");
            assert!(!folder.is_link(name), "{name}");
        }
        assert_eq!(victim(&outside), "precious");
    }

    #[test]
    fn a_file_has_the_mode_that_it_is_to_have_from_its_begin() {
        let (place, _outside, folder) = planted(&[]);
        for (mode, expect) in [(0o600, 0o600), (0o100_640, 0o640), (0o777, 0o644)] {
            folder.put_as("a", b"mine", mode).unwrap();
            let made = place.path().join("a").metadata().unwrap().permissions().mode();
            // The umask of whoever tests may leave less for others.
            assert_eq!((made & 0o700, made & !expect & 0o777), (0o600, 0), "{mode:o}: {made:o}");
        }
    }

    #[test]
    fn a_new_file_has_its_name_first_or_not_at_all_and_claims_none() {
        let (place, outside, folder) = planted(&["a"]);
        // In the way of a file that has a name before it is complete.
        std::fs::create_dir(place.path().join(".b.unfinished")).unwrap();
        folder.put_new("b", b"mine", 0o644).unwrap();
        assert_eq!(std::fs::read(place.path().join("b")).unwrap(), b"mine");
        for name in ["a", "b"] {
            let error = folder.put_new(name, b"other", 0o644).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(victim(&outside), "precious");
        // Where a file system has none without a name.
        folder.claim_new("c".as_ref(), b"mine", 0o644).unwrap();
        assert_eq!(std::fs::read(place.path().join("c")).unwrap(), b"mine");
        std::fs::create_dir(place.path().join(".d.unfinished")).unwrap();
        assert!(folder.claim_new("d".as_ref(), b"mine", 0o644).is_err());
        assert!(!place.path().join("d").exists());
    }

    #[test]
    fn a_file_in_place_of_another_has_exactly_its_mode() {
        let (place, _outside, folder) = planted(&[]);
        for mode in [0o100_775, 0o100_666, 0o100_600] {
            folder.put_over("a", b"mine", mode).unwrap();
            let made = place.path().join("a").metadata().unwrap().permissions().mode();
            assert_eq!(made, mode, "{made:o}");
        }
    }

    #[test]
    fn what_must_stay_is_not_opened_through_a_link() {
        let (_place, outside, folder) = planted(&["a"]);
        for error in [folder.append("a"), folder.read("a")].map(Result::unwrap_err) {
            assert_eq!(error.to_string(), "is a link, which is not followed");
        }
        let error = folder.create_new("a").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(victim(&outside), "precious");
    }

    #[test]
    fn a_folder_in_it_is_no_link_either() {
        let (place, outside, folder) = planted(&[]);
        symlink(outside.path(), place.path().join("sub")).unwrap();
        assert!(folder.inside("sub").is_err());
        assert!(Folder::open_itself(place.path().join("sub")).is_err());
        assert!(Folder::open(place.path().join("sub")).is_ok(), "named by the user");
        folder.inside("own").unwrap().create("a").unwrap();
        assert!(place.path().join("own/a").is_file());
    }

    #[test]
    fn names_lead_nowhere_else() {
        let (_place, _outside, folder) = planted(&[]);
        for name in ["", ".", "..", "a/b", "../a", "/a"] {
            assert!(folder.create(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_pipe_of_this_name_keeps_nobody_waiting() {
        let (place, _outside, folder) = planted(&[]);
        let made = std::process::Command::new("mkfifo").arg(place.path().join("a")).status();
        assert!(made.unwrap().success());
        assert!(folder.append("a").is_err() && folder.read("a").is_err());
        assert!(read_text(&place.path().join("a")).is_err());
    }

    #[test]
    fn a_text_as_long_as_a_disk_is_not_read() {
        let (place, _outside, folder) = planted(&[]);
        let path = place.path().join("a");
        folder.put("a", b"text").unwrap();
        assert_eq!(read_text(&path).unwrap(), "text");
        File::options().write(true).open(&path).unwrap().set_len(1 << 36).unwrap();
        assert_eq!(read_text(&path).unwrap_err().to_string(), "is longer than 64 MiB");
    }

    /// A child has its own: a umask is the whole process's.
    #[test]
    fn nobody_else_may_write_what_is_made_under_any_umask() {
        if std::env::var_os("THRONG_NO_UMASK").is_none() {
            let name = "folder::tests::nobody_else_may_write_what_is_made_under_any_umask";
            let script = format!("umask 000; exec \"$0\" --exact {name}");
            let mut again = std::process::Command::new("sh");
            again.args(["-c", &script]).arg(std::env::current_exe().unwrap());
            let ended = again.env("THRONG_NO_UMASK", "1").output().unwrap();
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let (place, _outside, folder) = planted(&[]);
        folder.create("a").unwrap();
        folder.append("b").unwrap();
        folder.put("c", b"mine").unwrap();
        folder.inside("d").unwrap();
        for name in ["a", "b", "c", "d"] {
            let mode = place.path().join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{name}: {mode:o}");
        }
    }

    #[test]
    fn a_file_is_continued_at_its_end() {
        let (place, _outside, folder) = planted(&[]);
        append(&place.path().join("a")).unwrap().write_all(b"one").unwrap();
        folder.append("a").unwrap().write_all(b"two").unwrap();
        let mut text = String::new();
        folder.read("a").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwo");
        create(&place.path().join("a")).unwrap();
        assert_eq!(std::fs::read(place.path().join("a")).unwrap(), b"");
    }
}
