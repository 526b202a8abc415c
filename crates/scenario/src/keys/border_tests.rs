//! What a schema takes is what is read: values near and beyond what is allowed, of tables whose
//! keys depend on each other or on the target.

use crate::Scenario;

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&crate::json_schema().to_value()).unwrap()
}

/// Checks whether schema and reader take a file.
#[track_caller]
fn both_take(validator: &jsonschema::Validator, text: &str, is_read: bool) {
    let instance = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    assert_eq!(validator.is_valid(&instance), is_read, "by the schema:\n{text}");
    let error = Scenario::parse(text).map_or_else(|error| error.to_string(), |_| String::new());
    assert_eq!(error.is_empty(), is_read, "{text}\n{error}");
}

#[test]
fn the_schema_of_a_cohort_and_of_a_watch_takes_what_is_read() {
    let validator = validator();
    let viewers = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 3\n";
    let (seed, chat) = (u64::MAX, "chat = { url = \"xmpp+wss://127.0.0.1/ws?room=a@b\"");
    for (keys, is_read) in [
        ("chat = { url = \"XMPP+WSS://127.0.0.1/ws?room=a@b\" }".to_owned(), true),
        ("publish = { video = \"a.h264\", fps = 2000 }".to_owned(), false),
        ("publish = { codec = \"mp3\" }".to_owned(), false),
        ("publish = { simulcast = [\"144p\"] }".to_owned(), false),
        ("layers = \"best\"".to_owned(), false),
        ("speaking_weight = 1001".to_owned(), false),
        ("source_ips = 5".to_owned(), false),
        ("name = \"\"".to_owned(), false),
        ("player = { p2p = { upload_bps = 0 } }".to_owned(), false),
        ("player = { p2p = { tracker = \"WSS://127.0.0.1/t\" } }".to_owned(), true),
        ("player = { p2p = { hashes = \"Http://127.0.0.1/h\" } }".to_owned(), true),
        ("player = { p2p = { tracker = \"http://127.0.0.1/t\" } }".to_owned(), false),
        ("[canary]\nbrowser = \"/usr/bin/chromium\"".to_owned(), false),
        ("player = { position = \"random\", http = { \"3\" = 41 } }".to_owned(), true),
        ("player = { position = \"later\" }".to_owned(), false),
        ("player = { http = { \"3\" = -1 } }".to_owned(), false),
        ("player = { http = {} }".to_owned(), false),
        ("player = { scale = 0 }".to_owned(), false),
        ("player = { screen = \"9999p\" }".to_owned(), true),
        ("player = { screen = \"10000p\" }".to_owned(), false),
        ("player = { screen = \"0p\" }".to_owned(), false),
        ("player = { screen = \"+360p\" }".to_owned(), false),
        ("player = { screen = \"p\" }".to_owned(), false),
        ("player = { scale = 0.0001 }".to_owned(), false),
        (format!("{chat}, origin = \"https://a.example\" }}"), true),
        (format!("{chat}, origin = \"HTTPS://A\" }}"), false),
        ("player = { har = \"\" }".to_owned(), false),
        ("reconnect = { within = \"2s\" }".to_owned(), false),
        ("[[watch]]\npid = 2147483647".to_owned(), true),
        ("[[watch]]\npid = 2147483648".to_owned(), false),
        (format!("stay = {{ mean = \"9s\", seed = {seed}.0 }}"), false),
        (format!("arrival = {{ every = \"1s\", seed = {seed}.0 }}"), false),
    ] {
        both_take(&validator, &format!("{viewers}{keys}\n"), is_read);
    }
    let player = "[target]\nurl = \"rtsp://127.0.0.1/a\"\n[crowd]\nsize = 3\nplayer = { scale = ";
    for scale in ["-1000", "-0.001", "0.001", "1000"] {
        both_take(&validator, &format!("{player}{scale} }}\n"), true);
    }
}

/// A chat whose template has these keys; `join` and `say` have to be there.
fn template(url: &str, keys: &str) -> String {
    let file = format!(
        "[target]\nurl = \"{url}\"\n[crowd]\nsize = 3\n[crowd.chat.template]\n\
         join = [\"{{nick}}\"]\nsay = \"{{text}}\"\n"
    );
    let mut file: toml::Table = file.parse().unwrap();
    let template = file["crowd"]["chat"]["template"].as_table_mut().unwrap();
    template.extend(keys.parse::<toml::Table>().unwrap_or_else(|error| panic!("{keys}: {error}")));
    toml::to_string(&file).unwrap()
}

