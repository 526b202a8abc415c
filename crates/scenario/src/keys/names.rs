//! Enums whose values have names in a scenario.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::Form;
use crate::read::{Fields, Reader};

/// An enum whose values have names in a scenario; `named!` makes it.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// Its values with their names, in the order of the documentation.
    const ALL: &'static [(Self, &'static str)];

    /// The name of a value.
    fn named(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(value, _)| *value == self)
            .map(|(_, name)| *name)
            .unwrap_or_default()
    }

    /// The value of that name.
    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
    }

    /// All names.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|(_, name)| *name).collect()
    }
}

/// The names of the values of an enum in a scenario.
macro_rules! named {
    ($type:ident: $($value:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Its name in a scenario.
            #[must_use]
            pub fn name(self) -> &'static str {
                // The compiler asks for the name of a new value here.
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl $crate::keys::Named for $type {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$value, $name)),+];
        }
    };
}
pub(crate) use named;

/// The name of a value.
pub(crate) struct Word;

impl<V: Named> Form<V> for Word {
    fn read(&self, reader: &mut Reader, fields: &mut Fields<'_>, key: &'static str) -> Option<V> {
        reader.named(fields, key)
    }

    fn write(&self, value: &V) -> Option<Json> {
        Some(value.named().into())
    }

    fn schema(&self, _of: PhantomData<V>, _generator: &mut SchemaGenerator) -> Json {
        json!({ "type": "string", "enum": V::names() })
    }
}

/// The name of a value as in a file; the type is that of its schema too.
pub(crate) struct NameOf<V>(pub(crate) V);

impl<V: Named> Serialize for NameOf<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.named())
    }
}

impl<V: Named> JsonSchema for NameOf<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        V::names().join("_or_").into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = V::names();
        let mut schema = Map::new();
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), names.into());
        schema.into()
    }
}
