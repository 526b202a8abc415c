//! Tables of a scenario file, each key of which is declared once, beside the type that it fills.
//! The reader, the writer, the schema and the line of the documentation follow from that.
//!
//! A new key of such a table is a field, its value in [`Keyed::usual`] and a row of `keys!`.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::read::{Fields, Reader};

mod forms;
pub(crate) use forms::{
    Address, AsFile, By, Flag, Form, Inner, Maybe, NAME, POSITIVE, Parsed, Problem, SECRET,
    SECRET_LEFT_OUT, SEED_MAX, Several, Share, ShareMilli, Whole, bit_rate, fit, in_any_case,
    is_name, networks, rate, text, text_schema, time, time_schema, url_pattern,
};
mod names;
pub(crate) use names::{NameOf, Named, Word, named};
#[cfg(test)]
mod border_tests;
#[cfg(test)]
mod docs_tests;
#[cfg(test)]
mod tests;

/// A table of a file, kept in `Self`.
pub(crate) trait Keyed: Sized {
    /// The name of its schema.
    const NAME: &'static str;
    /// What it is, in a sentence.
    const MEANING: &'static str;

    /// What a table without any key says.
    fn usual() -> Self;

    /// Its keys, in the order of the documentation. `keys!` makes this, the names and the ways
    /// to read and to write them.
    fn keys(generator: &mut SchemaGenerator) -> Vec<Key>;

    /// The names of these keys.
    fn names() -> &'static [&'static str];

    /// Keys that others depend on: they are read before the table is, and not written.
    fn by_hand(_generator: &mut SchemaGenerator) -> Vec<Key> {
        Vec::new()
    }

    /// Takes the values that a file has.
    fn read_keys(&mut self, reader: &mut Reader, fields: &mut Fields<'_>);

    /// The values as in a file, without secrets.
    fn write_keys(&self) -> Vec<(&'static str, Json)>;

    /// The keys of another type that are in the same table, behind its own; [`part`] reads them.
    fn beside(_generator: &mut SchemaGenerator) -> Vec<Key> {
        Vec::new()
    }

    /// Their values as in a file.
    fn write_beside(&self) -> Vec<(&'static str, Json)> {
        Vec::new()
    }

    /// Checks the values against each other.
    fn check(&self, _reader: &mut Reader, _fields: &mut Fields<'_>) {}
}

/// What holds where a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usual {
    /// It has to be there; what to write.
    Required(&'static str),
    /// The value of [`Keyed::usual`]; a stored scenario has the key nevertheless.
    Stored,
    /// The same, in the words of the documentation.
    StoredSaid(&'static str),
    /// The value of [`Keyed::usual`]; a stored scenario does not have the key.
    LeftOut,
    /// The same, in the words of the documentation.
    Said(&'static str),
}

/// The rows of a table: what the key means (its comment, in Markdown), the key, its field and form,
/// what holds where it is absent.
macro_rules! keys {
    ($(
        $(#[doc = $meaning:literal])+
        $key:literal: $($field:ident).+ = $form:expr, $usual:expr;
    )+) => {
        fn keys(generator: &mut ::schemars::SchemaGenerator) -> Vec<$crate::keys::Key> {
            let usual = <Self as $crate::keys::Keyed>::usual();
            vec![$(
                $crate::keys::Key::new(
                    ($key, $usual, concat!($($meaning),+)),
                    &$form,
                    &usual.$($field).+,
                    generator,
                )
            ),+]
        }

        fn names() -> &'static [&'static str] {
            &[$($key),+]
        }

        fn read_keys(
            &mut self,
            reader: &mut $crate::read::Reader,
            fields: &mut $crate::read::Fields<'_>,
        ) {
            $(
                if let Some(value) = $crate::keys::value(reader, fields, ($key, $usual), &$form) {
                    self.$($field).+ = value;
                }
            )+
        }

        fn write_keys(&self) -> Vec<(&'static str, ::serde_json::Value)> {
            let usual = <Self as $crate::keys::Keyed>::usual();
            let all = [$(
                $crate::keys::written(
                    ($key, $usual), &$form, &self.$($field).+, &usual.$($field).+,
                )
            ),+];
            all.into_iter().flatten().collect()
        }
    };
}
pub(crate) use keys;

/// A key of a table, for the schema and the documentation.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) usual: Usual,
    pub(crate) meaning: &'static str,
    /// The value where the key is absent, as in a file.
    pub(crate) default: Option<Json>,
    schema: Json,
}

impl Key {
    /// The key of a row.
    pub(crate) fn new<V>(
        (name, usual, meaning): (&'static str, Usual, &'static str),
        form: &impl Form<V>,
        of_usual: &V,
        generator: &mut SchemaGenerator,
    ) -> Self {
        let default = match usual {
            Usual::Stored | Usual::LeftOut => form.write(of_usual),
            Usual::Required(_) | Usual::StoredSaid(_) | Usual::Said(_) => None,
        };
        let (meaning, schema) = (meaning.trim_start(), form.schema(PhantomData::<V>, generator));
        Self { name, usual, meaning, default, schema }
    }

    fn into_property(self) -> (String, Json) {
        let mut schema = self.schema;
        if let Json::Object(schema) = &mut schema {
            let mut description = without_links(self.meaning);
            if let Usual::StoredSaid(words) | Usual::Said(words) = self.usual {
                description += "; default: ";
                description += words;
            }
            schema.insert("description".into(), description.into());
            schema.extend(self.default.map(|default| ("default".into(), default)));
        }
        (self.name.into(), schema)
    }
}

/// Markdown without the addresses of its links, and without references to what follows on a page.
fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, words, after)) = first_link(rest) {
        text.push_str(before);
        text.push_str(words);
        rest = after;
    }
    (text + rest).replace(", see below", "")
}

