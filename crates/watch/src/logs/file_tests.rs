use super::*;
use std::fs;
use std::io::Write;

struct Log {
    folder: tempfile::TempDir,
    tail: FileTail,
}

impl Log {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tail = FileTail::new(folder.path().join("log"));
        Self { folder, tail }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn append(&self, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn read(&mut self) -> (String, Progress) {
        let mut got = Vec::new();
        let progress = self.tail.read(|piece| match piece {
            Chunk::Bytes(bytes) => got.extend_from_slice(bytes),
            Chunk::Gap => got.push(b'|'),
        });
        (String::from_utf8(got).unwrap(), progress)
    }
}

#[test]
fn only_what_is_written_during_the_run_is_read() {
    let mut log = Log::new();
    log.append("before\n");
    assert_eq!(log.read(), (String::new(), Progress::default()));
    log.append("during\n");
    assert_eq!(log.read().0, "during\n");
    assert_eq!(log.read().0, "");
}

#[test]
fn a_file_that_comes_late_is_read_from_its_beginning() {
    let mut log = Log::new();
    let (_, progress) = log.read();
    assert!(progress.trouble.unwrap().contains("does not exist yet"));
    assert_eq!(log.read().1.trouble, None, "the same trouble is said once");
    log.append("first\n");
    let (text, progress) = log.read();
    assert_eq!((text.as_str(), progress.recovered), ("first\n", true));
}

#[test]
fn a_renamed_file_is_read_to_its_end_and_then_the_new_one() {
    let mut log = Log::new();
    log.append("");
    log.read();
    log.append("one\n");
    fs::rename(log.path(), log.folder.path().join("log.1")).unwrap();
    assert!(log.read().1.trouble.is_some(), "the new one is not there yet");
    let mut old =
        fs::OpenOptions::new().append(true).open(log.folder.path().join("log.1")).unwrap();
    old.write_all(b"two\n").unwrap();
    log.append("three\n");
    let (text, progress) = log.read();
    assert_eq!(text, "two\n|three\n");
    assert!(progress.ended && progress.recovered);
    log.append("four\n");
    assert_eq!(log.read().0, "four\n");
}

#[test]
fn a_file_cut_in_place_is_read_from_its_beginning() {
    let mut log = Log::new();
    log.append("");
    log.read();
    log.append("a long first line\n");
    log.read();
    fs::File::create(log.path()).unwrap();
    log.append("new\n");
    let (text, progress) = log.read();
    assert_eq!((text.as_str(), progress.ended), ("|new\n", true));
}

#[test]
fn a_burst_is_read_in_parts_of_a_bounded_size() {
    let mut log = Log::new();
    log.append("");
    log.read();
    let burst = "x".repeat(READ_BYTES_MAX + 1_000);
    log.append(&burst);
    assert_eq!(log.read().0.len(), READ_BYTES_MAX);
    assert_eq!(log.read().0.len(), 1_000);
}

#[test]
fn a_file_far_ahead_is_followed_from_near_its_end_and_what_is_skipped_is_counted() {
    let mut log = Log::new();
    log.append("");
    log.read();
    let ahead = BEHIND_BYTES_MAX + 10;
    fs::OpenOptions::new().write(true).open(log.path()).unwrap().set_len(ahead).unwrap();
    let (text, progress) = log.read();
    assert_eq!((text.len(), text.starts_with('|')), (READ_BYTES_MAX + 1, true));
    assert_eq!(progress.skipped_bytes, ahead - READ_BYTES_MAX as u64);
}

#[test]
fn what_is_no_file_is_refused_and_does_not_block() {
    for make in ["folder", "pipe"] {
        let mut log = Log::new();
        match make {
            "folder" => fs::create_dir(log.path()).unwrap(),
            _ => rustix::fs::mkfifoat(rustix::fs::CWD, log.path(), rustix::fs::Mode::RWXU).unwrap(),
        }
        assert!(log.read().1.trouble.unwrap().contains("not a regular file"), "{make}");
    }
}