#[test]
fn the_schema_of_a_template_takes_what_is_read() {
    let validator = validator();
    let list = |count: usize| format!("{:?}", vec!["{nick}"; count]);
    let (long, longer) = ("x".repeat(4_096), "x".repeat(4_097));
    let both = [
        ("room = \"a\"".to_owned(), true),
        ("room = \"\"".to_owned(), false),
        ("room = 5".to_owned(), false),
        (format!("room = \"{long}\""), true),
        (format!("room = \"{longer}\""), false),
        ("say = \"{text}\"".to_owned(), true),
        ("say = \"text\"".to_owned(), false),
        ("say = \"\"".to_owned(), false),
        (format!("say = \"{{text}}{long}\""), false),
        ("join = []".to_owned(), true),
        ("join = \"{nick}\"".to_owned(), false),
        ("join = [\"\"]".to_owned(), false),
        ("join = [{ send = \"a\", expect = \"b\" }]".to_owned(), true),
        ("join = [{ send = \"\" }]".to_owned(), false),
        ("join = [{ send = \"a\", expect = \"\" }]".to_owned(), false),
        ("join = [{ send = \"a\", more = \"b\" }]".to_owned(), false),
        ("join = [{ expect = \"b\" }]".to_owned(), false),
        (format!("join = {}", list(32)), true),
        (format!("join = {}", list(33)), false),
        ("pong = { on = \"a\", send = \"b{rest}\" }".to_owned(), true),
        ("pong = { on = \"a\" }".to_owned(), false),
        ("pong = { on = \"\", send = \"b\" }".to_owned(), false),
        ("keep_alive = { every = \"25s\", send = \"a\" }".to_owned(), true),
        ("keep_alive = { every = \"soon\", send = \"a\" }".to_owned(), false),
        ("keep_alive = { every = \"25s\", send = \"a\", expect = \"\" }".to_owned(), false),
        ("keep_alive = { every = \"25s\" }".to_owned(), false),
        ("nick_taken = \"a\"".to_owned(), true),
        ("nick_taken = \"\"".to_owned(), false),
        ("leave = \"\"".to_owned(), false),
        ("refused = []".to_owned(), true),
        ("refused = \"a\"".to_owned(), true),
        ("refused = \"\"".to_owned(), false),
        ("refused = [\"\"]".to_owned(), false),
        ("refused = [1]".to_owned(), false),
        (format!("kicked = {}", list(32)), true),
        (format!("kicked = {}", list(33)), false),
        ("echo = 1".to_owned(), false),
    ];
    for (keys, is_read) in &both {
        for url in ["chat+ws://127.0.0.1/irc", "chat+http://127.0.0.1/events"] {
            both_take(&validator, &template(url, keys), *is_read);
        }
    }
    for (keys, is_read) in [
        ("subprotocols = \"text.ircv3.net\"".to_owned(), true),
        ("subprotocols = [\"access_token\", \"{token}\"]".to_owned(), true),
        ("subprotocols = []".to_owned(), true),
        ("subprotocols = [\"\"]".to_owned(), false),
        ("subprotocols = [\"a b\"]".to_owned(), false),
        ("subprotocols = [\"a,b\"]".to_owned(), false),
        ("subprotocols = [\"é\"]".to_owned(), false),
        ("subprotocols = [1]".to_owned(), false),
        (format!("subprotocols = {:?}", vec!["a"; 32]), true),
        (format!("subprotocols = {:?}", vec!["a"; 33]), false),
        ("binary = \"yes\"".to_owned(), false),
    ] {
        both_take(&validator, &template("chat+ws://127.0.0.1/irc", &keys), is_read);
    }
}

#[test]
fn the_schema_of_a_template_of_server_sent_events_takes_what_is_read() {
    let validator = validator();
    let take = |keys: &str, is_read: bool| {
        both_take(&validator, &template("chat+http://127.0.0.1/events", keys), is_read);
    };
    for (path, is_read) in [
        ("/", true),
        ("/rooms/{room}?as={nick}", true),
        ("/a//b", true),
        ("", false),
        ("a", false),
        ("//other/", false),
        ("https://other/", false),
        ("/a b", false),
        ("/a#b", false),
        ("/a\\tb", false),
        ("/a\\\\b", false),
    ] {
        take(&format!("stream = \"{path}\""), is_read);
        take(&format!("join = [{{ send = \"a\", path = \"{path}\" }}]"), is_read);
        for key in ["path", "leave", "keep_alive", "pong"] {
            take(&format!("post = {{ {key} = \"{path}\" }}"), is_read);
        }
    }
    for (kind, is_read) in [
        ("application/json", true),
        ("text/plain; charset=UTF-8", true),
        ("", false),
        ("json", false),
        ("/json", false),
        ("text/", false),
        (" text/plain", false),
        ("text/plain ", false),
        ("text/é", false),
    ] {
        take(&format!("post = {{ content_type = \"{kind}\" }}"), is_read);
    }
    for (header, is_read) in [
        ("", true),
        ("X-A = \"a b\"", true),
        ("X-A = \"{token}\"", true),
        ("X-A = \"\"", false),
        ("X-A = \" a\"", false),
        ("X-A = \"é\"", false),
        ("X-A = \"env:A\"", false),
        ("X-A = 5", false),
        ("\"X A\" = \"a\"", false),
        ("Origin = \"a\"", false),
        ("content-TYPE = \"a/b\"", false),
        ("Last-Event-ID = \"1\"", false),
    ] {
        take(&format!("headers = {{ {header} }}"), is_read);
    }
    take("post = {}", true);
    take("post = { body = \"\" }", false);
    take("replay = 1", false);
}

