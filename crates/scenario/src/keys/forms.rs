//! How values are written in a file.

use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use throng_observation::Url;

use super::{Keyed, Table};
use crate::file;
use crate::network::NetworkError;
use crate::read::{Fields, Node, Reader, token};
use crate::secret::{HIDDEN, TokenSource};
use crate::units;
use crate::url_template::WITH_NAMES;

/// The largest seed: TOML has no larger numbers.
pub(crate) const SEED_MAX: u64 = i64::MAX as u64;

/// A way to write a `V`.
pub(crate) trait Form<V> {
    /// `None`: the key is absent, or its value is wrong, which `reader` knows then.
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V>;

    /// `None`: there is nothing to write.
    fn write(&self, value: &V) -> Option<Json>;

    /// What is accepted.
    fn schema(&self, of: PhantomData<V>, generator: &mut SchemaGenerator) -> Json;
}

/// What is wrong with a text.
pub(crate) struct Problem {
    /// As it is said behind the path.
    what: String,
    /// What to write; `None`: the example.
    help: Option<String>,
}

impl Problem {
    /// That of a text about which there is more to say than what to write.
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: Some(help.into()) }
    }

    /// An error of another reader.
    pub(crate) fn of(error: impl Display) -> Self {
        Self { what: format!(": {error}"), help: None }
    }
}

impl From<&str> for Problem {
    fn from(what: &str) -> Self {
        Self { what: what.to_owned(), help: None }
    }
}

/// A value that is written as text.
pub(crate) struct Parsed<V> {
    /// What is expected.
    pub(crate) kind: &'static str,
    pub(crate) example: &'static str,
    pub(crate) parse: fn(&str) -> Result<V, Problem>,
    pub(crate) write: fn(&V) -> String,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Json,
    /// An empty override is no value: it removes that of the file.
    pub(crate) is_removable: bool,
}

impl<V> Parsed<V> {
    /// The value of a text that is at a path.
    pub(crate) fn of_text(
        &self,
        reader: &mut Reader,
        (text, path, node): (&str, &str, &Node),
    ) -> Option<V> {
        // Older folders have such texts too.
        let may_be_empty = node.span.source > 0 || reader.is_stored();
        if self.is_removable && text.is_empty() && may_be_empty {
            return None;
        }
        match (self.parse)(text) {
            Ok(value) => Some(value),
            Err(Problem { what, help }) => {
                let key = path.rsplit('.').next().unwrap_or_default();
                let help = help.unwrap_or_else(|| format!("write {key} = \"{}\"", self.example));
                reader.fail(node.span, format!("`{path}`{what}"), help);
                None
            }
        }
    }
}

impl<V> Form<V> for Parsed<V> {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        let expected = format!("{} such as \"{}\"", self.kind, self.example);
        let (text, path, node) = reader.text_at(fields, key, &expected)?;
        self.of_text(reader, (&text, &path, node))
    }

    fn write(&self, value: &V) -> Option<Json> {
        Some((self.write)(value).into())
    }

    fn schema(&self, _of: PhantomData<V>, generator: &mut SchemaGenerator) -> Json {
        (self.schema)(generator)
    }
}

/// What numbers with units are.
const WITH_UNIT: &str = "text with a unit";

/// A length of time.
pub(crate) const fn time(example: &'static str) -> Parsed<Duration> {
    Parsed {
        kind: WITH_UNIT,
        example,
        parse: |text| units::duration(text).map_err(Problem::of),
        write: |time| units::write_duration(*time),
        schema: time_schema,
        is_removable: false,
    }
}

/// Bits per second.
pub(crate) const fn bit_rate(example: &'static str) -> Parsed<f64> {
    Parsed {
        kind: WITH_UNIT,
        example,
        parse: |text| units::bit_rate(text).map_err(Problem::of),
        write: |bits_per_s| units::write_bit_rate(*bits_per_s),
        schema: |generator| generator.subschema_for::<file::BitRate>().to_value(),
        is_removable: false,
    }
}

/// Events per second, more than none.
pub(crate) const fn rate(example: &'static str) -> Parsed<f64> {
    Parsed {
        parse: |text| units::rate_above_0(text).map_err(Problem::of),
        write: |per_s| format!("{per_s}/s"),
        schema: |generator| generator.subschema_for::<file::Rate>().to_value(),
        ..bit_rate(example)
    }
}

/// Several such values, one or a list of as many.
pub(crate) struct Several<V> {
    pub(crate) of: Parsed<V>,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

impl<V> Form<Vec<V>> for Several<V> {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Vec<V>> {
        let (path, node) = (fields.path_of(key), fields.get(key)?);
        let expected = format!("a list of {} such as [\"{}\"]", self.of.kind, self.of.example);
        let texts = reader.texts(fields, key, &expected);
        let count = node.one_or_many().len();
        if count < self.least {
            reader.fail(node.span, format!("`{path}` is empty"), format!("write {expected}"));
        } else if count > self.most {
            let message = format!("`{path}` has more than {} entries", self.most);
            reader.fail(node.span, message, "remove some");
        }
        let value = |(text, node): &(String, &Node)| self.of.of_text(reader, (text, &path, node));
        Some(texts.iter().filter_map(value).collect())
    }

