use crate::spool::BatchKind;

use super::*;

fn folder(bytes_max: usize) -> (tempfile::TempDir, SpoolFolder) {
    let folder = tempfile::tempdir().unwrap();
    let spools = SpoolFolder::open(&folder.path().join("spool"), bytes_max).unwrap();
    (folder, spools)
}

fn batch(number: u64, bytes: usize) -> Batch {
    Batch { number, kind: BatchKind::Second, bytes: vec![number as u8; bytes] }
}

fn numbers(left: &LeftSpool) -> Vec<u64> {
    left.found.batches.iter().map(|batch| batch.number).collect()
}

/// What earlier processes left, and what is wrong with other files.
fn left(spools: &SpoolFolder) -> (Vec<LeftSpool>, Vec<String>) {
    let (mut left, mut wrong) = (Vec::new(), Vec::new());
    for path in spools.files() {
        match SpoolFolder::left_in(&path) {
            Ok(spool) => left.extend(spool),
            Err(why) => wrong.push(why),
        }
    }
    (left, wrong)
}

#[test]
fn what_a_process_left_is_found_once_it_is_gone_and_not_before() {
    let (_folder, spools) = folder(1 << 20);
    let mut kept = spools.begin("0a", 3).unwrap();
    kept.take(0, &[batch(0, 10), batch(1, 10)]).unwrap();
    kept.take(1, &[batch(2, 10)]).unwrap();
    assert!(left(&spools).0.is_empty(), "it is in use");
    kept.end(b"its end").unwrap();
    drop(kept);
    let (found, wrong) = left(&spools);
    assert!(wrong.is_empty());
    assert_eq!((found[0].run.as_str(), found[0].worker, numbers(&found[0])), ("0a", 3, vec![1, 2]));
    assert_eq!(found[0].found.end.as_deref(), Some(&b"its end"[..]));
    assert!(left(&spools).0.is_empty(), "somebody hands it in");
    for spool in found {
        spool.remove().unwrap();
    }
    assert!(left(&spools).0.is_empty());
}

#[test]
fn nothing_is_written_while_the_bus_stores_at_once_and_the_file_begins_again_when_it_has_caught_up()
{
    let (_folder, spools) = folder(1 << 20);
    let mut kept = spools.begin("0a", 0).unwrap();
    let empty = kept.file.length();
    (0..100).for_each(|first| kept.take(first, &[]).unwrap());
    assert_eq!(kept.file.length(), empty);
    let batches: Vec<Batch> = (99..120).map(|number| batch(number, 20_000)).collect();
    kept.take(99, &batches).unwrap();
    assert!(kept.file.length() > SHRUNK_FROM && kept.next() == 120);
    kept.take(120, &[]).unwrap();
    assert_eq!((kept.file.length(), kept.next()), (empty, 120));
}

#[test]
fn files_and_their_folder_have_a_bound() {
    let (_folder, spools) = folder(1_000);
    let mut kept = spools.begin("0a", 0).unwrap();
    let batches: Vec<Batch> = (0..20).map(|number| batch(number, 100)).collect();
    assert!(matches!(kept.take(0, &batches), Err(SpoolError::FileFull { .. })));
    let written = kept.next();
    assert!((5..10).contains(&written) && kept.file.length() <= 1_100);
    assert_eq!(kept.batches(), written, "these are not lost, although others had no room");
    // The rest is written once there is room.
    kept.take(20, &[]).unwrap();
    drop(kept);
    for worker in 1..9 {
        match spools.begin("0a", worker) {
            Ok(mut kept) => drop(kept.take(0, &batches)),
            Err(error) => {
                assert!(
                    worker > 2 && matches!(error, SpoolError::FolderFull { .. }),
                    "{worker}: {error}"
                );
                return;
            }
        }
    }
    panic!("the folder has no bound");
}