#[test]
fn the_schema_of_a_target_takes_what_is_read() {
    let validator = validator();
    let target = "[target]\nurl = \"janus+ws://127.0.0.1/videoroom/1\"\n";
    for (keys, is_read) in [
        ("token = \"env:TOKEN\"", true),
        ("token = \"\"", false),
        ("token = 5", false),
        ("rooms = 1000", true),
        ("rooms = 0", false),
        ("rooms = 1001", false),
        ("allow = \"10.0.0.0/8\"", true),
        ("allow = [\"fd00::/8\", \" 10.0.0.7 \"]", true),
        ("allow = []", true),
        ("allow = [\"localhost\"]", false),
        ("allow = 5", false),
        ("tls_insecure = \"yes\"", false),
        ("ice_transport_policy = \"all\"", true),
        ("ice_transport_policy = \"none\"", false),
        ("stun = \"STUN:127.0.0.1\"", true),
        ("stun = \"turn:127.0.0.1\"", false),
        ("turn = \"TURNS:127.0.0.1\"\nturn_username = \"a\"\nturn_password = \"b\"", true),
        ("turn = \"stun:127.0.0.1\"\nturn_username = \"a\"\nturn_password = \"b\"", false),
        ("turn = \"turn:127.0.0.1\"\nturn_username = \"\"\nturn_password = \"b\"", false),
        ("api_key = \"\"", false),
        ("room = \"\"", false),
        ("rtsp_transport = \"quic\"", false),
        ("more = 1", false),
    ] {
        let crowd = "[crowd]\nsize = 3\narrival = { ramp = \"1s\" }\n";
        both_take(&validator, &format!("{target}{keys}\n{crowd}"), is_read);
    }
    both_take(&validator, "[target]\nrooms = 1\n[crowd]\nsize = 3\n", false);
}

#[test]
fn the_schema_of_a_watch_takes_what_is_read() {
    let validator = validator();
    let digits = "aB".repeat(32);
    let (long, longer) = ("x".repeat(4_096), "x".repeat(4_097));
    for (keys, is_read) in [
        ("process = \"janus\"".to_owned(), true),
        ("process = \"/usr/bin/janus\"".into(), false),
        ("process = \"\"".into(), false),
        (format!("process = \"{long}\""), true),
        (format!("process = \"{longer}\""), false),
        ("unit = \"a/b\"".into(), false),
        ("cgroup = \"/\"".into(), true),
        ("cgroup = \"janus\"".into(), false),
        ("port = 65535".into(), true),
        ("port = 65536".into(), false),
        ("target = true".into(), true),
        ("target = false".into(), false),
        ("command = \"sleep\"".into(), true),
        ("command = []".into(), false),
        (format!("command = {:?}", vec!["a"; 64]), true),
        (format!("command = {:?}", vec!["a"; 65]), false),
        ("pid = 1\nname = \"\"".into(), false),
        ("pid = 1\nevery = 1".into(), false),
        ("pid = 1\nlogs = []".into(), true),
        ("pid = 1\nlogs = [\"\"]".into(), false),
        ("pid = 1\naccess_log = 5".into(), false),
        ("pid = 1\nmetrics = \"JANUS+WS://127.0.0.1:7188/\"".into(), true),
        ("pid = 1\nmetrics = [\"ftp://127.0.0.1/\"]".into(), false),
        ("pid = 1\nprofile = \"full\"".into(), true),
        ("pid = 1\nprofile = \"10s\"".into(), false),
        ("pid = 1\nprofile = [{ at = \"10s\" }, { at = \"fail\", for = \"2s\" }]".into(), true),
        ("pid = 1\nprofile = { at = \"fial\" }".into(), false),
        ("pid = 1\nprofile = { for = \"2s\" }".into(), false),
        ("pid = 1\npack = \"\"".into(), false),
        ("agent = \"tcp://127.0.0.1:7081\"\ntoken = \"env:A\"".into(), true),
        ("agent = \"TCP://127.0.0.1:7081\"".into(), true),
        ("agent = \"http://127.0.0.1:7081\"".into(), false),
        (format!("agent = \"tls://10.0.0.5:1\"\nfingerprint = \"SHA256:{digits}\""), true),
        (format!("agent = \"tls://10.0.0.5:1\"\nfingerprint = \"{digits}a\""), false),
    ] {
        let target = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 3\n";
        both_take(&validator, &format!("{target}[[watch]]\n{keys}\n"), is_read);
    }
}

