//! The cost to an agent of a run that does not read.

use throng_observation::host::{HostEvent, HostEventKind};

use super::*;
use crate::remote::wire::RESPONSE_BYTES_MAX;

/// A session with rows from the test, over a connection with a limited buffer that is never read.
async fn session(takes: usize) -> (Session, RowSender, tokio::io::DuplexStream) {
    let (ours, mut theirs) = tokio::io::duplex(takes);
    let mut hello = Vec::new();
    write_message(
        &mut hello,
        &crate::remote::wire::Request::Hello { version: VERSION, token: "t".into() },
    )
    .unwrap();
    theirs.write_all(&hello).await.unwrap();
    let mut session =
        Session::hello(Box::new(ours), "t").await.unwrap().map_err(|(_, why)| why).unwrap();
    let (sender, receiver) = rows(ROWS_WAITING_MAX);
    // The monitoring itself writes to another queue.
    let (elsewhere, _) = rows(1);
    let config = WatchConfig {
        period: Duration::from_secs(60),
        fast_period: None,
        ..WatchConfig::default()
    };
    let watching =
        LocalHost::open(config).unwrap().begin(HostId(0), Instant::now(), elsewhere).unwrap();
    let (_, started) = mpsc::channel();
    let sources = ServerSources { started, watch: None, packs: None, info: None };
    session.rows = Some(RowStream { watching, sender: sender.clone(), receiver, sources });
    (session, sender, theirs)
}

#[tokio::test]
async fn a_profile_that_cannot_be_taken_has_a_message_of_its_own() {
    let (mut session, _sender, _theirs) = session(1_024).await;
    session.rows = None;
    session.profile("steady".into(), Duration::ZERO).unwrap();
    let mut frames = FrameReader::new(RESPONSE_BYTES_MAX);
    let said: Frame<Response> = frames.next(&mut session.out.as_slice()).await.unwrap();
    assert_eq!(
        said,
        Frame::Message(Response::NoProfile { why: "the run takes no rows yet".into() })
    );
}

#[tokio::test]
async fn a_run_that_does_not_read_costs_one_full_queue_and_one_write() {
    let (mut session, sender, _theirs) = session(1_024).await;
    let event = |number: usize| {
        let (host, at, kind) = (HostId(0), RunTime(0), HostEventKind::LogLine);
        HostRow::Event(HostEvent::new(host, at, kind, format!("{number:0300}")))
    };
    let sample = HostRow::Sample(HostSample {
        series: throng_observation::host::SeriesId(1),
        at: RunTime(0),
        value: 1.0,
    });
    let mut sent = 0;
    {
        let mut writing = Box::pin(session.send_rows());
        for _ in 0..5 {
            for number in 0..ROWS_WAITING_MAX {
                sender.send(if number % 2 == 0 { sample.clone() } else { event(number) });
                sent += 1;
            }
            let written = tokio::time::timeout(Duration::from_millis(5), &mut writing).await;
            assert!(written.is_err(), "there is no reader, so that the write waits");
        }
    }
    // One event may come when a write is almost full.
    assert!(session.out.capacity() <= 2 * WRITE_BYTES, "{} bytes", session.out.capacity());
    let waiting = session.rows.as_ref().unwrap().receiver.try_iter().count();
    assert!(waiting <= ROWS_WAITING_MAX);
    let taken = sent - waiting as u64 - sender.dropped();
    assert!(
        taken < ROWS_WAITING_MAX as u64,
        "{taken} rows were taken out of the queue without a reader"
    );
    // Dropped rows are counted, and a row is small: some megabytes in all.
    assert!(sender.dropped() > 3 * ROWS_WAITING_MAX as u64, "{}", sender.dropped());
    assert!(ROWS_WAITING_MAX * (size_of::<HostRow>() + 300) < 8 << 20);
}
