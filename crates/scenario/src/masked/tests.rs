use super::*;

#[test]
fn names_of_secrets_are_known_also_with_a_typing_error() {
    for name in [
        "token",
        "target.token",
        "tokenn",
        "tokne",
        "turn_password",
        "api_secret",
        "API_KEY",
        "accessToken",
        "passphrase",
        "streamid",
        "X-Authorization",
        "pin",
        "admin_key",
        "privateKey",
        "PGPASS",
        "DB_CRED",
    ] {
        assert!(names_a_secret(name), "{name}");
    }
    for name in [
        "size",
        "url",
        "codec",
        "turn",
        "credentials",
        "ice_transport_policy",
        "arrival",
        "target.allow",
        "watch",
        "open",
        "keep",
        "tapping",
        "video",
        "nick_taken",
        "crowd.chat.template.nick_taken",
    ] {
        assert!(!names_a_secret(name), "{name}");
    }
}

/// Wherever it stands in a file, a secret is not in what is kept, and all else is.
#[test]
fn a_kept_file_has_no_secret_and_reads_as_toml() {
    let file = "\
            [target] # token = \"S3CRET\"\n\
            url = \"whep+http://me:S3CRET@127.0.0.1:7080/whep?jwt=S3CRET&app=live\"\n\
            token = \"S3CRET\"\n\
            api_secret = \"env:LIVEKIT\"\n\
            turn_password = \"\"\"\nS3CRET\nS3CRET\"\"\"\n\
            [crowd]\nsize = 50 # many\n\
            player = { headers = { X-Session = \"S3CRET\", Cookie = \"file:cookie\" } }\n\
            [set]\n\"target.token\" = \"S3CRET\"\n\"target.url\" = \"{{url}}\"\n\
            [server]\nenv = { MODE = \"fast\", API_KEY = \"S3CRET\", PIN = 1234567 }\n\
            command = [\"server\", \"--token\", \"S3CRET\", \"--key=S3CRET\", \"--port\", \"#7\"]\n\
            [[setup]]\nrun = [\"curl\", \"-H\", \"Authorization: Bearer S3CRET\", \"-u\", \"me:S3CRET\"]\n\
            [[setup]]\nrun = [\"curl\", \"-d\", '{\"token\":\"S3CRET\", \"a\": 1}']\n\
            [[setup]]\nrun = [\"sh\", \"-c\", \"srv --token 'S3CRET S3CRET' --port 80\"]\n\
            [more]\nprivateKey = \"S3CRET\"\nPGPASS = \"S3CRET\"\nDB_CRED = \"S3CRET\"\n\
            metrics = \"http://h/m#bearer=env:TOKEN\"\nother = \"http://h/m#bearer=S3CRET\"\n\
            host = \"http://auth.example.com:8080/x\"\nturn = \"turn:key.example.com:3478\"\n";
    let kept = masked_toml(file);
    assert!(!kept.contains("S3CRET") && !kept.contains("1234567"), "{kept}");
    let shown = [
        "whep+http://…@127.0.0.1:7080/whep?jwt=…&app=live",
        "api_secret = \"env:LIVEKIT\"",
        "size = 50 # many",
        "Cookie = \"file:cookie\"",
        "\"target.url\" = \"{{url}}\"",
        "MODE = \"fast\"",
        "\"--port\", \"#7\"]",
        "Authorization: …",
        "--port 80",
        "http://h/m#bearer=env:TOKEN",
        "http://auth.example.com:8080/x",
        "turn:key.example.com:3478",
    ];
    for shown in shown {
        assert!(kept.contains(shown), "{shown} is not in {kept}");
    }
    assert!(kept.parse::<toml::Table>().is_ok(), "{kept}");
    assert_eq!(masked_toml(&kept), kept, "nothing is left to hide");
}

/// A list in a file, and the words that were read from it.
#[test]
fn the_words_of_a_command_are_shown_as_its_list_in_a_file() {
    let words = ["srv", "--token", "S3CRET", "--key=S3CRET", "-u", "me:S3CRET", "--port", "80"]
        .map(str::to_owned);
    let shown = masked_words(&words);
    assert_eq!(shown, ["srv", "--token", "…", "--key=…", "-u", "…", "--port", "80"]);
    for key in ["command", "run", "undo"] {
        let of = |words: &[String]| format!("{key} = {words:?}\n");
        assert_eq!(masked_toml(&of(&words)), of(&shown));
    }
    assert_eq!(masked_words(&shown), shown, "nothing is left to hide");
}

