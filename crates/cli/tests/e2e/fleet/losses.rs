//! What is lost, cut, doubled and out of order: each has its name, and a folder that can be read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Participants that were lost with their worker.
fn lost(run: &RunData) -> Vec<u32> {
    let is_lost = |row: &throng_observation::run::ParticipantRow| matches!(&row.outcome, Some(throng_observation::Outcome::Failed(why)) if why.reason == FailureReason::WorkerLost);
    run.participants.iter().filter(|row| is_lost(row)).map(|row| row.participant.0).collect()
}

/// A minute: twelve join 2.5 s apart, and the run of 50 s goes on until all are there again.
#[test]
fn others_play_the_participants_of_a_worker_that_is_lost() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&[], &[], &[]]);
    let (target, bus) = (fixture.stage.target(), fixture.nats.url());
    let view = ["view", &target, "-n", "12", "--every", "2500ms", "--for", "50s", "--plain"];
    let fleet = ["--fleet", &bus, "--workers", "3", "--on-loss", "reassign"];
    let mut running = Running::start(None, &[&view[..], &fleet].concat());
    running.when_playing(4);
    fixture.workers[2].child.kill().unwrap();
    let ran = running.wait();
    let run = rows(&ran);
    // Shares are dealt in turn: c has 2, 5, 8 and 11. Who had joined, or was to join before others
    // could play it, is lost.
    let lost = lost(&run);
    assert!(!lost.is_empty() && lost.iter().all(|number| number % 3 == 2), "{lost:?}\n{ran}");
    let anew: Vec<u32> = run
        .participants
        .iter()
        .map(|row| row.participant.0)
        .filter(|number| *number >= 12)
        .collect();
    assert_eq!(anew, lost.iter().map(|number| number + 12).collect::<Vec<_>>(), "{ran}");
    // All the others have their planned number, whoever plays them, and each number one row.
    let mut planned: Vec<u32> = run.participants.iter().map(|row| row.participant.0).collect();
    planned.sort_unstable();
    planned.retain(|number| *number < 12);
    assert_eq!(planned, (0..12).collect::<Vec<_>>(), "{ran}");
    assert_eq!(run.participants.iter().filter(|row| row.failure().is_some()).count(), 0, "{ran}");
    // In the end the crowd is whole again.
    let most = run.crowd.iter().filter(|row| row.second >= 40).map(|row| row.playing).max();
    assert_eq!(most, Some(12), "{ran}");
    // It was not the crowd that was asked for, and the report says what was done.
    assert_eq!(ran.code, Some(4), "{ran}");
    let reasons = ran.summary()["generator"]["reasons"].to_string();
    assert!(
        reasons.contains("c was lost")
            && reasons.contains("the participants of worker c were reassigned at ")
    );
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>(), "{ran}");
}

/// Half a minute: others play for a lost worker after 9 s, and stop 8 s after the coordinator.
#[test]
fn a_run_whose_coordinator_is_killed_after_a_reassignment_is_collected_by_it() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&["--once"], &["--once"]]);
    let bus = fixture.nats.url();
    let mut running = fixture.run("6", "90s", &["--on-loss", "reassign"]);
    running.when_playing(6);
    fixture.workers[1].child.kill().unwrap();
    // Until three have joined anew.
    let until = Instant::now() + Duration::from_secs(40);
    let are_there = |folder: &std::path::Path| {
        RunFolder::read(folder).is_ok_and(|run| {
            run.participants.iter().filter(|row| row.participant.0 >= 6).count() == 3
        })
    };
    while !are_there(&running.run_folder()) {
        assert!(Instant::now() < until, "nobody joined anew");
        std::thread::sleep(Duration::from_millis(200));
    }
    running.signal("KILL");
    let ran = running.wait();
    fixture.workers[0].ended_within(Duration::from_secs(25));
    let shown = ran.folder().display().to_string();
    let output = plain(&["run", "--resume", &shown, "--fleet", &bus]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("impossible row") && !said.contains("are missing"), "{said}");
    let run = rows(&ran);
    let mut numbers: Vec<u32> = run.participants.iter().map(|row| row.participant.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 7, 9, 11], "{said}");
    assert_eq!(lost(&run), [1, 3, 5], "{said}");
    assert_eq!(fixture.nats.streams(), 0, "{said}");
}

/// A way to the bus that can be cut without either side being told, as a cable is.
struct Cable {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    fn to(bus: &str) -> Self {
        let bus: SocketAddr = bus.trim_start_matches("nats://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if cut.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(bus) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cut = Arc::clone(&cut);
                    std::thread::spawn(move || carry(from, to, &cut));
                }
            }
        });
        Self { address, is_cut }
    }

    fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