#[test]
fn the_schema_of_arrivals_takes_what_is_read() {
    let validator = validator();
    let viewers = "[target]\nurl = \"http://127.0.0.1/a.m3u8\"\n[crowd]\nsize = 3\narrival = ";
    for (arrival, is_read) in [
        ("{ every = \"1s\" }", true),
        ("{ every = \"1s\", jitter = true, seed = 0 }", true),
        ("{ every = \"1s\", jitter = false, seed = 1 }", false),
        ("{ every = \"1s\", jitter = 1 }", false),
        ("{ every = \"1s\", seed = -1 }", false),
        ("{ every = \"1s\", seed = 9223372036854775807 }", true),
        ("{ every = 1 }", false),
        ("{ every = \"\" }", false),
        ("{ jitter = false }", true),
        ("{ seed = 3 }", true),
        ("{}", false),
        ("{ ramp = \"9s\", jitter = false }", true),
        ("{ ramp = \"9s\", seed = 7 }", true),
        ("{ ramp = \"9s\", every = \"1s\" }", false),
        ("{ burst = { size = 1, every = \"1s\" } }", true),
        ("{ burst = { size = 1000000, every = \"0s\" } }", true),
        ("{ burst = { size = 1000001, every = \"1s\" } }", false),
        ("{ burst = { size = 0, every = \"1s\" } }", false),
        ("{ burst = { size = 1 } }", false),
        ("{ burst = { every = \"1s\" } }", false),
        ("{ burst = { size = 1, every = \"1s\", more = 1 } }", false),
        ("{ burst = { size = 1, every = \"1s\" }, jitter = true }", false),
        ("{ burst = \"1s\" }", false),
        ("{ poisson = { rate = \"5/s\" } }", true),
        ("{ poisson = { rate = \"0.5/s\", seed = 0 } }", true),
        ("{ poisson = { rate = \"05./s\" } }", true),
        ("{ poisson = { rate = \"30 /min\" } }", true),
        ("{ poisson = { rate = \"0/s\" } }", false),
        ("{ poisson = { rate = \"0.00/s\" } }", false),
        ("{ poisson = { rate = \"5\" } }", false),
        ("{ poisson = { rate = \"5/s\", seed = -1 } }", false),
        ("{ poisson = { seed = 1 } }", false),
        ("{ poisson = { rate = \"5/s\" }, seed = 1 }", false),
        ("\"1s\"", false),
    ] {
        both_take(&validator, &format!("{viewers}{arrival}\n"), is_read);
    }
}

#[test]
fn the_schema_of_what_is_published_takes_what_is_read() {
    let validator = validator();
    let members =
        "[target]\nurl = \"janus+ws://127.0.0.1/videoroom/1\"\n[crowd]\nsize = 3\npublish = ";
    for (publish, is_read) in [
        ("\"none\"", true),
        ("\"some\"", false),
        ("{ simulcast = [\"144p\", \"240p\"] }", true),
        ("{ simulcast = [\"144p\", \"240p\", \"720p\"] }", true),
        ("{ simulcast = [\"144p\", \"180p\", \"240p\", \"720p\"] }", false),
        ("{ simulcast = [\"144p\"] }", false),
        ("{ simulcast = [\"144p\", \"144p\"] }", false),
        ("{ simulcast = [\"144p\", \"100p\"] }", false),
        ("{ simulcast = [] }", false),
        ("{ simulcast = \"144p\" }", false),
        ("{ simulcast = 144 }", false),
        ("{ video = \"240p\" }", true),
        ("{ video = \"media/a.IVF\" }", true),
        ("{ video = \"100p\" }", false),
        ("{ video = \"240p.\" }", false),
        ("{ video = \"a.xyz\" }", false),
        ("{ video = \"media/a\" }", false),
        ("{ video = \"\" }", false),
        ("{ audio = true }", true),
        ("{ audio = \"a.opus\" }", true),
        ("{ audio = \"a.txt\" }", false),
        ("{ audio = \"speech\" }", false),
    ] {
        both_take(&validator, &format!("{members}{publish}\n"), is_read);
    }
}