#[test]
fn a_flag_about_a_secret_is_shown_with_its_value() {
    for (flag, word, is_shown) in [
        ("--password-file", "/etc/throng/password", true),
        ("--secret-dir", "/run/secrets", true),
        ("--KEY_PATH", "a/b", true),
        ("--tls-key", "server.pem", true),
        ("--tls-key", "SERVER.KEY", true),
        ("--max-keys", "5", true),
        ("--token-ttl", "86400", true),
        ("--token-lifetime", "86400", true),
        ("--key-size", "2048", true),
        ("--admin-key", "4711", false),
        ("--auth", "12345", false),
        ("--cookie", "99999", false),
        ("--streamid", "1234", false),
        ("--max-pin", "1234", false),
        ("--passphrase", "S3CRET.pem", false),
        ("--tls-key", "a:S3CRET.pem", false),
        ("--token", "864000", false),
        ("--token", "S3CRET", false),
        ("--tls-key", "pem", false),
        ("--pin", "1234", false),
        ("--password", "12345", false),
        ("--admin-secret", "1234", false),
        ("--profile-key", "S3CRET", false),
        ("--user", "me:S3CRET.pem", false),
    ] {
        let words = ["srv", flag, word].map(str::to_owned);
        let shown = masked_words(&words);
        assert_eq!(shown[2] == word, is_shown, "{flag} {word}");
        assert_eq!(masked_words(&[words.join(" ")]), [shown.join(" ")], "as one text");
    }
    let words = ["srv", "--tls-key", "S3CRET a.pem"].map(str::to_owned);
    assert_eq!(masked_words(&words), ["srv", "--tls-key", "…"]);
}

#[test]
fn a_flag_about_a_secret_is_shown_with_its_value_in_one_word_too() {
    for (word, shown) in [
        ("--max-keys=5", "--max-keys=5"),
        ("--token-ttl=86400", "--token-ttl=86400"),
        ("--tls-key=server.pem", "--tls-key=server.pem"),
        ("--password-file=/run/pw", "--password-file=/run/pw"),
        ("--admin-key=4711", "--admin-key=…"),
        ("--pin=1234", "--pin=…"),
        ("--tls-key=a:S3CRET.pem", "--tls-key=…"),
        ("max_keys=5", "max_keys=…"),
    ] {
        assert_eq!(masked_words(&[word.to_owned()]), [shown]);
        assert_eq!(masked_text(&format!("srv {word} -v")), format!("srv {shown} -v"));
    }
}

/// What a command says is told from what was masked in it.
#[test]
fn words_that_were_masked_are_known() {
    for (words, is_masked) in [
        (&["sh", "-c", "echo starting… && exec srv"][..], false),
        (&["sh", "-c", "echo 'a … b' > log; exec srv --port 80"], false),
        (&["srv", "--motd", "welcome…", "--tls-key", "a.pem"], false),
        (&["srv", "--token", "…"], true),
        (&["srv --token … --port 80"], true),
        (&["sh", "-c", "echo starting… && exec srv --token …"], true),
        (&["--key=…"], true),
        (&["http://…@h/"], true),
        (&["…@h/x"], true),
        (&["http://h/?app=…"], true),
        (&["http://h/m#…"], true),
        (&["/page#…"], true),
        (&["C:\\…"], true),
        (&["--password-file=…"], true),
        (&["sh", "-c", "srv --password-file=…"], true),
        (&["sh", "-c", "exec srv '--max-keys=…' --port 80"], true),
        (&["srv", "--motd=…"], false),
        (&["sh", "-c", "srv --title=… --port 80"], false),
        (&["sh", "-c", "echo #… && exec srv"], false),
        (&["sh", "-c", "curl http://h/m#… > log"], true),
        (&["http://proxy/…"], true),
        (&["rtmp://h/live/…"], true),
        (&["Authorization: …"], true),
        (&["{\"token\":\"…\"}"], true),
        (&["curl -u … http://h/"], true),
        (&["curl", "-u", "…"], true),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(has_masked_words(&words), is_masked, "{words:?}");
    }
}

#[test]
fn a_file_with_an_error_of_syntax_shows_no_secret_either() {
    for file in [
        "[target]\ntoken = S3CRET\n",
        "[target]\ntoken = \"S3CRET\n",
        "token = \"\"\"a\nS3CRET==\n",
        "target = { token = \"S3CRET\" \n",
        "url = \"http://me:S3CRET@h/\n",
        "[crowd.player.headers]\nX = S3CRET S3CRET\n",
        "tokne = S3CRET",
    ] {
        let shown = masked_toml(file);
        assert!(!shown.contains("S3CRET") && shown.contains('…'), "{shown}");
        assert_eq!(shown.lines().count(), file.lines().count(), "{shown}");
    }
    assert_eq!(masked_toml("[crowd\nsize = 5\n"), "[crowd\nsize = 5\n");
}

