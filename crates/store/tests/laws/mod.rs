//! What must hold of a run's database whatever is in it.

use throng_store::RunFolder;

/// The longest reason why a file is no run, bytes.
const WHY_BYTES_MAX: usize = 4_000;

/// A file in the place of `run.db` is read or refused; a refusal is a sentence.
pub(crate) fn run_db(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("run.db"), bytes).expect("a file");
    let whys = [
        RunFolder::read(path).err(),
        RunFolder::outline(path).err(),
        RunFolder::decoded(path).err(),
        RunFolder::http_requests(path).err(),
    ];
    for why in whys.into_iter().flatten() {
        assert!(why.to_string().len() <= WHY_BYTES_MAX, "{} bytes", why.to_string().len());
    }
}
