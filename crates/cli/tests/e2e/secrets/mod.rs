//! A law: no byte of a secret is in anything that throng says or keeps, or in the arguments of what
//! it starts. Every place of a scenario that can hold one has one of its own.

mod bus;
mod everywhere;
mod law;
mod places;
mod readers;

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use throng_sim::nats::Nats;
use throng_sim::whep::{Behaviour, Server};

use self::bus::{BusListener, BusMessage, rows_of};
use self::law::Law;
use self::places::SCENARIOS;
use crate::matrix::{Study, said};
use crate::prove::{Fixture, stage, viewers};
use crate::throng::{Stage, THRONG, started};

/// A server that refuses everybody.
fn refuses() -> Server {
    refuses_with("no".to_owned())
}

/// The same in these words.
fn refuses_with(words: String) -> Server {
    Server::start(Ipv4Addr::LOCALHOST, Behaviour::Status(401, Vec::new(), words)).unwrap()
}

#[test]
fn a_run_of_webrtc_viewers_has_no_secret_where_it_is_refused_and_where_it_is_answered() {
    let (refuses, stage) = (refuses(), Stage::start(None, "127.0.0.1:0", &[]));
    let answers = stage.whep.trim_start_matches("http://").trim_end_matches("/whep").to_owned();
    for (name, host) in [("refused", refuses.address().to_string()), ("answered", answers)] {
        let mut law = Law::new();
        let [user, query, fixed] = ["User", "Query", "Turn"].map(|place| law.secret(place));
        let variable = law.secret("Env");
        let scenario = format!(
            "[target]\nurl = \"whep+http://me:{user}@{host}/whep?sig={query}\"\n\
             token = \"env:THRONG_LAW_TOKEN\"\nturn = \"turn:127.0.0.1:9\"\n\
             turn_username = \"me\"\nturn_password = \"{fixed}\"\n\
             # token = \"{query}\"\n[crowd]\nsize = 1\n"
        );
        law.holds_for(name, &scenario, &[("THRONG_LAW_TOKEN", &variable)]);
        law.holds();
    }
}

#[test]
fn a_run_of_players_has_no_secret() {
    let mut law = Law::new();
    let server = refuses();
    let [user, query, token] = ["User", "Query", "Token"].map(|place| law.secret(place));
    let [header, cookie] = ["Header", "Cookie"].map(|place| law.secret(place));
    let scenario = format!(
        "[target]\nurl = \"http://me:{user}@{}/a.mp4?token={query}\"\ntoken = \"{token}\"\n\
         [crowd]\nsize = 1\n\
         player = {{ headers = {{ X-Session = \"{header}\", Cookie = \"sid={cookie}\" }} }}\n",
        server.address()
    );
    law.holds_for("player", &scenario, &[]);
    law.holds();
}

#[test]
fn a_run_on_signalling_by_websocket_or_rtsp_has_no_secret() {
    let mut law = Law::new();
    let server = refuses();
    let host = server.address();
    let [api, pin, token, admin] = ["Api", "Pin", "Token", "Admin"].map(|place| law.secret(place));
    let [rtsp, xmpp] = ["Rtsp", "Xmpp"].map(|place| law.secret(place));
    let crowd = "[crowd]\nsize = 1\n";
    for (name, scenario) in [
        (
            "livekit",
            format!(
                "[target]\nurl = \"livekit+ws://{host}/room\"\napi_key = \"key\"\n\
                 api_secret = \"{api}\"\n{crowd}"
            ),
        ),
        (
            "janus",
            format!(
                "[target]\nurl = \"janus+ws://{host}/videoroom/1234?pin={pin}\"\n\
                 token = \"{token}\"\n{crowd}[room]\nadmin_key = \"{admin}\"\npublishers = 6\n"
            ),
        ),
        ("rtsp", format!("[target]\nurl = \"rtsp://me:{rtsp}@{host}/live\"\n{crowd}")),
        (
            "xmpp",
            format!(
                "[target]\nurl = \"xmpp+ws://me:{xmpp}@{host}/ws?room=r@rooms.example\"\n{crowd}"
            ),
        ),
    ] {
        law.holds_for(name, &scenario, &[]);
    }
    law.holds();
}

