//! What a folder is, by the files in it. All who are given a folder ask here.

use std::path::Path;

/// The rows of a run.
pub(super) const DATABASE: &str = "run.db";
/// The file of a matrix or a proof as it was when it began.
pub(crate) const MATRIX: &str = "matrix.toml";
/// Where that file is, and the flags.
pub(crate) const OPTIONS: &str = "options.json";

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// That of a run.
    Run,
    /// That of a run whose rows are gone: only its report is left.
    Report,
    /// That of a matrix or a proof, whose runs are in folders below.
    Matrix,
}

impl FolderKind {
    /// What `folder` is; `None` if it is none of these. A link is none of throng's files.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let has =
            |name: &str| folder.join(name).symlink_metadata().is_ok_and(|found| found.is_file());
        if has(MATRIX) && has(OPTIONS) {
            Some(Self::Matrix)
        } else if has(DATABASE) {
            Some(Self::Run)
        } else if has("summary.json") && has("report.html") {
            Some(Self::Report)
        } else {
            None
        }
    }

    /// What it is called.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Run | Self::Report => "run",
            Self::Matrix => "matrix or proof",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_what_its_files_say_and_links_say_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let mut kinds = vec![FolderKind::of(&folder)];
        for name in ["summary.json", "report.html", "run.db", "matrix.toml", "options.json"] {
            std::fs::write(folder.join(name), "").unwrap();
            kinds.push(FolderKind::of(&folder));
        }
        let (report, run) = (Some(FolderKind::Report), Some(FolderKind::Run));
        assert_eq!(kinds, [None, None, report, run, run, Some(FolderKind::Matrix)]);
        let linked = place.path().join("linked");
        std::fs::create_dir(&linked).unwrap();
        for name in ["run.db", "matrix.toml", "options.json"] {
            std::os::unix::fs::symlink(folder.join(name), linked.join(name)).unwrap();
        }
        assert_eq!(FolderKind::of(&linked), None);
        assert_eq!(FolderKind::of(&place.path().join("absent")), None);
    }
}
