//! Where a browser is installed.

use std::ffi::OsStr;
use std::path::PathBuf;

use throng_process::find_program;

/// The names that are searched in `PATH`, best first.
pub const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome-headless-shell",
];

/// The first of [`NAMES`] in the folders of `path` (format of the environment variable `PATH`) that
/// is executable.
#[must_use]
pub fn find(path: &OsStr) -> Option<PathBuf> {
    find_program(&NAMES, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_can_be_run_is_found_by_the_order_of_names_and_then_of_folders() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let path = std::env::join_paths(folders.iter().map(tempfile::TempDir::path)).unwrap();
        assert_eq!(find(&path), None);
        let put = |folder: usize, name: &str, mode: u32| {
            let file = folders[folder].path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        put(0, "chromium", 0o644);
        let chrome = put(0, "google-chrome", 0o755);
        assert_eq!(find(&path), Some(chrome));
        let chromium = put(1, "chromium", 0o755);
        assert_eq!(find(&path), Some(chromium));
    }
}