    fn write(&self, value: &Vec<V>) -> Option<Json> {
        Some(value.iter().map(self.of.write).collect())
    }

    fn schema(&self, _of: PhantomData<Vec<V>>, generator: &mut SchemaGenerator) -> Json {
        let (least, most, item) = (self.least, self.most, (self.of.schema)(generator));
        let list = json!({ "type": "array", "minItems": least, "maxItems": most, "items": item });
        json!({ "anyOf": [item, list] })
    }
}

/// Networks or ranges of addresses, which are called so.
pub(crate) const fn networks<V: FromStr<Err = NetworkError> + Display>(
    kind: &'static str,
    example: &'static str,
) -> Several<V> {
    let of: Parsed<V> = Parsed {
        kind,
        example,
        parse: |text| {
            let problem =
                |error: NetworkError| Problem::new(format!(": {}", error.message()), error.help());
            text.parse::<V>().map_err(problem)
        },
        write: V::to_string,
        schema: |_| json!({ "type": "string", "pattern": "^[-0-9A-Fa-f:./ ]+$" }),
        is_removable: false,
    };
    Several { of, least: 0, most: NETWORKS_MAX }
}
/// Most of a list.
const NETWORKS_MAX: usize = 10_000;

/// A whole number between two.
pub(crate) struct Whole(pub(crate) u64, pub(crate) u64);

impl<V: TryFrom<u64> + Into<u64> + Copy> Form<V> for Whole {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        reader.integer(fields, key, self.0, self.1)
    }

    fn write(&self, value: &V) -> Option<Json> {
        let number: u64 = (*value).into();
        Some(number.into())
    }

    fn schema(&self, _of: PhantomData<V>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "integer", "minimum": self.0, "maximum": self.1 })
    }
}

/// A number above 0.
pub(crate) const POSITIVE: By<f64> = By {
    read: Reader::positive,
    write: |number| Some((*number).into()),
    schema: |_| json!({ "type": "number", "exclusiveMinimum": 0 }),
};