#[test]
fn overrides_and_words_are_shown_without_their_secrets() {
    for (text, shown) in [
        ("target.token=S3CRET", "target.token=…"),
        ("target.token=\"S3CRET\"", "target.token=…"),
        ("target.token=env:TOKEN", "target.token=env:TOKEN"),
        ("target.token=", "target.token="),
        ("target.tokenn=x é", "target.tokenn=…"),
        ("crowd.player.headers.X=S3CRET", "crowd.player.headers.X=…"),
        ("http://a:S3CRET@h/?sig=S3CRET", "http://…@h/?sig=…"),
        ("crowd.size=50", "crowd.size=50"),
        ("target={ token = \"S3CRET\", rooms = 2 }", "target={ token = \"…\", rooms = 2 }"),
        ("target.url=ws://a:S3CRET@h/x", "target.url=ws://…@h/x"),
        ("target.url=\"ws://a:S3CRET@h/x\"", "target.url=\"ws://…@h/x\""),
        ("target.url=publish+rtmp://h/live/S3CRET", "target.url=publish+rtmp://h/live/…"),
        ("target.url=publish+srt://h:1?streamid=S3CRET", "target.url=publish+srt://h:1?streamid=…"),
    ] {
        assert_eq!(masked_override(text), shown, "{text}");
    }
    for (text, shown) in [
        ("agent=tls://h:9,token=S3CRET,profile=full", "agent=tls://h:9,token=…,profile=full"),
        ("PASSWORD='S3CRET x' ./run --fast", "PASSWORD=… ./run --fast"),
        ("get http://h/a?sig=S3CRET then", "get http://h/a?sig=… then"),
        ("video.loss p95 < 1%", "video.loss p95 < 1%"),
        ("srv --token S3CRET --fast", "srv --token … --fast"),
        ("curl -u me:S3CRET http://h/", "curl -u … http://h/"),
        ("X-Api-Key: S3CRET, S3CRET\nHost: h", "X-Api-Key: …\nHost: h"),
    ] {
        assert_eq!(masked_text(text), shown);
    }
}

