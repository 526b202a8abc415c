//! The keys of `chat` of a cohort.

use std::time::Duration;

use serde_json::{Value as Json, json};
use throng_observation::Url;

use super::{ChatConfig, ChatMoment, ChatRenames};
use crate::keys::Usual::{LeftOut, Required, Said, Stored};
use crate::keys::{
    By, Flag, Inner, Keyed, Maybe, Parsed, Problem, SEED_MAX, ShareMilli, Table, Whole, Word, keys,
    text, time, time_schema,
};
use crate::read::{Fields, Node, Reader, Value};
use crate::target::{Endpoint, Part};
use crate::units;

const LIST: &str = "a list such as [{ at = \"10m\", share = 0.2, within = \"10s\" }]";

/// Most moments of a cohort.
const MOMENTS_MAX: usize = 1_000;
/// More messages than a browser would show.
const HISTORY_MAX: u64 = 1_000;
/// Shortest mean time between messages of one participant.
const EVERY_MIN: Duration = Duration::from_millis(100);
/// Within this time of their join nicknames change, unless the file says it.
const RENAMED_WITHIN: Duration = Duration::from_secs(60);

impl Keyed for ChatConfig {
    const NAME: &'static str = "ChatFile";
    const MEANING: &'static str = "What participants of a chat do.";

    keys! {
        /// the chat beside a video: its viewers are in it too
        "url": beside = Maybe(BESIDE), Said("none");
        /// whose vCards they fetch: `authors` of messages; `all`: of all occupants too, as
        /// ConverseJS with its list of participants (livechat up to 8.0); `none`
        "vcards": vcards = Word, LeftOut;
        /// messages of the archive that are fetched
        "history": history = Whole(0, HISTORY_MAX), LeftOut;
        /// says that it types, which the room passes to everybody (ConverseJS before livechat 6.1)
        "chat_states": chat_states = Flag, LeftOut;
        /// mean time between the messages of one participant (Poisson); without it they only read
        "every": every = Maybe(time("2m")), Said("none");
        /// `[{ at = "10m", share = 0.2, within = "10s" }]`: a fifth of the participants say
        /// something, most of them soon
        "moments": moments = MOMENTS, Said("none");
        /// `Origin` of the page
        "origin": origin = Maybe(ORIGIN), Said("that of the server");
        /// `"30%"`: everybody comes as `Anonymous 123456`, and this share takes another nickname;
        /// each change is two presences to everybody
        "nick_change": renames = Maybe(NICK_CHANGE), Said("none");
        /// they take it within so long after they joined
        "nick_change_within": renames = Maybe(NICK_CHANGE_WITHIN), Said("`\"1m\"`");
        /// uses XEP-0198 where the server offers it
        "stream_management": stream_management = Flag, LeftOut;
        /// the words of a chat that is not XMPP, [see below](chat.md#other-chats-by-template)
        "template": template = Maybe(TEMPLATE), Said("none");
        /// of what is said when, by each participant, whatever the seed of the run is
        "seed": seed = Whole(0, SEED_MAX), LeftOut;
    }

    /// Who has the table wants the chat.
    fn usual() -> Self {
        Self { is_wanted: true, ..Self::default() }
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.every.is_some_and(|every| every < EVERY_MIN) {
            let message = format!("`{}` is less than 100 ms", fields.path_of("every"));
            reader.fail(fields.span_of("every"), message, "write for example every = \"2m\"");
        }
    }
}

impl Keyed for ChatMoment {
    const NAME: &'static str = "ChatMomentFile";
    const MEANING: &'static str = "A moment of the show.";

    keys! {
        /// when, since the start of the run
        "at": at = time("10m"), Required("write for example at = \"10m\"");
        /// the share of the participants that say something at it, each once, from 0 to 1
        "share": share_milli = ShareMilli("0.2"), Stored;
        /// within so long
        "within": within = time("10s"), Stored;
    }

    fn usual() -> Self {
        Self { at: Duration::ZERO, share_milli: 1_000, within: Duration::from_secs(10) }
    }
}

