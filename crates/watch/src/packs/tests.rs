use super::*;
use crate::logs::Patterns;
use crate::logs::access::UriGroups;
use crate::scrape::Filter;
use throng_observation::pack::packs_of_process;

fn pack(name: &str) -> Pack {
    built_in().into_iter().find(|pack| pack.pack == name).unwrap()
}

#[test]
fn every_pack_that_comes_along_is_valid_and_called_as_its_file() {
    for (name, text) in BUILT_IN {
        let pack = parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(pack.pack, *name);
        assert!(!pack.title.is_empty() && !pack.source.is_empty(), "{name}");
        Patterns::new(&pack.logs).unwrap();
        UriGroups::new(&pack.uri_groups).unwrap();
        assert!(!pack.processes.is_empty(), "{name} is never chosen");
    }
    assert_eq!(built_in().len(), BUILT_IN.len());
}

#[test]
fn all_packs_of_any_process_can_be_used_together() {
    let packs = built_in();
    for pack in &packs {
        for process in &pack.processes {
            let chosen: Vec<_> = packs_of_process(&packs, process).collect();
            Patterns::new(chosen.iter().flat_map(|pack| &pack.logs)).unwrap();
            UriGroups::new(chosen.iter().flat_map(|pack| &pack.uri_groups)).unwrap();
            assert_eq!(chosen.last().unwrap().pack, "generic");
        }
    }
}

#[test]
fn texts_for_people_are_sentences_without_a_full_stop() {
    let ends_bare = |text: &str, place: &str| {
        assert!(
            !text.is_empty() && !text.ends_with('.') && !text.ends_with(' '),
            "{place}: {text}"
        );
    };
    for pack in built_in() {
        let name = &pack.pack;
        for thread in &pack.threads {
            ends_bare(&thread.meaning, name);
            assert!(!thread.group.is_empty(), "{name}: {}", thread.name);
        }
        pack.logs.iter().for_each(|log| ends_bare(&log.meaning, name));
        pack.uri_groups.iter().for_each(|rule| ends_bare(&rule.meaning, name));
        pack.endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.series)
            .for_each(|s| ends_bare(&s.meaning, name));
    }
}

/// The table of the vendor's tuning guide: each thread name maps to its setting.
#[test]
fn the_threads_of_oven_media_engine_lead_to_their_settings() {
    let pack = pack("ovenmediaengine");
    let cases = [
        ("StreamWorker", "StreamWorkerCount"),
        ("SW-WebRTC", "StreamWorkerCount"),
        ("AW-LLHLSPublish", "AppWorkerCount"),
        ("SPICE-U10000", "IceWorkerCount"),
        ("SPICE-u10000", "IceWorkerCount"),
        ("SPICE-T3478", "TcpRelayWorkerCount"),
        ("SPICE-t3478", "TcpRelayWorkerCount"),
        ("InboundWorker", "AppWorkerCount"),
        ("OutboundWorker", "AppWorkerCount"),
        ("dec_H264_t0", "ThreadCount"),
        ("DEC-h264-t0", "ThreadCount"),
        ("enc_OPUS_t3", "ThreadCount"),
        ("ENC-libopus-t3", "ThreadCount"),
        ("SPRtcSignalling", "WorkerCount"),
        ("SPSegPub", "WorkerCount"),
        ("SPRTMP-1935", "WorkerCount"),
        ("SPMPEGTS", "WorkerCount"),
        ("SPOvtPub", "WorkerCount"),
        ("SPSRT", "WorkerCount"),
        ("SPAPISvr-8081", "WorkerCount"),
    ];
    for (thread, setting) in cases {
        let meaning =
            pack.thread_meaning(thread).unwrap_or_else(|| panic!("{thread} is not known"));
        let found = meaning.setting.as_ref().unwrap();
        assert_eq!((found.name.as_str(), found.unit.as_str()), (setting, "thread"), "{thread}");
    }
    let place =
        |thread| pack.thread_meaning(thread).unwrap().setting.as_ref().unwrap().place.clone();
    assert!(
        place("SPRTMP-1935").contains("RTMP") && place("SPRtcSignalling").contains("Signalling")
    );
    assert!(place("dec_H264_t0").contains("Decodes") && place("enc_H264_t1").contains("Encodes"));
    for thread in ["FLT-Video-t1", "SRT:RcvQ:w1"] {
        let meaning = pack.thread_meaning(thread).unwrap();
        assert!(
            meaning.setting.is_none() && meaning.remedy.is_some(),
            "no setting makes more of {thread}"
        );
    }
}

