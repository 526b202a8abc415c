//! Byte streams and processes, without a server.

use throng_protocol::participant::TOLD;
use throng_scenario::Secret;

use super::*;

fn events() -> (EventSender, mpsc::Receiver<SlotEvent>) {
    let (inbox, events) = mpsc::channel(64);
    (EventSender { inbox, slot: 0 }, events)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

const CHANNEL: Channel = Channel(0);

#[test]
fn a_write_that_waits_for_the_peer_is_reported_with_its_time() {
    runtime().block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(1_000);
        let (sender, outgoing) = send_queue();
        let (events, mut received) = events();
        let carried = tokio::spawn(async move {
            carry_bytes(tokio::io::split(ours), CHANNEL, outgoing, &events).await
        });
        sender.push(Outgoing::Bytes(vec![1; 500])).unwrap();
        sender.push(Outgoing::Bytes(vec![2; 2_000])).unwrap();
        tokio::time::sleep(Duration::from_millis(120)).await;
        let mut read = vec![0; 2_500];
        theirs.read_exact(&mut read).await.unwrap();
        let event = received.recv().await.unwrap().what;
        let SignallingEvent::Blocked(CHANNEL, waited) = event else { panic!("{event:?}") };
        assert!(
            (Duration::from_millis(100)..Duration::from_secs(5)).contains(&waited),
            "{waited:?}"
        );
        drop(sender);
        assert_eq!(carried.await.unwrap(), Ok(()));
        assert!(received.recv().await.is_none(), "the first write did not wait");
    });
}

#[test]
fn a_process_is_a_stream_and_its_last_words_are_the_reason_of_its_end() {
    let run = |script: &'static str, input: Option<Vec<u8>>| {
        runtime().block_on(async move {
            let (sender, outgoing) = send_queue();
            let (events, mut received) = events();
            let is_closed = input.is_some();
            input.into_iter().for_each(|input| sender.push(Outgoing::Bytes(input)).unwrap());
            let keeps = (!is_closed).then_some(sender);
            let arguments = vec!["-c".into(), script.into(), "sh".into(), TOLD.into()];
            let told = Some(Secret::new("rtmp_playpath=hunter2\n"));
            let open = Open::Process { program: "sh", arguments, told, chosen: None };
            let mut process = match &open {
                Open::Process { program, arguments, told, .. } => {
                    Process::start(program, arguments, told.as_ref()).unwrap()
                }
                _ => unreachable!(),
            };
            let carried = carry_bytes(process.pipes().unwrap(), CHANNEL, outgoing, &events).await;
            let end = process.end(carried, GOODBYE).await;
            drop((events, keeps));
            let mut said = Vec::new();
            while let Some(event) = received.recv().await {
                if let SignallingEvent::Bytes(_, bytes) = event.what {
                    said.extend(bytes);
                }
            }
            (end, String::from_utf8(said).unwrap())
        })
    };
    let (end, said) = run("echo up; echo 'no such host' >&2; exit 3", None);
    let why = "sh ended (exit status: 3): no such host";
    assert_eq!((end, said.as_str()), (Err(ChannelError::Process(why.into())), "up\n"));
    assert_eq!(run("cat >/dev/null", Some(vec![7; 100_000])).0, Ok(()), "closed by throng");
    // It has it from a file that is in no argument, and says no word of it that is kept.
    let told = "tr '\\0' ' ' </proc/$$/cmdline; cat \"$1\" >&2; exit 1";
    let (end, said) = run(told, None);
    let Err(ChannelError::Process(why)) = end else { panic!("{end:?}") };
    assert!(why.contains("rtmp_playpath=\u{2026}") && !said.contains("hunter2"), "{why}; {said}");
    let key = "echo rtmp://127.0.0.1:1/live/k: refused, no hunter2 >&2; exit 1";
    let (end, _) = run(key, None);
    let Err(ChannelError::Process(why)) = end else { panic!("{end:?}") };
    assert!(why.contains("refused") && !why.contains("hunter2"), "{why}");
    let missing = Process::start("no-such-program-at-all", &[], None).err().unwrap();
    assert!(matches!(missing, ChannelError::Generator(_)), "{missing}");
}