/// A share from 0 to 1, with an example.
pub(crate) struct Share(pub(crate) &'static str);

impl Form<f64> for Share {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<f64> {
        reader.share(fields, key, self.0)
    }

    fn write(&self, value: &f64) -> Option<Json> {
        Some((*value).into())
    }

    fn schema(&self, _of: PhantomData<f64>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// The same, kept in thousandths.
pub(crate) struct ShareMilli(pub(crate) &'static str);

impl Form<u32> for ShareMilli {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<u32> {
        reader.share_milli(fields, key, self.0)
    }

    fn write(&self, value: &u32) -> Option<Json> {
        Some((f64::from(*value) / 1e3).into())
    }

    fn schema(&self, _of: PhantomData<u32>, generator: &mut SchemaGenerator) -> Json {
        Share(self.0).schema(PhantomData, generator)
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Form<bool> for Flag {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<bool> {
        reader.boolean(fields, key)
    }

    fn write(&self, value: &bool) -> Option<Json> {
        Some((*value).into())
    }

    fn schema(&self, _of: PhantomData<bool>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "boolean" })
    }
}

/// Text that may be given to the kernel: 1 to 4096 bytes, none of them 0.
pub(crate) const fn text(kind: &'static str, example: &'static str) -> Parsed<String> {
    Parsed {
        kind,
        example,
        parse: fit,
        write: String::clone,
        schema: |_| text_schema(r"^[^\x00]+$"),
        is_removable: true,
    }
}
/// The longest text, bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// Such a text.
pub(crate) fn fit(text: &str) -> Result<String, Problem> {
    match text.len() {
        0 => Err(" is empty".into()),
        1..=TEXT_BYTES_MAX if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(" is too long, or has a zero byte".into()),
    }
}

/// The schema of such texts that have a pattern.
pub(crate) fn text_schema(pattern: &str) -> Json {
    json!({ "type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX, "pattern": pattern })
}

/// The name of a part of the run in reports. Its reader checks that it [`is_name`], and that no
/// other part has it.
pub(crate) const NAME: By<String> = By {
    read: |reader, fields, key| reader.text_of(fields, key, "text"),
    write: |name| Some(name.as_str().into()),
    schema: |_| json!({ "type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX }),
};
/// The longest one.
const NAME_CHARS_MAX: usize = 64;

/// Whether a text may be such a name.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// A URL of some schemes without a user. It is written without what may be a secret of its query.
pub(crate) struct Address {
    pub(crate) schemes: &'static [&'static str],
    pub(crate) example: &'static str,
}

impl Form<Url> for Address {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<Url> {
        let (text, path, node) = reader.text_at(fields, key, self.example)?;
        let is_one = |url: &Url| self.schemes.contains(&url.scheme()) && url.has_host();
        let Some(url) = Url::parse(&text).ok().filter(is_one) else {
            let message = format!("`{path}` is not a URL of {}", self.schemes.join(": or "));
            reader.fail(node.span, message, format!("write {key} = \"{}\"", self.example));
            return None;
        };
        let problem = if reader.is_redacted() {
            // Earlier versions took a user, and stored it.
            return Some(url);
        } else if text.contains(HIDDEN) {
            "was redacted when this scenario was stored"
        } else if url.has_user() {
            "has a user name or password, which browsers do not send"
        } else {
            return Some(url);
        };
        let help = format!("write {key} = \"{}\"", self.example);
        reader.fail(node.span, format!("`{path}` {problem}"), help);
        None
    }

    fn write(&self, value: &Url) -> Option<Json> {
        Some(value.shown(WITH_NAMES).into())
    }

    fn schema(&self, _of: PhantomData<Url>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "string", "pattern": url_pattern(self.schemes) })
    }
}

/// The pattern of URLs of these schemes, which are in small letters, whatever their case.
pub(crate) fn url_pattern(schemes: &[&str]) -> String {
    let schemes: Vec<String> = schemes.iter().map(|scheme| in_any_case(scheme)).collect();
    format!("^({})://", schemes.join("|"))
}

/// The pattern of a word in small letters, whatever its case.
pub(crate) fn in_any_case(word: &str) -> String {
    let pattern = |c: char| match c {
        'a'..='z' => format!("[{}{c}]", c.to_ascii_uppercase()),
        '.' | '+' => format!("\\{c}"),
        c => c.to_string(),
    };
    word.chars().map(pattern).collect()
}

/// A secret, or where it is kept. In place of the secret `…` is written, which nobody can run.
pub(crate) const SECRET: By<TokenSource> =
    By { write: |secret| Some(secret.to_string().into()), ..SECRET_LEFT_OUT };

/// The same, but a secret itself is not written.
pub(crate) const SECRET_LEFT_OUT: By<TokenSource> = By {
    read: |reader, fields, key| {
        let path = fields.path_of(key);
        token(reader, fields.get(key)?, &path)
    },
    write: |secret| (!secret.is_secret()).then(|| secret.to_string().into()),
    schema: |_| json!({ "type": "string", "minLength": 1 }),
};

/// A value that may be absent.
pub(crate) struct Maybe<F>(pub(crate) F);

impl<V, F: Form<V>> Form<Option<V>> for Maybe<F> {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<Option<V>> {
        self.0.read(reader, fields, key).map(Some)
    }

    fn write(&self, value: &Option<V>) -> Option<Json> {
        self.0.write(value.as_ref()?)
    }

    fn schema(&self, _of: PhantomData<Option<V>>, generator: &mut SchemaGenerator) -> Json {
        Form::<V>::schema(&self.0, PhantomData, generator)
    }
}

/// A table of declared keys, with what is expected.
pub(crate) struct Inner(pub(crate) &'static str);

impl<T: Keyed> Form<T> for Inner {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<T> {
        super::optional(reader, fields, key, self.0)
    }

    fn write(&self, value: &T) -> Option<Json> {
        serde_json::to_value(Table::of(value)).ok()
    }

    fn schema(&self, _of: PhantomData<T>, generator: &mut SchemaGenerator) -> Json {
        generator.subschema_for::<Table<T>>().to_value()
    }
}

/// A value of its own kind: what reads it, at its path, and what it is in a file, of a type that
/// says what is accepted too.
pub(crate) struct AsFile<V, W> {
    pub(crate) read: fn(&mut Reader, &Node, &str) -> Option<V>,
    pub(crate) write: fn(&V) -> W,
}

impl<V, W: Serialize + JsonSchema> Form<V> for AsFile<V, W> {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        let path = fields.path_of(key);
        (self.read)(reader, fields.get(key)?, &path)
    }

    fn write(&self, value: &V) -> Option<Json> {
        serde_json::to_value((self.write)(value)).ok()
    }

    fn schema(&self, _of: PhantomData<V>, generator: &mut SchemaGenerator) -> Json {
        generator.subschema_for::<W>().to_value()
    }
}

/// A value of its own kind: functions that read, write and describe it.
pub(crate) struct By<V> {
    pub(crate) read: fn(&mut Reader, &mut Fields<'_>, &'static str) -> Option<V>,
    pub(crate) write: fn(&V) -> Option<Json>,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Json,
}

impl<V> Form<V> for By<V> {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        (self.read)(reader, fields, key)
    }

    fn write(&self, value: &V) -> Option<Json> {
        (self.write)(value)
    }

    fn schema(&self, _of: PhantomData<V>, generator: &mut SchemaGenerator) -> Json {
        (self.schema)(generator)
    }
}

/// A length of time, for the schema of a [`By`].
pub(crate) fn time_schema(generator: &mut SchemaGenerator) -> Json {
    generator.subschema_for::<file::Duration>().to_value()
}
