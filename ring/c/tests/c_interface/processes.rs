//! The C examples, compiled with cc against the static library, in separate processes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use throng_ring::{Consumer, Event, Flags, RingOptions};

const FRAMES: u64 = 200;
const BYTES: usize = 40_000;

/// Compiles an example with the command in its first lines, with warnings as errors.
fn compile(name: &str, into: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = into.join(name);
    // Cargo puts the library next to the tests.
    let library = std::env::current_exe().unwrap().with_file_name("libthrong_ring_c.a");
    let output = Command::new("cc")
        .args([
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-I",
        ])
        .arg(root.join("include"))
        .arg(root.join("examples").join(name).with_extension("c"))
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("cc is installed (scripts/setup.sh build)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn expected(frame: u64) -> Vec<u8> {
    (0..BYTES as u64).map(|i| ((31 * frame + i) % 251) as u8).collect()
}

/// Reads to the lane's end and compares every byte.
fn read_all(consumer: &mut Consumer) {
    let mut next = 0;
    loop {
        assert!(
            consumer.wait(Duration::from_secs(60)).unwrap(),
            "nothing came for a minute, after frame {next}"
        );
        while let Some(frame) = consumer.peek() {
            assert_eq!((frame.sequence, frame.info.user_data, frame.info.stream), (next, next, 7));
            assert_eq!(frame.info.timestamp_ns, next * 1_000_000_000 / 30);
            assert_eq!(frame.info.flags.contains(Flags::KEYFRAME), next % 30 == 0);
            assert!(
                consumer.payload(frame.id).unwrap().to_vec() == expected(next),
                "bytes of frame {next}"
            );
            consumer.release(frame.id).unwrap();
            next += 1;
        }
        while let Some(event) = consumer.next_event() {
            match event {
                Event::ProducerLeft { clean, .. } => {
                    assert!(clean, "the producer freed its handle");
                }
                Event::LaneEnded { stats, .. } => {
                    assert_eq!((next, stats.delivered_frames), (FRAMES, FRAMES));
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn ends_well(mut child: Child) {
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_c_producer_that_inherits_the_ring_is_read_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut consumer = Consumer::new().unwrap();
    let (_, invitation) = consumer.add_lane(&RingOptions::for_frames(BYTES, 4)).unwrap();
    let mut command = Command::new(compile("producer", folder.path()));
    command.args([FRAMES.to_string(), BYTES.to_string()]);
    invitation.give_to(&mut command);
    let child = command.spawn().unwrap();
    drop(command);
    read_all(&mut consumer);
    ends_well(child);
}

#[test]
fn a_c_producer_that_connects_is_sent_the_ring_and_read_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let child = Command::new(compile("producer", folder.path()))
        .args([FRAMES.to_string(), BYTES.to_string()])
        .arg(&path)
        .spawn()
        .unwrap();
    let (socket, _) = listener.accept().unwrap();
    let mut consumer = Consumer::new().unwrap();
    consumer.accept(socket, &RingOptions::for_frames(BYTES, 4)).unwrap();
    read_all(&mut consumer);
    ends_well(child);
}

#[test]
fn a_c_consumer_reads_a_c_producer_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut consumer = Command::new(compile("consumer", folder.path()))
        .arg(&path)
        .arg(BYTES.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(consumer.stdout.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    assert_eq!(first, "listening\n");
    let producer = Command::new(compile("producer", folder.path()))
        .args([FRAMES.to_string(), BYTES.to_string()])
        .arg(&path)
        .spawn()
        .unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    let mut lines: Vec<String> = (0..FRAMES)
        .map(|n| {
            let sum: u64 = expected(n).into_iter().map(u64::from).sum();
            format!("frame {n} of stream 7: {BYTES} bytes, sum {sum}")
        })
        .collect();
    lines.push(format!("ended: {FRAMES} delivered, 0 dropped"));
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    ends_well(producer);
    ends_well(consumer);
}

#[test]
fn a_producer_without_a_consumer_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(compile("producer", folder.path()))
        .args(["1", "1"])
        .env_remove("THRONG_RING_FD")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("joining: THRONG_RING_FD is not set"), "{text}");
}