#[test]
fn the_threads_of_oven_media_engine_that_do_little_are_known_too() {
    let pack = pack("ovenmediaengine");
    for (thread, group) in [
        ("PTimer-RTMP", "push timers"),
        ("DQHTTPTimer", "delayed tasks"),
        ("SRT:GC", "SRT library"),
        ("SRT:SndQ:w1", "SRT library"),
        ("SPAPISvr-8081", "REST API sockets"),
    ] {
        assert_eq!(
            pack.thread_meaning(thread).map(|meaning| meaning.group.as_str()),
            Some(group),
            "{thread}"
        );
    }
}

/// Only what is kept of an endpoint can show that a source stopped.
#[test]
fn what_servers_count_of_their_sources_is_kept_as_rates() {
    for (name, metric) in [
        ("mediamtx", "paths_inbound_bytes"),
        ("mediamtx", "paths_bytes_received"),
        ("srs", "srs_receive_bytes_total"),
        ("ovenmediaengine", "ome_received_bytes_total"),
    ] {
        let known = pack(name);
        let filter = Filter::of_pack(&known.endpoints[0]);
        assert!(known.is_ingest(metric) && filter.keeps(metric), "{metric}");
        assert!(filter.counts(metric) || metric.ends_with("_total"), "{metric}");
    }
    assert!(!pack("mediamtx").is_ingest("paths_outbound_bytes"));
    let without_name = format!(
        "{GOOD}[[endpoint]]\nkind = \"open_metrics\"\nurl = \"http://127.0.0.1:1/\"\nswitch_on = \"\"\ningest = [\"\"]"
    );
    let error = parse("mine.toml", &without_name).unwrap_err().to_string();
    assert!(error.contains("line 8, column 11: empty"), "{error}");
}

#[test]
fn packs_are_chosen_by_process() {
    let packs = built_in();
    let cases = [
        ("janus", "janus"),
        ("nginx", "nginx"),
        ("livekit-server", "livekit"),
        ("OvenMediaEngine", "ovenmediaengine"),
        ("prosody", "prosody"),
        ("turnserver", "coturn"),
        ("srs", "srs"),
        ("srs-master-4711", "srs"),
        ("go2rtc", "go2rtc"),
        ("galene", "galene"),
        ("live555MediaServer", "live555"),
        ("live555MediaSer", "live555"),
        ("unheard-of", "generic"),
    ];
    for (process, expect) in cases {
        assert_eq!(packs_of_process(&packs, process).next().unwrap().pack, expect, "{process}");
    }
}

#[test]
fn a_server_has_the_packs_of_all_its_names_or_the_one_that_is_named() {
    let packs = built_in();
    let names = |name, processes: &[&str]| -> Vec<String> {
        of_server(&packs, name, processes).into_iter().map(|pack| pack.pack).collect()
    };
    assert_eq!(names(None, &["lua5.4", "prosody"]), ["prosody", "generic"]);
    assert_eq!(names(None, &["node", "ffmpeg"]), ["ffmpeg", "peertube", "generic"]);
    assert_eq!(names(Some("janus"), &["node"]), ["janus", "generic"]);
    assert_eq!(names(Some("none"), &["janus"]), ["generic"]);
}

const GOOD: &str = "pack = \"mine\"\ntitle = \"Mine\"\nsource = \"me\"\n";