/// Of each text that a template can have, on a server that refuses.
#[test]
fn a_run_of_chats_by_template_has_no_secret() {
    let mut law = Law::new();
    let server = refuses();
    let host = server.address();
    let [room, pass, json, answer] =
        ["Room", "Pass", "Json", "Answer"].map(|place| law.secret(place));
    let [say, pong, sign, leave] = ["Say", "Pong", "Sign", "Leave"].map(|place| law.secret(place));
    let [kicked, subprotocol] = ["Kicked", "Subprotocol"].map(|place| law.secret(place));
    let websocket = format!(
        "[target]\nurl = \"chat+ws://{host}/chat\"\n[crowd]\nsize = 1\n[crowd.chat]\n\
         every = \"1s\"\n[crowd.chat.template]\nroom = \"room?key={room}\"\n\
         join = [\"PASS {pass}\", {{ send = '{{\"auth\":{{\"pw\":\"{json}\"}}}}', \
         expect = '\"token\":\"{answer}\"' }}]\n\
         say = '{{\"password\":\"{say}\",\"text\":\"{{text}}\"}}'\n\
         pong = {{ on = \"PING\", send = \"AUTH {pong}\" }}\n\
         keep_alive = {{ every = \"1s\", send = \"Bearer {sign}\" }}\n\
         leave = \"secret={leave}\"\nkicked = \"wss://me:{kicked}@h/\"\n\
         subprotocols = [\"access_token\", \"{subprotocol}\"]\n"
    );
    law.holds_for("websocket", &websocket, &[]);
    let [stream, path, post] = ["Stream", "Path", "Post"].map(|place| law.secret(place));
    let [kind, header, agent] = ["Kind", "Header", "Agent"].map(|place| law.secret(place));
    let variable = law.secret("Env");
    let events = format!(
        "[target]\nurl = \"chat+http://{host}/chat\"\ntoken = \"env:THRONG_LAW_TOKEN\"\n\
         [crowd]\nsize = 1\n[crowd.chat.template]\n\
         stream = \"/{{token}}/events?token={stream}\"\n\
         join = [{{ send = \"a\", path = \"/join?sig={path}\" }}]\nsay = \"{{text}}\"\n\
         post = {{ path = \"/{{token}}?key={post}\", content_type = \"a/b;token={kind}\" }}\n\
         headers = {{ X-Up = \"{header}\", User-Agent = \"me token={agent}\" }}\n"
    );
    law.holds_for("events", &events, &[("THRONG_LAW_TOKEN", &variable)]);
    law.holds();
}

/// Neither what throng says and keeps has a key, on loopback neither, nor do the processes that
/// it starts.
#[test]
fn the_key_of_a_publisher_is_not_among_the_arguments_of_ffmpeg() {
    let mut law = Law::new();
    // It takes connections, and says nothing.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let [key, stream, phrase] = ["Key", "Stream", "Phrase"].map(|place| law.secret(place));
    for url in [
        format!("publish+rtmp://{address}/live/{key}?token={key}"),
        format!("publish+srt://{address}?streamid=publish:{stream}&passphrase={phrase}"),
    ] {
        let file = law.path("publish.toml");
        std::fs::write(
            &file,
            format!(
                "[target]\nurl = \"{url}\"\n[crowd]\nsize = 1\n\
                 publish = {{ video = \"144p\", burn_clock = true }}\n[run]\nduration = \"2s\"\n"
            ),
        )
        .unwrap();
        let (file, run) = (file.display().to_string(), law.path("publish").display().to_string());
        let output = law.throng(&["run", &file, "--output", &run, "--quiet"], &[], false);
        assert!(Path::new(&run).join("run.db").is_file(), "{}", said(&output));
        law.look_below(Path::new(&run));
        std::fs::remove_dir_all(&run).unwrap();
        let address = format!("://{address}");
        let is_ours = |arguments: &String| arguments.contains(&address);
        assert!(law.publishers.drain(..).any(|one| is_ours(&one)), "no FFmpeg for {url}");
    }
    law.holds();
}

