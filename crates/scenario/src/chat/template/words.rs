//! The texts of a `chat.template`, in a file: what they may have in them, and that what may be a
//! secret of them is not stored.

use std::marker::PhantomData;

use schemars::SchemaGenerator;
use serde_json::{Value as Json, json};

use super::{ChatText, ChatVariable};
use crate::keys::Form;
use crate::masked::{has_masked_words, masked_words};
use crate::read::http::is_value;
use crate::read::{Fields, Node, Reader};

/// Most texts of a list.
const TEXTS_MAX: usize = 32;
/// Longest text, characters.
const CHARS_MAX: usize = 4_096;

/// What a text about the server and the participant may have in it.
pub(super) const WHO: [ChatVariable; 3] =
    [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room];
/// What is sent may have the token too.
pub(super) const SENT: [ChatVariable; 4] =
    [ChatVariable::Nick, ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];
/// What is for a whole connection has no nickname: it may change meanwhile.
const OF_CONNECTION: [ChatVariable; 3] =
    [ChatVariable::Number, ChatVariable::Room, ChatVariable::Token];

/// A text in which some variables have a value.
#[derive(Clone, Copy)]
pub(super) struct Words {
    allowed: &'static [ChatVariable],
    is_one: fn(&str) -> bool,
    /// The texts that it takes, for the schema.
    pattern: &'static str,
    /// What is wrong with others, and what to write.
    problem: &'static str,
    example: &'static str,
}

/// Any text.
pub(super) const fn words(allowed: &'static [ChatVariable]) -> Words {
    Words { allowed, is_one: |_| true, pattern: "", problem: "", example: "" }
}

/// What is said.
pub(super) const SAY: Words = Words {
    is_one: |text| text.contains("{text}"),
    pattern: r"\{text\}",
    problem: "has no `{text}`: messages could not be recognised",
    example: "\"SAY {text}\"",
    ..words(&[
        ChatVariable::Nick,
        ChatVariable::Number,
        ChatVariable::Room,
        ChatVariable::Token,
        ChatVariable::Text,
    ])
};

/// A path on the target's server. The consent of that server is for no other.
pub(super) const fn path(example: &'static str) -> Words {
    Words {
        is_one: |text| {
            let is_other = |c: char| c.is_ascii_control() || "\\# ".contains(c);
            text.starts_with('/') && !text.starts_with("//") && !text.contains(is_other)
        },
        pattern: r"^/([^/\\# \x00-\x1f\x7f][^\\# \x00-\x1f\x7f]*)?$",
        problem: "is not a path on the target's server",
        example,
        ..words(&SENT)
    }
}

/// A subprotocol of a WebSocket: a token (RFC 6455, section 4.1), with the braces of variables.
pub(super) const SUBPROTOCOL: Words = Words {
    is_one: |text| {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~{}".contains(c);
        text.chars().all(is_token)
    },
    pattern: r"^[!#$%&'*+.^_`|~{}0-9A-Za-z-]+$",
    problem: "has characters that no subprotocol has",
    example: "\"text.ircv3.net\"",
    ..words(&OF_CONNECTION)
};

/// The type of a body.
pub(super) const CONTENT_TYPE: Words = Words {
    is_one: |text| {
        let parts = text.split_once('/');
        parts.is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty()) && is_value(text)
    },
    pattern: r"^[!-.0-~][ -.0-~]*/[ -~]*[!-~]$",
    problem: "is not the type of a body",
    example: "\"application/json\"",
    ..words(&[])
};

/// The value of a header.
pub(super) const HEADER: Words = Words {
    is_one: is_value,
    pattern: r"^[!-~]([ -~]*[!-~])?$",
    problem: "has characters that are not printable ASCII, or begins or ends with a space",
    example: "\"Bearer {token}\"",
    ..words(&OF_CONNECTION)
};

impl Words {
    /// The text that is at `path`.
    pub(super) fn of_node(self, reader: &mut Reader, node: &Node, path: &str) -> Option<ChatText> {
        let written = reader.text(node, path, "text")?;
        self.of_text(reader, node, path, &written)
    }

    /// The same where the text is known.
    pub(super) fn of_text(
        self,
        reader: &mut Reader,
        node: &Node,
        path: &str,
        written: &str,
    ) -> Option<ChatText> {
        if reader.is_redacted() {
            return Some(self.of_stored(written));
        }
        let is_masked = has_masked_words(&[written.to_owned()]);
        let key = path.rsplit('.').next().unwrap_or_default();
        let (problem, help) = if written.is_empty() || written.chars().count() > CHARS_MAX {
            let problem = format!("is empty, or longer than {CHARS_MAX} characters");
            (problem, "write the text of one message".to_owned())
        } else if is_masked {
            let help = "write {token} for what is secret, and target.token = \"env:NAME\"";
            ("was redacted when this scenario was stored".to_owned(), help.to_owned())
        } else if !(self.is_one)(written) {
            (self.problem.to_owned(), format!("write {key} = {}", self.example))
        } else {
            match ChatText::parse(written, self.allowed) {
                Ok(text) => return Some(text),
                Err(error) => {
                    reader.fail(node.span, format!("`{path}`: {error}"), error.help);
                    return None;
                }
            }
        };
        reader.fail(node.span, format!("`{path}` {problem}"), help);
        None
    }

    /// A text that was stored. What was masked may be no longer of its kind, and earlier versions
    /// took more, of which braces are text.
    fn of_stored(self, written: &str) -> ChatText {
        ChatText::parse(written, self.allowed).unwrap_or_else(|_| ChatText::plain(written))
    }
}

impl Form<ChatText> for Words {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<ChatText> {
        let path = fields.path_of(key);
        self.of_node(reader, fields.get(key)?, &path)
    }

    fn write(&self, value: &ChatText) -> Option<Json> {
        Some(value.to_string().into())
    }

    fn schema(&self, _of: PhantomData<ChatText>, _generator: &mut SchemaGenerator) -> Json {
        let mut schema = json!({ "type": "string", "minLength": 1, "maxLength": CHARS_MAX });
        if let (Json::Object(schema), false) = (&mut schema, self.pattern.is_empty()) {
            schema.insert("pattern".into(), self.pattern.into());
        }
        schema
    }
}

/// One such text, or a list of several, with an example.
pub(super) struct OneOrMore(pub(super) Words, pub(super) &'static str);

impl Form<Vec<ChatText>> for OneOrMore {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Vec<ChatText>> {
        let path = fields.path_of(key);
        let texts = reader.texts(fields, key, self.1);
        if texts.len() > TEXTS_MAX {
            let message = format!("`{path}` has more than {TEXTS_MAX} texts");
            reader.fail(fields.span_of(key), message, "write fewer");
            return None;
        }
        let text = |(written, node): &(String, &Node)| self.0.of_text(reader, node, &path, written);
        Some(texts.iter().filter_map(text).collect())
    }

    fn write(&self, value: &Vec<ChatText>) -> Option<Json> {
        let written: Vec<String> = value.iter().map(|text| text.written().to_owned()).collect();
        Some(masked_words(&written).into())
    }

    fn schema(&self, _of: PhantomData<Vec<ChatText>>, generator: &mut SchemaGenerator) -> Json {
        let text = self.0.schema(PhantomData, generator);
        let several = json!({ "type": "array", "maxItems": TEXTS_MAX, "items": &text });
        json!({ "anyOf": [text, several] })
    }
}
