//! What is read of a HAR file. Everything else, such as recorded bodies, is passed over without
//! being kept.

use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{ENTRIES_MAX, HarError, beginning};

/// Most headers of a message, and most pages of a file.
const ITEMS_MAX: usize = 1_000;

/// Longest message of the JSON reader that is shown.
const PROBLEM_CHARS_MAX: usize = 300;

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with a `log`: a HAR file")]
pub(super) struct File {
    pub(super) log: Option<Log>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as `log`")]
pub(super) struct Log {
    pub(super) pages: List<Page, ITEMS_MAX>,
    pub(super) entries: List<Entry, ENTRIES_MAX>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as page")]
pub(super) struct Page {
    pub(super) id: Leaf,
    #[serde(rename = "startedDateTime")]
    pub(super) started: Leaf,
    #[serde(rename = "pageTimings")]
    pub(super) timings: PageTimings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as `pageTimings`")]
pub(super) struct PageTimings {
    #[serde(rename = "onLoad")]
    pub(super) on_load: Leaf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as entry")]
pub(super) struct Entry {
    pub(super) pageref: Leaf,
    #[serde(rename = "startedDateTime")]
    pub(super) started: Leaf,
    pub(super) time: Leaf,
    pub(super) request: Request,
    pub(super) response: Response,
    #[serde(rename = "_resourceType")]
    pub(super) resource_type: Leaf,
    #[serde(rename = "_fromCache")]
    pub(super) from_cache: Leaf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as `request`")]
pub(super) struct Request {
    pub(super) method: Leaf,
    pub(super) url: Leaf,
    pub(super) headers: List<Header, ITEMS_MAX>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as `response`")]
pub(super) struct Response {
    pub(super) status: Leaf,
    pub(super) headers: List<Header, ITEMS_MAX>,
    pub(super) content: Content,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as `response.content`")]
pub(super) struct Content {
    #[serde(rename = "mimeType")]
    pub(super) mime_type: Leaf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "an object as header")]
pub(super) struct Header {
    pub(super) name: Leaf,
    pub(super) value: Leaf,
}

impl Log {
    /// Reads a file.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, HarError> {
        // Some tools write a byte order mark.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let file: File = serde_json::from_slice(bytes).map_err(|error| {
            let said = without_quoted(&error.to_string());
            let shown = beginning(&said, PROBLEM_CHARS_MAX);
            HarError::of_file(format!("not a HAR file (JSON): {shown}"))
        })?;
        file.log.ok_or_else(|| {
            HarError::of_file(
                "`log` is missing: save it with \"Save all as HAR\" of the browser's network panel",
            )
        })
    }
}

/// What the JSON reader says without the text of the file that it quotes, which may be a secret
/// whatever it looks like.
fn without_quoted(said: &str) -> String {
    match said.split_once(": string \"").zip(said.rsplit_once("\", expected ")) {
        Some(((before, _), (_, expected))) => format!("{before}: a text, expected {expected}"),
        None => said.to_owned(),
    }
}

/// The value of a field. What is neither text nor a number is passed over, however large it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Leaf {
    #[default]
    Absent,
    Text(String),
    Number(f64),
    Other,
}

impl Leaf {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Leaf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LeafVisitor)
    }
}

struct LeafVisitor;

impl<'de> Visitor<'de> for LeafVisitor {
    type Value = Leaf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Leaf, E> {
        Ok(Leaf::Text(text.to_owned()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Leaf, E> {
        Ok(Leaf::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Leaf, E> {
        Ok(Leaf::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Leaf, E> {
        Ok(Leaf::Number(number as f64))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Leaf, E> {
        Ok(Leaf::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Leaf, E> {
        Ok(Leaf::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Leaf, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Leaf::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Leaf, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Leaf::Other)
    }
}

/// A list of at most `MAX` items; `null` is empty.
#[derive(Debug)]
pub(super) struct List<T, const MAX: usize>(pub(super) Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(std::marker::PhantomData))
    }
}

struct ListVisitor<T, const MAX: usize>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
    type Value = List<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        loop {
            let number = all.len() + 1;
            match items.next_element() {
                Ok(Some(_)) if number > MAX => {
                    return Err(A::Error::custom(format!("a list with more than {MAX} items")));
                }
                Ok(Some(item)) => all.push(item),
                Ok(None) => return Ok(List(all)),
                Err(error) => return Err(A::Error::custom(format!("item {number}: {error}"))),
            }
        }
    }
}