/// 7 s: a cell is run. What was given itself has to be given again, and what was not is found.
#[test]
fn a_matrix_keeps_no_secret_and_its_crowds_show_none() {
    let mut law = Law::new();
    let [file, set, flag, env] = ["File", "Set", "Flag", "Env"].map(|place| law.secret(place));
    let study = Study::new(&format!(
        "seed = 3\n[set]\n\"target.token\" = \"{set}\"\n[server]\nwatch = \"none\"\n\
         env = {{ API_TOKEN = \"{env}\" }}\n[[factor]]\nname = \"workers\"\nlevels = [1, 2]\n\
         [[except]]\nworkers = 2\n"
    ));
    let viewers = std::fs::read_to_string(study.path("viewers.toml")).unwrap();
    let viewers = viewers.replace("[crowd]", &format!("token = \"{file}\"\n[crowd]"));
    std::fs::write(study.path("viewers.toml"), viewers).unwrap();
    let [matrix, out] =
        [study.path("matrix.toml"), study.output()].map(|path| path.to_str().unwrap().to_owned());
    let given = format!("target.token={flag}");
    let ran = law.throng(&["matrix", &matrix, "--output", &out, "--set", &given], &[], true);
    let record = study.output().join("cells/01_workers=1/1/record.json");
    let record = std::fs::read_to_string(&record).unwrap_or_else(|_| panic!("{}", said(&ran)));
    assert!(record.contains("target.token=…"), "{record}");
    let mode = std::fs::metadata(study.output()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    law.look_below(&study.output());

    let refused = law.throng(&["matrix", "--resume", &out], &[], false);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("--set target.token=SECRET"), "{}", said(&refused));
    let other = law.throng(&["matrix", "--resume", &out, "--set", "crowd.size=9"], &[], false);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    let resume = ["matrix", "--resume", &out, "--set", "env:THRONG_LAW_SET"];
    let resumed = law.throng(&resume, &[("THRONG_LAW_SET", &given)], false);
    assert_eq!(resumed.status.code(), ran.status.code(), "{}", said(&resumed));
    // A report needs none, also from the folder alone.
    std::fs::remove_file(&matrix).unwrap();
    let remade = law.throng(&["report", &out], &[], false);
    assert_eq!(remade.status.code(), ran.status.code(), "{}", said(&remade));
    law.look_below(&study.output());
    law.holds();
}

/// 25 s: four runs, two of a variant with a setup step of its own.
#[test]
fn a_proof_keeps_no_secret_of_its_setup_steps() {
    let mut law = Law::new();
    let words = ["StepWord", "StepName", "LevelWord"].map(|place| law.secret(place));
    // Words of a step are arguments of what it starts, as they are written (docs/security.md).
    law.secrets.clear();
    let [token, server, variable] =
        ["ProofToken", "ProofServer", "StepEnv"].map(|place| law.secret(place));
    let [word, name, level] = &words;
    let crowd = viewers(1).replace("[crowd]", &format!("token = \"{token}\"\n[crowd]"));
    let keys = format!("watch = \"none\"\nenv = {{ SERVER_TOKEN = \"{server}\" }}");
    let text = format!(
        "hold = \"2s\"\nsetup = [\n\
         {{ run = [\"sh\", \"-c\", 'test -n \"$THRONG_LAW_STEP\"', \"sh\", \"--token\", \"{word}\"] }},\n\
         {{ run = [\"env\", \"API_TOKEN={name}\", \"true\"] }},\n]\n\
         {}[[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\n\
         setup = [{{ run = [\"true\", \"--key={level}\"] }}]\n",
        stage("\"--workers\", \"1\"", &keys)
    );
    let fixture = Fixture::new(&crowd, 2, &text);
    let file = fixture.path("proof.toml");
    let [proof, out] = [&file, &fixture.output()].map(|path| path.to_str().unwrap().to_owned());
    let variables = [("THRONG_LAW_STEP", variable.as_str())];
    let ran = law.throng(&["prove", &proof, "--output", &out], &variables, false);
    assert!(runs_below(&fixture.output()) >= 4, "{}", said(&ran));
    law.secrets.extend(words);
    law.look_at("the output of prove", &[ran.stdout.as_slice(), ran.stderr.as_slice()].concat());
    law.look_below(&fixture.output());

    // A report needs no secret, also from the folder alone; to go on does.
    std::fs::remove_file(&file).unwrap();
    let remade = law.throng(&["report", &out], &[], false);
    assert_eq!(remade.status.code(), ran.status.code(), "{}", said(&remade));
    law.throng(&["report", &out, "--json"], &[], false);
    let refused = law.throng(&["prove", "--resume", &out], &[], false);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("has no secrets"), "{}", said(&refused));
    law.look_below(&fixture.output());
    law.holds();
}

/// How many runs the folder of an experiment has.
fn runs_below(folder: &Path) -> usize {
    let below = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let cells = below(&folder.join("cells"));
    let runs = cells.iter().flat_map(|cell| below(cell));
    runs.filter(|run| run.join("run.db").is_file()).count()
}

/// What a fleet plays, beside the row `hls` of the table.
const OF_FLEET: &str = "[target]\nurl = \"whep+http://HOST/whep?sig=<query>\"\n\
                        token = \"env:THRONG_LAW_TOKEN\"\n[crowd]\nsize = 1\n";