#[test]
fn what_is_wrong_with_a_pack_is_said_with_line_and_column() {
    let cases = [
        ("pack = \"mine\"\ntitle = 7\nsource = \"\"", "line 2, column 9"),
        ("pack = \"mine\"", "missing field `title`"),
        ("pack = ", "line 1, column 8"),
        (
            &format!("{GOOD}[[thread]]\nname = \"x\"\ngruop = \"y\"\nmeaning = \"z\""),
            "unknown field `gruop`",
        ),
        (
            &format!("{GOOD}[[thread]]\nname = \"x\"\ngruop = \"y\"\nmeaning = \"z\""),
            "line 6, column 1",
        ),
        (
            &format!(
                "{GOOD}[[thread]]\nname = \"SPRtcSignallingX\"\ngroup = \"y\"\nmeaning = \"z\""
            ),
            "line 5, column 8: `SPRtcSignallingX` cannot match any thread",
        ),
        (
            &format!(
                "{GOOD}[[log]]\nid = \"a\"\npattern = 'x'\nmeaning = \"z\"\nthread = \"SPRtcSignallingX\""
            ),
            "line 8, column 10: `SPRtcSignallingX` cannot match any thread",
        ),
        (
            &format!("{GOOD}[[log]]\nid = \"a\"\npattern = 'ö('\nmeaning = \"z\""),
            "line 6, column 11: not a supported regular expression",
        ),
        (
            &format!(
                "{GOOD}[[log]]\nid = \"a\"\npattern = 'x'\nmeaning = \"z\"\n[[log]]\nid = \"a\"\npattern = 'x'\nmeaning = \"z\""
            ),
            "line 9, column 6: `a` is defined twice",
        ),
        (
            &format!(
                "{GOOD}[[log]]\nid = \"a\"\npattern = 'x'\nmeaning = \"z\"\n[[log.value]]\ngroup = \"g\"\nmetric = \"a.b\"\nunit = \"ratio\"\nmeaning = \"m\""
            ),
            "the pattern has no group `g`",
        ),
        (
            &format!(
                "{GOOD}[[endpoint]]\nkind = \"open_metrics\"\nurl = \"file:///etc/passwd\"\nswitch_on = \"\""
            ),
            "line 6, column 7: an endpoint is http://",
        ),
        (&format!("{GOOD}[[uri_group]]\ngroup = \"a\"\nmeaning = \"z\""), "no condition"),
        ("pack = \"Mine!\"\ntitle = \"\"\nsource = \"\"", "a name is 1 to 40 of"),
    ];
    for (text, expect) in cases {
        let error = parse("mine.toml", text).unwrap_err().to_string();
        assert!(error.contains(expect) && error.starts_with("mine.toml"), "{text}\ngave {error}");
    }
}

#[test]
fn no_cut_or_changed_pack_panics() {
    let text = BUILT_IN.iter().find(|(name, _)| *name == "ovenmediaengine").unwrap().1;
    for end in (0..text.len()).step_by(37) {
        let end = (end..).find(|end| text.is_char_boundary(*end)).unwrap();
        let _ = parse("cut", &text[..end]);
        let _ = parse("changed", &format!("{}\"\n{}", &text[..end], &text[end..]));
    }
}

#[test]
fn a_folder_adds_packs_and_replaces_those_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), GOOD).unwrap();
    std::fs::write(folder.path().join("j.toml"), GOOD.replace("\"mine\"", "\"janus\"")).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no pack").unwrap();
    let packs = with_folder(folder.path()).unwrap();
    assert_eq!(packs.len(), BUILT_IN.len() + 1);
    let janus: Vec<_> = packs.iter().filter(|pack| pack.pack == "janus").collect();
    assert_eq!((janus.len(), janus[0].title.as_str()), (1, "Mine"));
    std::fs::write(folder.path().join("z.toml"), "pack").unwrap();
    assert!(with_folder(folder.path()).unwrap_err().to_string().contains("z.toml"));
    assert!(with_folder(Path::new("/nowhere")).is_err());
}