const BESIDE: Parsed<Box<Endpoint>> = Parsed {
    kind: "the URL of a chat",
    example: "xmpp+wss://HOST/PATH?room=ROOM@SERVICE",
    parse: |text| match Endpoint::parse(text) {
        Ok(endpoint) if endpoint.protocol().part() == Part::Chat => Ok(Box::new(endpoint)),
        Ok(endpoint) => {
            Err(format!(" is {}, not a chat", endpoint.protocol().name()).as_str().into())
        }
        Err(error) => Err(Problem::of(error)),
    },
    write: |endpoint| endpoint.display(),
    schema: |_| {
        let xmpp = "[Xx][Mm][Pp][Pp]";
        let (chat, ws) = ("[Cc][Hh][Aa][Tt]", "[Ww][Ss][Ss]?");
        let pattern = format!(r"^(({xmpp}|{chat})\+{ws}|{chat}\+[Hh][Tt][Tt][Pp][Ss]?)://");
        json!({ "type": "string", "pattern": pattern })
    },
    is_removable: false,
};

const MOMENTS: By<Vec<ChatMoment>> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        fields.get(key).map(|node| moments(reader, node, &path))
    },
    write: |moments| {
        let moment = |moment: &ChatMoment| moment.write_keys().into_iter().collect::<Json>();
        Some(moments.iter().map(moment).collect())
    },
    schema: |generator| {
        let moment = generator.subschema_for::<Table<ChatMoment>>().to_value();
        json!({ "type": "array", "maxItems": MOMENTS_MAX, "items": moment })
    },
};

const ORIGIN: Parsed<String> = Parsed {
    parse: |text| {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        match url.map(|url| url.origin().ascii_serialization()) {
            Some(origin) if origin == text.trim_end_matches('/') => Ok(origin),
            _ => Err(" is not an origin".into()),
        }
    },
    schema: |_| json!({ "type": "string", "pattern": "^https?://" }),
    ..text("an origin", "https://www.example.com")
};

/// With this key the other one is read.
const NICK_CHANGE: By<ChatRenames> = By {
    read: |reader, fields, _| renames(reader, fields),
    write: |renames| Some(format!("{}%", f64::from(renames.share_milli) / 10.0).into()),
    schema: |_| json!({ "type": "string", "pattern": r"^[0-9.]+\s*%$" }),
};

const NICK_CHANGE_WITHIN: By<ChatRenames> = By {
    read: |_, _, _| None,
    write: |renames| Some(units::write_duration(renames.within).into()),
    schema: time_schema,
};

const TEMPLATE: Inner = Inner("a table such as { join = [\"JOIN {room}\"], say = \"SAY {text}\" }");

/// Who chooses a nickname, and when.
fn renames(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<ChatRenames> {
    let share = reader.quantity(fields, "nick_change", "30%", units::percent);
    let within = reader.quantity(fields, "nick_change_within", "1m", units::duration);
    let (share_at, within_at) =
        (fields.span_of("nick_change"), fields.span_of("nick_change_within"));
    if share_at.is_none() && within_at.is_some() {
        let message = format!(
            "`{}` has no effect: nobody changes a nickname",
            fields.path_of("nick_change_within")
        );
        reader.fail(within_at, message, "remove it, or write nick_change = \"30%\"");
    }
    let share = share?;
    if share > 1.0 {
        let message = format!("`{}` is more than 100 %", fields.path_of("nick_change"));
        reader.fail(share_at, message, "write for example nick_change = \"30%\"");
        return None;
    }
    let share_milli = (share * 1e3).round() as u32;
    Some(ChatRenames { share_milli, within: within.unwrap_or(RENAMED_WITHIN) })
}

fn moments(reader: &mut Reader, node: &Node, path: &str) -> Vec<ChatMoment> {
    let Value::List(items) = &node.value else {
        reader.fail(node.span, format!("`{path}` is not a list"), format!("write {LIST}"));
        return Vec::new();
    };
    if items.len() > MOMENTS_MAX {
        let message = format!("`{path}` has more than {MOMENTS_MAX} moments");
        reader.fail(node.span, message, "write fewer");
        return Vec::new();
    }
    let moment = |(index, item): (usize, &Node)| {
        let mut fields = reader.table(item, &format!("{path}.{index}"), LIST)?;
        Some(crate::keys::read(reader, &mut fields, ChatMoment::usual()))
    };
    items.iter().enumerate().filter_map(moment).collect()
}
