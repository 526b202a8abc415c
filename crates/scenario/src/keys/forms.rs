//! How values are written in a file.

use std::marker::PhantomData;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use throng_observation::Url;

use super::{Keyed, Table};
use crate::file;
use crate::read::{Fields, Node, Reader, token};
use crate::secret::{HIDDEN, TokenSource};
use crate::units::{self, UnitError};
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

/// A number with its unit, as text.
pub(crate) struct Quantity<V> {
    example: &'static str,
    parse: fn(&str) -> Result<V, UnitError>,
    write: fn(V) -> String,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// A length of time.
pub(crate) fn time(example: &'static str) -> Quantity<Duration> {
    Quantity {
        example,
        parse: units::duration,
        write: units::write_duration,
        schema: SchemaGenerator::subschema_for::<file::Duration>,
    }
}

/// Bits per second.
pub(crate) fn bit_rate(example: &'static str) -> Quantity<f64> {
    Quantity {
        example,
        parse: units::bit_rate,
        write: units::write_bit_rate,
        schema: SchemaGenerator::subschema_for::<file::BitRate>,
    }
}

/// Events per second, more than none.
pub(crate) fn rate(example: &'static str) -> Quantity<f64> {
    Quantity {
        example,
        parse: units::rate_above_0,
        write: |per_s| format!("{per_s}/s"),
        schema: SchemaGenerator::subschema_for::<file::Rate>,
    }
}

impl<V: Copy> Form<V> for Quantity<V> {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        reader.quantity(fields, key, self.example, self.parse)
    }

    fn write(&self, value: &V) -> Option<Json> {
        Some((self.write)(*value).into())
    }

    fn schema(&self, _of: PhantomData<V>, generator: &mut SchemaGenerator) -> Json {
        (self.schema)(generator).to_value()
    }
}

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

/// Text, with what is expected of it.
pub(crate) struct Text {
    pub(crate) expected: &'static str,
    /// What to write in place of an empty one; `None`: it may be empty.
    pub(crate) if_empty: Option<&'static str>,
}

impl Form<String> for Text {
    fn read(
        &self,
        reader: &mut Reader,
        fields: &mut Fields<'_>,
        key: &'static str,
    ) -> Option<String> {
        let (text, path, node) = reader.text_at(fields, key, self.expected)?;
        if let Some(help) = self.if_empty.filter(|_| text.is_empty()) {
            reader.fail(node.span, format!("`{path}` is empty"), help);
        }
        Some(text)
    }

    fn write(&self, value: &String) -> Option<Json> {
        Some(value.as_str().into())
    }

    fn schema(&self, _of: PhantomData<String>, _generator: &mut SchemaGenerator) -> Json {
        match self.if_empty {
            Some(_) => json!({ "type": "string", "minLength": 1 }),
            None => json!({ "type": "string" }),
        }
    }
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

/// A secret, or where it is kept. The secret itself is not written.
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