/// What stands before the first link, its words, and what stands after it.
fn first_link(markdown: &str) -> Option<(&str, &str, &str)> {
    let (until_words_end, address) = markdown.split_once("](")?;
    let (before, words) = until_words_end.rsplit_once('[')?;
    Some((before, words, address.split_once(')')?.1))
}

/// The value of a row; `None` where the key is absent or wrong, which `reader` knows then.
pub(crate) fn value<V>(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    (key, usual): (&'static str, Usual),
    form: &impl Form<V>,
) -> Option<V> {
    if let Usual::Required(help) = usual {
        reader.require(fields, key, help);
    }
    form.read(reader, fields, key)
}

/// A row as in a file; `None` where a file does not have the key.
pub(crate) fn written<V: PartialEq>(
    (key, usual): (&'static str, Usual),
    form: &impl Form<V>,
    value: &V,
    of_usual: &V,
) -> Option<(&'static str, Json)> {
    let is_left_out = matches!(usual, Usual::LeftOut | Usual::Said(_)) && value == of_usual;
    let written = if is_left_out { None } else { form.write(value) };
    written.map(|written| (key, written))
}

/// Reads the keys of a table; those that are absent keep their values of `table`.
pub(crate) fn read<T: Keyed>(reader: &mut Reader, fields: &mut Fields<'_>, mut table: T) -> T {
    fields.know(T::names());
    table.read_keys(reader, fields);
    table.check(reader, fields);
    reader.finish(fields);
    table
}

/// The values of a type whose keys are in the table of another; `None` if it has none of them.
pub(crate) fn part<T: Keyed>(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<T> {
    fields.know(T::names());
    if T::names().iter().copied().all(|key| fields.get(key).is_none()) {
        return None;
    }
    let mut part = T::usual();
    part.read_keys(reader, fields);
    Some(part)
}

/// The table `key`; its keys are absent where it is.
pub(crate) fn section<T: Keyed>(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    key: &'static str,
    usual: T,
) -> T {
    let mut fields = reader.section(top, key);
    read(reader, &mut fields, usual)
}

/// The table `key`; `None` if it is absent.
pub(crate) fn optional<T: Keyed>(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    key: &'static str,
    expected: &str,
) -> Option<T> {
    let path = top.path_of(key);
    let mut fields = reader.table(top.get(key)?, &path, expected)?;
    Some(read(reader, &mut fields, T::usual()))
}

/// A table as in a file; the type is that of its schema too.
pub(crate) struct Table<T> {
    keys: Vec<(&'static str, Json)>,
    of: PhantomData<T>,
}

impl<T: Keyed> Table<T> {
    /// That of `table`.
    pub(crate) fn of(table: &T) -> Self {
        let keys = table.write_keys().into_iter().chain(table.write_beside());
        Self { keys: keys.collect(), of: PhantomData }
    }
}

impl<T> Table<T> {
    /// Whether it has no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { keys: Vec::new(), of: PhantomData }
    }
}

impl<T> Serialize for Table<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.keys.iter().map(|(key, value)| (*key, value)))
    }
}

/// The keys of a table, in the order of the documentation.
fn all_keys<T: Keyed>(generator: &mut SchemaGenerator) -> Vec<Key> {
    let mut keys = T::by_hand(generator);
    keys.extend(T::keys(generator));
    keys.extend(T::beside(generator));
    keys
}

impl<T: Keyed> JsonSchema for Table<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = all_keys::<T>(generator);
        let is_required = |key: &&Key| matches!(key.usual, Usual::Required(_));
        let required: Vec<&str> = keys.iter().filter(is_required).map(|key| key.name).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("description".into(), T::MEANING.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        let properties: Map<String, Json> = keys.into_iter().map(Key::into_property).collect();
        schema.insert("properties".into(), properties.into());
        schema.insert("additionalProperties".into(), false.into());
        schema.into()
    }
}