/// Carries bytes until the end of the connection; swallows them once the cable is cut.
fn carry(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = [0; 65_536];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
        if !is_cut.load(Ordering::Relaxed) && to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Half a minute: a fleet starts, and its run takes 25 s; who is cut off stops after 8 s.
#[test]
fn a_worker_that_is_cut_off_is_told_and_stops_by_itself() {
    if !Nats::is_installed() {
        return;
    }
    let mut fixture = Fixture::of(&[&[]]);
    let cable = Cable::to(&fixture.nats.url());
    fixture.workers.push(Worker::start(&cable.url(), "b", &["--once"]));
    let mut running = fixture.run("4", "25s", &["--on-loss", "go-on"]);
    running.when_playing(4);
    cable.cut();
    let cut_at = Instant::now();
    fixture.workers[1].waits_until_it_says(
        "ended: nothing was heard from the coordinator for 8 s",
        Duration::from_secs(12),
    );
    assert!(cut_at.elapsed() < Duration::from_secs(12));
    let ran = running.wait();
    assert!(ran.stderr.contains("worker b is lost: nothing was heard from it for 4 s"), "{ran}");
    assert!(ran.stdout.contains("a worker of the fleet was lost"), "{ran}");
    assert_eq!(ran.code, Some(4), "{ran}");
    let run = rows(&ran);
    all_are_there(&run, 4);
    assert_eq!(lost(&run), [1, 3], "{ran}");
    assert_eq!(run.participants.iter().filter(|row| row.failure().is_some()).count(), 0, "{ran}");
}

/// Sends the rows of all workers to the bus again: each batch once more after the one that follows
/// it.
fn repeat_rows(bus: &str) -> Arc<AtomicBool> {
    let has_repeated = Arc::new(AtomicBool::new(false));
    let repeated = Arc::clone(&has_repeated);
    let mut bus = TcpStream::connect(bus.trim_start_matches("nats://")).unwrap();
    // Without `echo` it would hear itself.
    bus.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"echo\":false}\r\nSUB throng.run.*.rows.* 1\r\n")
        .unwrap();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(bus.try_clone().unwrap());
        let mut earlier: Option<Vec<u8>> = None;
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["PING"] => bus.write_all(b"PONG\r\n").unwrap(),
                ["HMSG", subject, _, .., head, all] => {
                    let (head, all): (usize, usize) = (head.parse().unwrap(), all.parse().unwrap());
                    let mut bytes = vec![0; all + 2];
                    lines.read_exact(&mut bytes).unwrap();
                    let again = without_id(subject, &bytes[..head], &bytes[head..all]);
                    if let Some(earlier) = earlier.replace(again) {
                        bus.write_all(&earlier).unwrap();
                        repeated.store(true, Ordering::Relaxed);
                    }
                }
                _ => {}
            }
            line.clear();
        }
    });
    has_repeated
}

/// The same message without the header by which the bus knows that it has it.
fn without_id(subject: &str, head: &[u8], body: &[u8]) -> Vec<u8> {
    let head = String::from_utf8_lossy(head);
    let kept: Vec<&str> =
        head.trim_end().lines().filter(|line| !line.starts_with("Nats-Msg-Id")).collect();
    let head = format!("{}\r\n\r\n", kept.join("\r\n"));
    let all = head.len() + body.len();
    let mut message = format!("HPUB {subject} {} {all}\r\n{head}", head.len()).into_bytes();
    message.extend(body);
    message.extend(b"\r\n");
    message
}

#[test]
fn rows_that_come_twice_and_out_of_order_count_once() {
    if !Nats::is_installed() {
        return;
    }
    let fixture = Fixture::of(&[&[], &[]]);
    let has_repeated = repeat_rows(&fixture.nats.url());
    let ran = fixture.run("4", "8s", &[]).wait().expect_code(0);
    assert!(has_repeated.load(Ordering::Relaxed), "nothing was repeated");
    let run = rows(&ran);
    all_are_there(&run, 4);
    let seconds: Vec<i64> = run.crowd.iter().map(|row| row.second).collect();
    assert_eq!(seconds, (0..seconds.len() as i64).collect::<Vec<_>>(), "{ran}");
    assert_eq!(run.crowd.iter().map(|row| row.intended).max(), Some(4), "{ran}");
    assert_eq!(
        run.events.iter().filter(|event| event.kind.starts_with("worker_")).count(),
        0,
        "{ran}"
    );
}