/// What was hidden stays as it is, so that a stored text is stored again as the same.
#[test]
fn what_a_chat_says_is_shown_without_its_secrets_and_with_its_variables() {
    for (text, shown) in [
        ("PASS S3CRET", "PASS …"),
        ("NICK {nick}\r\nPASS S3CRET S3CRET\nUSER {n}", "NICK {nick}\r\nPASS …\nUSER {n}"),
        ("PRIVMSG NickServ :IDENTIFY S3CRET", "PRIVMSG NickServ :IDENTIFY …"),
        ("AUTH S3CRET", "AUTH …"),
        ("Authorization: Bearer S3CRET", "Authorization: …"),
        (r#"{"h":"Bearer S3CRET","a":"b"}"#, r#"{"h":"Bearer …","a":"b"}"#),
        (r#"{"token":"S3CRET","as":"{nick}"}"#, r#"{"token":"…","as":"{nick}"}"#),
        (r#"{"password" : "a\"S3CRET", "a": 1}"#, r#"{"password" : "…", "a": 1}"#),
        (r#"{"auth":{"user":"{nick}","pw":"S3CRET}"},"a":1}"#, r#"{"auth":"…","a":1}"#),
        (r#"{"auth":["{nick}",["S3CRET"]],"a":1}"#, r#"{"auth":"…","a":1}"#),
        (r#"{"a":"{\"token\":\"S3CRET\",\"b\":1}"}"#, r#"{"a":"{\"token\":\"…\",\"b\":1}"}"#),
        ("/say?token=S3CRET&room={room}", "/say?token=…&room={room}"),
        ("//me:S3CRET@h/x", "//…@h/x"),
        ("token={token}S3CRET", "token=…"),
        ("PASS oauth:S3CRET", "PASS …"),
        ("PASS hunter:{nick}", "PASS …"),
        (":{nick}!S3CRET@h JOIN", "…@h JOIN"),
    ] {
        assert_eq!(masked_text(text), shown, "{text}");
        assert_eq!(masked_text(shown), shown, "nothing is left to hide");
        assert!(has_masked_words(&[shown.to_owned()]), "{shown}");
    }
    for text in [
        "PASS {token}",
        "PASS {token}\r\nNICK {nick}",
        "AUTHENTICATE PLAIN",
        "Authorization: Bearer {token}",
        "token= {token}",
        "/say?token={token}&room={room}",
        r#"{"token":"{token}"}"#,
        r#"{"auth":{"token":"{token}","as":"{nick}"}}"#,
        r#"{"a":"{\"token\":\"{token}\"}"}"#,
        "USER throng 0 * :{n}",
        "{text}…",
        "PASS oauth:{token}",
        "PASS :{token}\r\nNICK {nick}",
        ":{nick}!*@* JOIN #{room}",
        ":{nick}!{nick}@*.example.com JOIN",
        r#"{"auth":true,"text":"{text}"}"#,
        r#"{"token":{token},"pin" : null }"#,
        r#"{"a":"{\"auth\":{\"u\":\"{nick}\"},\"b\":1}"}"#,
        "please pass me the salt",
        r#"{"text":"they pass by, auth or not"}"#,
    ] {
        assert_eq!(masked_text(text), text);
        assert!(!has_masked_words(&[text.to_owned()]), "{text}");
    }
    for (list, shown) in [
        (["access_token", "S3CRET"], ["access_token", "…"]),
        (["Bearer", "S3CRET"], ["Bearer", "…"]),
        (["access_token", "{token}"], ["access_token", "{token}"]),
        (["v1.chat", "v2.chat"], ["v1.chat", "v2.chat"]),
    ] {
        assert_eq!(masked_words(&list.map(str::to_owned)), shown);
        let file = |list: &[&str]| format!("subprotocols = {list:?}\n");
        assert_eq!(masked_toml(&file(&list)), file(&shown));
    }
}

/// A quote that nothing has opened is one of a password, and so is one with a backslash.
#[test]
fn a_quote_within_a_secret_does_not_end_it() {
    for (text, shown) in [
        ("PASS o'S3CRET", "PASS …"),
        ("AUTH me \"S3CRET\"", "AUTH …"),
        ("PASS 'a' S3CRET", "PASS …"),
        ("X-Api-Key: S3'CRET", "X-Api-Key: …"),
        ("token=o'S3CRET x", "token=… x"),
        (r#"{"c":"PASS S3\"CRET"}"#, r#"{"c":"PASS …"}"#),
        (r#"{"c":"token=S3\"CRET"}"#, r#"{"c":"token=…"}"#),
        ("sh -c 'PASS S3CRET' x", "sh -c 'PASS …' x"),
        (r#"{"auth":{"u":"a\\","pw":"}S3CRET"}}"#, r#"{"auth":"…"}"#),
        (r#"{"token":"a\\","pw":"x"}"#, r#"{"token":"…","pw":"x"}"#),
        (r#"{"a":"{\"c\":\"PASS S3CRET\",\"b\":1}"}"#, r#"{"a":"{\"c\":\"PASS …\",\"b\":1}"}"#),
    ] {
        assert_eq!(masked_text(text), shown, "{text}");
        assert_eq!(masked_text(shown), shown, "nothing is left to hide");
    }
}

#[test]
fn what_follows_a_secret_of_json_is_shown() {
    for (text, shown) in [
        (r#"{"pin":1234,"text":"{text}"}"#, r#"{"pin":"…","text":"{text}"}"#),
        (r#"{"auth":[S3CRET],"a":1}"#, r#"{"auth":"…","a":1}"#),
        (r#"[{"auth": S3CRET }, 1]"#, r#"[{"auth": "…"}, 1]"#),
        (r#"{"a":"{\"auth\":{\"u\":\"S3CRET\"},\"b\":1}"}"#, r#"{"a":"{\"auth\":\"…\",\"b\":1}"}"#),
    ] {
        assert_eq!(masked_text(text), shown, "{text}");
        assert_eq!(masked_text(shown), shown, "nothing is left to hide");
    }
}

/// Elsewhere they are words of a sentence.
#[test]
fn a_command_that_begins_a_message_may_be_in_small_letters() {
    for (text, shown) in [
        ("NICK {nick}\r\npass S3CRET", "NICK {nick}\r\npass …"),
        ("PRIVMSG NickServ :identify S3CRET", "PRIVMSG NickServ :identify …"),
        ("  Auth S3CRET", "  Auth …"),
    ] {
        assert_eq!(masked_text(text), shown);
    }
}

#[test]
fn any_text_can_be_masked() {
    for text in [
        "",
        "=",
        "://",
        "a://",
        "://=",
        "é://é@é",
        "token=",
        "token='",
        "token=\\",
        "token={token",
        "PASS ",
        "[",
        "#",
        "\"\"\"",
        "\"token\":[é",
        "\"token\":]",
        "\"token\":{\"é\\",
        "\\\"token\\\":\\é",
    ] {
        let _ = (masked_text(text), masked_toml(text), masked_override(text));
    }
}