#[test]
fn damaged_and_foreign_files_are_named_and_left_alone() {
    let (_folder, spools) = folder(8 << 20);
    let mut kept = spools.begin("0a", 0).unwrap();
    kept.take(0, &[batch(0, 10), batch(1, 2 << 20), batch(2, 10)]).unwrap();
    let path = kept.path().to_owned();
    drop(kept);
    let mut bytes = fs::read(&path).unwrap();
    bytes[200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let foreign = spools.path().join("0b-1.spool");
    fs::write(&foreign, [b'x'; 500]).unwrap();
    fs::write(spools.path().join("notes.txt"), "mine").unwrap();
    let (found, wrong) = left(&spools);
    assert_eq!((found.len(), numbers(&found[0])), (1, vec![0]));
    let damage = found[0].damage().unwrap();
    assert!(
        damage.contains("0a-0.spool is damaged") && damage.contains("after 1 batches"),
        "{damage}"
    );
    assert!(
        wrong.len() == 1 && wrong[0].contains("0b-1.spool is left alone: the file is not"),
        "{wrong:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::read(&foreign).unwrap(), [b'x'; 500]);
}

#[test]
fn a_small_file_with_a_changed_byte_is_damaged_and_one_that_ends_within_a_frame_is_not() {
    let (_folder, spools) = folder(1 << 20);
    let mut kept = spools.begin("0a", 0).unwrap();
    kept.take(0, &[batch(0, 10), batch(1, 100), batch(2, 10)]).unwrap();
    let path = kept.path().to_owned();
    drop(kept);
    let bytes = fs::read(&path).unwrap();
    let damage = || left(&spools).0[0].damage();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(damage(), None);
    let mut changed = bytes;
    changed[100] ^= 1;
    fs::write(&path, &changed).unwrap();
    assert!(damage().is_some_and(|damage| damage.contains("after 1 batches")));
}

#[test]
fn a_file_that_could_not_begin_again_begins_before_anything_is_written_to_it() {
    let (_folder, spools) = folder(1 << 20);
    let mut kept = spools.begin("0a", 0).unwrap();
    kept.take(0, &[batch(0, 10)]).unwrap();
    let path = kept.path().to_owned();
    let options = || OpenOptions::new().read(true).write(true).truncate(true).open(&path);
    kept.file = SpoolFile::without_begin(options().unwrap());
    kept.take(1, &[batch(1, 10)]).unwrap();
    drop(kept);
    let (found, wrong) = left(&spools);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((numbers(&found[0]), found[0].found.next), (vec![1], 2));
}

#[test]
fn a_disk_that_was_full_has_room_again_when_as_much_can_be_written() {
    let (_folder, spools) = folder(1 << 20);
    let mut kept = spools.begin("0a", 0).unwrap();
    let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    kept.take(0, &[batch(0, 10)]).unwrap();
    // Writes to this device find no space.
    let there = std::mem::replace(&mut kept.file, SpoolFile::without_begin(full));
    assert!(kept.take(0, &[batch(1, 500)]).is_err());
    // The bus stores everything: nothing has to be written, and still there is no room.
    assert!(kept.take(2, &[]).is_err() && kept.take(3, &[]).is_err());
    kept.file = there;
    let before = kept.file.length();
    kept.take(4, &[]).unwrap();
    assert!(kept.file.length() > before + 500 && kept.batches() == 0);
    // Once is enough.
    let after = kept.file.length();
    kept.take(5, &[]).unwrap();
    assert_eq!(kept.file.length(), after);
    kept.take(5, &[batch(5, 10)]).unwrap();
    drop(kept);
    let (found, wrong) = left(&spools);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((numbers(&found[0]), found[0].damage()), (vec![5], None));
}

#[test]
fn only_files_that_no_bus_wants_are_removed_unread() {
    let (_folder, spools) = folder(1 << 20);
    for run in ["0a", "0b"] {
        drop(spools.begin(run, 0).unwrap());
    }
    let [old, _] = spools.files().try_into().unwrap();
    let long_ago = std::time::SystemTime::now() - KEPT_FOR - Duration::from_secs(1);
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    spools.remove_old();
    assert_eq!(left(&spools).0.iter().map(|spool| spool.run.as_str()).collect::<Vec<_>>(), ["0b"]);
}

/// A test that waits for a writer does not end.
#[test]
fn a_link_or_a_pipe_is_no_spool_and_is_left_alone() {
    let (folder, spools) = folder(1 << 20);
    let elsewhere = folder.path().join("0a-0.spool");
    let (link, pipe) = (spools.path().join("0a-0.spool"), spools.path().join("0b-0.spool"));
    drop(spools.begin("0a", 0).unwrap());
    fs::rename(&link, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (found, wrong) = left(&spools);
    assert!(found.is_empty(), "{found:?}");
    assert!(wrong[0].ends_with("is a link, which is not followed"), "{wrong:?}");
    assert!(wrong[1].ends_with("is no ordinary file"), "{wrong:?}");
    assert!(link.is_symlink() && pipe.exists() && elsewhere.exists());
}
