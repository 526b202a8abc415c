//! Whose a path is. A folder that another user can change holds that user's commands, whatever is
//! in it while one looks.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// Root's number, which may write everywhere anyway.
const ROOT: u32 = 0;
/// Others may write.
const WRITABLE_BY_ALL: u32 = 0o002;
/// In a folder with this bit, names are changed only by their owner (`/tmp`).
const STICKY: u32 = 0o1000;
/// As many links as the kernel follows on one way (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Why what lies at a path may be somebody else's.
#[derive(Debug, thiserror::Error)]
pub enum Stranger {
    /// It, or a folder above it, has another owner.
    #[error("{path} belongs to user {owner}, and throng runs as user {own}")]
    Owner {
        /// What has another owner.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
        /// The number of the user that throng runs as.
        own: u32,
    },
    /// It, or a folder above it, is open to all.
    #[error("{0} can be written by every user of this machine")]
    Open(PathBuf),
    /// It cannot be looked at.
    #[error("{path}: {error}")]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl Stranger {
    /// The command that makes the path one's own, program and arguments; for who knows what lies
    /// there. Of a link it is the link that has another owner, and not what that leads to.
    #[must_use]
    pub fn mend(&self) -> Option<Vec<String>> {
        let words = |words: &[&str], path: &Path| {
            let words = words.iter().map(|word| (*word).to_owned());
            Some(words.chain([path.display().to_string()]).collect())
        };
        match self {
            Self::Owner { path, own, .. } => words(&["chown", "-h", &own.to_string()], path),
            Self::Open(path) => words(&["chmod", "o-w"], path),
            Self::Io { .. } => None,
        }
    }
}

/// Who must have made what throng takes commands from.
#[derive(Clone, Copy, Debug)]
struct Own {
    user: u32,
    /// Who became root by sudo(8), which sets this: the way to what root keeps in this user's
    /// folders.
    sudo: Option<u32>,
}

impl Own {
    fn now() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let sudo = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
        Self { user, sudo: sudo.filter(|_| user == ROOT) }
    }
}

/// Whether only this user and root can have put what lies at `path`: the owners of it, of the
/// folders above it and of the links on the way, and that none of them is open to all, but for
/// those like `/tmp`, where what is ours stays ours. Who may write as the group of a folder was
/// trusted by its owner. What it passed by nobody else can exchange afterwards.
///
/// # Errors
/// [`Stranger`] names what is not.
pub fn check_own(path: &Path) -> Result<(), Stranger> {
    let (way, own) = (way_to(path)?, Own::now());
    let real = way.iter().rposition(|(_, found)| !found.is_symlink());
    for (number, (place, found)) in way.iter().enumerate().rev() {
        // All may do with a link what its folder lets them.
        let mode = if found.is_symlink() { 0 } else { found.mode() };
        judge(place, (found.uid(), mode), Some(number) == real, own)?;
    }
    Ok(())
}

/// What is looked up on the way to `path`, from the root on: also each folder in which a link lies,
/// and the link. The path that comes of it alone is not enough: a folder of another user may have a
/// link to what is ours, and something else in its place once one has looked.
fn way_to(path: &Path) -> Result<Vec<(PathBuf, Metadata)>, Stranger> {
    let wrong = |path: &Path, error| Stranger::Io { path: path.to_owned(), error };
    let absolute = std::path::absolute(path).map_err(|error| wrong(path, error))?;
    let (mut ahead, mut at, mut links) = (parts(&absolute), PathBuf::new(), 0);
    let mut way = Vec::new();
    while let Some(part) = ahead.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let place = at.join(part);
        let found = place.symlink_metadata().map_err(|error| wrong(&place, error))?;
        if found.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(wrong(path, Errno::LOOP.into()));
            }
            ahead.extend(parts(&place.read_link().map_err(|error| wrong(&place, error))?));
        } else {
            at.clone_from(&place);
        }
        way.push((place, found));
    }
    Ok(way)
}

/// The names of a path, the last first.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().rev().filter(|part| *part != Component::CurDir);
    named.map(|part| part.as_os_str().to_owned()).collect()
}

