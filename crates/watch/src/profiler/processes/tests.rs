use super::*;
use maps::Backing;

/// Tracks a process that the test makes up, which `/proc` does not list.
fn following(pid: u32) -> TrackedProcesses {
    let mut tracked = TrackedProcesses::new(true);
    let name: Arc<str> = Arc::from("server");
    tracked.insert(pid, 1, Memory::default(), HashMap::from([(pid, name)]));
    tracked
}

fn ids(pid: u32, tid: u32) -> Ids {
    Ids { pid, tid }
}

fn anonymous(start: u64) -> Mmap {
    Mmap { start, end: start + 0x1000, offset: 0, inode: 0, path: b"//anon".to_vec() }
}

/// PIDs above those of the kernel (`PID_MAX_LIMIT` is 2^22).
const PID: u32 = 5_000_000;

#[test]
fn children_and_threads_start_with_the_names_of_their_parents() {
    let mut tracked = following(PID);
    tracked.note(&Event::Mmap(ids(PID, PID), anonymous(0x1000)));
    tracked.note(&Event::Fork { parent: ids(PID, PID), child: ids(PID, PID + 1) });
    tracked.note(&Event::Name { ids: ids(PID, PID + 1), name: "ice".into(), exec: false });
    tracked.note(&Event::Fork { parent: ids(PID, PID + 1), child: ids(PID + 9, PID + 9) });
    assert_eq!(&*tracked.thread_name(ids(PID, PID)), "server");
    assert_eq!(&*tracked.thread_name(ids(PID, PID + 1)), "ice");
    assert_eq!(&*tracked.thread_name(ids(PID + 9, PID + 9)), "ice");
    assert!(tracked.process(PID + 9).unwrap().0.memory.at(0x1000).is_some());
}

#[test]
fn a_new_program_has_none_of_the_old_ones_memory() {
    let mut tracked = following(PID);
    tracked.note(&Event::Mmap(ids(PID, PID), anonymous(0x1000)));
    let serial = tracked.process(PID).unwrap().0.serial;
    tracked.note(&Event::Name { ids: ids(PID, PID), name: "ffmpeg".into(), exec: true });
    let (process, _) = tracked.process(PID).unwrap();
    assert!(process.memory.at(0x1000).is_none());
    assert_ne!(process.serial, serial, "its anonymous code is another's");
    assert_eq!(&*tracked.thread_name(ids(PID, PID)), "ffmpeg");
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let mut tracked = following(PID);
    tracked.note(&Event::Fork { parent: ids(PID, PID), child: ids(PID, PID + 1) });
    tracked.note(&Event::Exit(ids(PID, PID)));
    assert!(tracked.process(PID).is_some());
    tracked.note(&Event::Exit(ids(PID, PID + 1)));
    assert!(tracked.process(PID).is_none());
}

#[test]
fn unrelated_processes_are_not_tracked() {
    let mut tracked = following(PID);
    let stranger = ids(PID + 50, PID + 50);
    tracked.note(&Event::Fork { parent: stranger, child: ids(PID + 51, PID + 51) });
    tracked.note(&Event::Mmap(stranger, anonymous(0x1000)));
    tracked.note(&Event::Name { ids: stranger, name: "x".into(), exec: true });
    tracked.note(&Event::Exit(stranger));
    assert!(tracked.process(PID + 50).is_none() && tracked.process(PID + 51).is_none());
    assert_eq!(tracked.living().count(), 1);
}

#[test]
fn a_flood_of_children_is_bounded_and_reported() {
    let mut tracked = following(PID);
    for child in 1..PROCESSES_MAX as u32 + 10 {
        tracked.note(&Event::Fork { parent: ids(PID, PID), child: ids(PID + child, PID + child) });
    }
    assert_eq!(tracked.living().count(), PROCESSES_MAX);
    assert_eq!(tracked.refused, 10);
}

#[test]
fn this_process_is_read_with_its_files() {
    let me = std::process::id();
    let mut tracked = TrackedProcesses::new(false);
    tracked.add(me);
    let here = this_process_is_read_with_its_files as fn() as usize as u64;
    let (process, images) = tracked.process(me).unwrap();
    let (_, mapping) = process.memory.at(here).expect("this function is code of this process");
    let Backing::Image(image) = mapping.backing else { panic!("it comes from a file") };
    assert!(images.get(image).unwrap().layout().is_some());
    assert!(process.memory.at(0).is_none());
}