/// A secret that the scenario writes out is in the order to a worker, which the bus does not store;
/// one that it names is in no message. 10 s: two runs, each of which begins 2 s after its order.
#[test]
fn a_run_of_a_fleet_has_no_secret() {
    if !Nats::is_installed() {
        return;
    }
    let mut law = Law::new();
    let [env, kept, password] =
        ["FleetEnv", "FleetFile", "FleetBus"].map(|place| law.secret(place));
    let account = format!("authorization {{ user: me, password: \"{password}\" }}\n");
    let nats = Nats::start(&account).unwrap();
    let listener = BusListener::start(nats.url().trim_start_matches("nats://"), "me", &password);
    let given = law.path("given").display().to_string();
    std::fs::create_dir(&given).unwrap();
    let token = format!("{given}/token");
    std::fs::write(&token, &kept).unwrap();
    let bus = nats.url_of("me", &password);
    let variables = [("THRONG_LAW_BUS", bus.as_str()), ("THRONG_LAW_TOKEN", env.as_str())];
    let fleet = ["--fleet", "env:THRONG_LAW_BUS"];
    let reference = format!("file:{token}");
    let allow = ["--allow-secret", "env:THRONG_LAW_TOKEN", "--allow-secret", &reference];
    let mut written = Vec::new();
    let of_table = SCENARIOS.into_iter().find(|(name, _)| *name == "hls").unwrap();
    for ((name, text), token) in [(("fleet", OF_FLEET), &env), (of_table, &kept)] {
        let before = law.secrets.len();
        let (filled, mut told) = law.filled(name, text);
        written.extend_from_slice(&law.secrets[before..]);
        told.push(token.clone());
        let server = refuses_with(told.join(" "));
        let filled =
            filled.replace("HOST", &server.address().to_string()).replace("FOLDER", &given);
        let (file, run) = (law.path(&format!("{name}.toml")), law.path(name));
        std::fs::write(&file, format!("{filled}[run]\nduration = \"1s\"\n")).unwrap();
        let work = [&["worker", "--once"][..], &allow, &fleet].concat();
        let worker = started(Command::new(THRONG).args(work).envs(variables));
        let (file, folder) = (file.display().to_string(), run.display().to_string());
        let play = ["run", &file, "--output", &folder, "--workers", "1", "--details", "--plain"];
        let ran = law.throng(&[&play[..], &fleet].concat(), &variables, false);
        let worked = worker.wait_with_output().unwrap();
        law.look_at("the output of the worker", &[worked.stdout, worked.stderr].concat());
        assert!(run.join("run.db").is_file(), "{name}: {}", said(&ran));
        law.look_below(&run);
    }
    looks_at_the_bus(&mut law, &listener.heard(), &written);
    law.holds();
}

/// Looks at what was heard on a bus, where orders alone may have the secrets `written`.
fn looks_at_the_bus(law: &mut Law, heard: &[BusMessage], written: &[String]) {
    let (mut orders, mut batches) = (0, 0);
    for message in heard {
        let (subject, bytes) = message;
        if let Some(rows) = rows_of(message) {
            batches += 1;
            law.look_at(&format!("the rows of {subject}"), &rows);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if subject.starts_with("throng.worker.") && subject.ends_with(".order") {
            orders += usize::from(written.iter().any(|secret| text.contains(secret)));
            text = written.iter().fold(text, |text, secret| text.replace(secret, ""));
        }
        law.look_at(&format!("the message {subject}"), text.as_bytes());
    }
    assert!(orders >= 2 && batches >= 2, "{orders} orders, {batches} batches of rows");
}

#[test]
fn what_cannot_be_read_is_not_repeated_where_it_may_be_a_secret() {
    let mut law = Law::new();
    let secret = law.secret("Word");
    let (bad, tokenn) = (format!("{secret} \u{e9}"), format!("target.tokenn={secret}"));
    let url = format!("whep+http://me:{secret}@127.0.0.1:x/whep");
    let target = "whep+http://127.0.0.1:9/whep";
    let prices = law.path("prices.toml");
    std::fs::write(&prices, format!("api_token = \"{secret}\"\n")).unwrap();
    for arguments in [
        &["view", target, "--token", &bad][..],
        &["view", target, "--set", &tokenn],
        &["view", target, "--set", &secret],
        &["view", target, "--set", "target.token", &secret],
        &["view", target, "--token", "a", &secret],
        &["view", target, "--consent-secret", "a", &format!("--tokenn={secret}")],
        &["view", &url],
        &["check", &url],
        &["check", target, "--set", &tokenn],
        &["find", target, "--set", &tokenn],
        &["matrix", "none.toml", "--set", &secret],
        &["price", "none", "--viewers", "5", "--prices", prices.to_str().unwrap()],
    ] {
        let output = law.throng(arguments, &[], true);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{}", said(&output));
    }
    law.holds();
}