/// `is_it`: the path itself, and no folder above it.
fn judge(path: &Path, (owner, mode): (u32, u32), is_it: bool, own: Own) -> Result<(), Stranger> {
    let is_on_the_way = !is_it && own.sudo == Some(owner);
    if owner != own.user && owner != ROOT && !is_on_the_way {
        return Err(Stranger::Owner { path: path.to_owned(), owner, own: own.user });
    }
    let keeps_names = !is_it && mode & STICKY != 0;
    if mode & WRITABLE_BY_ALL != 0 && !keeps_names {
        return Err(Stranger::Open(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_another_user_could_have_written_is_named() {
        let root = Own { user: 0, sudo: None };
        let sudo = Own { user: 0, sudo: Some(1000) };
        let user = Own { user: 1000, sudo: None };
        for (place, is_it, own, expect) in [
            ((0, 0o755), true, root, true),
            ((1000, 0o755), true, root, false),
            ((1000, 0o755), false, root, false),
            ((1000, 0o755), false, sudo, true),
            ((1000, 0o755), true, sudo, false),
            ((1000, 0o700), true, user, true),
            ((0, 0o755), true, user, true),
            ((1001, 0o755), false, user, false),
            ((0, 0o1777), false, user, true),
            ((0, 0o777), false, user, false),
            ((0, 0o1777), true, root, false),
            ((1000, 0o666), true, user, false),
            ((1000, 0o775), false, user, true),
        ] {
            let judged = judge(Path::new("/x"), place, is_it, own);
            assert_eq!(judged.is_ok(), expect, "{place:?} {is_it} {own:?}: {judged:?}");
        }
        let said = judge(Path::new("/x"), (1000, 0o755), true, root).unwrap_err().to_string();
        assert_eq!(said, "/x belongs to user 1000, and throng runs as user 0");
        for (place, own, expect) in
            [((1000, 0o755), root, "chown -h 0 /x"), ((1000, 0o777), user, "chmod o-w /x")]
        {
            let mend = judge(Path::new("/x"), place, true, own).unwrap_err().mend();
            assert_eq!(mend.map(|words| words.join(" ")).as_deref(), Some(expect));
        }
    }

    #[test]
    fn a_folder_of_ones_own_in_tmp_is_ones_own_until_all_may_write_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        std::fs::write(&file, "").unwrap();
        assert!(check_own(&file).is_ok(), "{:?}", check_own(&file));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).unwrap();
        assert!(
            matches!(check_own(&file), Err(Stranger::Open(path)) if path.ends_with(folder.path().file_name().unwrap()))
        );
        assert!(matches!(check_own(&folder.path().join("none")), Err(Stranger::Io { .. })));
    }

    /// Who may write there puts something else in the place of the link once it was looked at.
    #[test]
    fn a_link_to_what_is_ones_own_is_not_where_all_may_write() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("own"), "").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let link = |to: &str, name: &str| symlink(to, at(name)).unwrap();
        link("../own", "folder/journal");
        link("folder", "way");
        link("way/journal", "further");
        link("itself", "itself");
        let names = ["own", "folder/journal", "way/journal", "way/../own", "further"];
        for name in names {
            assert!(check_own(&at(name)).is_ok(), "{name}: {:?}", check_own(&at(name)));
        }
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(at("folder"), open).unwrap();
        assert!(check_own(&at("own")).is_ok());
        for name in names.into_iter().filter(|name| *name != "own") {
            let said = check_own(&at(name));
            let is_it = matches!(&said, Err(Stranger::Open(path)) if path.ends_with("folder"));
            assert!(is_it, "{name}: {said:?}");
        }
        assert!(matches!(check_own(&at("itself")), Err(Stranger::Io { .. })));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn a_link_of_another_user_leads_to_nothing_of_ones_own() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can give a link away");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (own, link) = (place.path().join("own"), place.path().join("link"));
        std::fs::write(&own, "").unwrap();
        symlink(&own, &link).unwrap();
        assert!(check_own(&link).is_ok());
        std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
        let said = check_own(&link);
        assert!(matches!(said, Err(Stranger::Owner { owner: 65_534, .. })), "{said:?}");
    }
}
