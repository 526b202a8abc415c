//! `profile` of a `[[watch]]` in a file.

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::forms::LIST_MAX;
use super::{Moment, ProfileRequest, Watch};
use crate::keys::Usual::{Required, StoredSaid};
use crate::keys::{
    By, Form as _, Keyed, Named as _, Parsed, Problem, Table, Word, keys, time, time_schema,
};
use crate::read::{Fields, Node, Reader, Value};
use crate::suggestion::nearest;
use crate::units;

const EXAMPLE: &str =
    "\"baseline\", \"full\", \"fail\", { at = \"30s\", for = \"10s\" }, or a list of them";

/// The shortest and the longest profile.
const PROFILE_TIME: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// A profile is the name of a moment, or a table.
pub(super) const PROFILE: By<Vec<ProfileRequest>> = By {
    read: profile,
    write: |requests| Some(requests.iter().map(written).collect()),
    schema: |generator| {
        let name = Word.schema(PhantomData::<Moment>, generator);
        let table = generator.subschema_for::<Table<ProfileRequest>>().to_value();
        let one = json!({ "anyOf": [name, table] });
        json!({ "anyOf": [one, { "type": "array", "maxItems": LIST_MAX, "items": one }] })
    },
};

impl Keyed for ProfileRequest {
    const NAME: &'static str = "ProfileTable";
    const MEANING: &'static str = "A moment and a duration.";

    keys! {
        /// `"baseline"`, `"full"`, `"fail"`, or a time after the first intended join, `"30s"`
        "at": moment = MOMENT, Required("write for example { at = \"30s\", for = \"10s\" }");
        /// how long, 1 s to 5 min
        "for": duration = time("10s"), StoredSaid("`\"10s\"`, of `\"baseline\"` `\"3s\"`");
    }

    fn usual() -> Self {
        Self { moment: Moment::Full, duration: Watch::PROFILE_DURATION }
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if !(PROFILE_TIME.0..=PROFILE_TIME.1).contains(&self.duration) {
            let message = format!("`{}` must be from 1 s to 5 min", fields.path_of("for"));
            reader.fail(fields.span_of("for"), message, "write for = \"10s\"");
        }
    }
}

const MOMENT: Parsed<Moment> = Parsed {
    kind: "\"baseline\", \"full\", \"fail\", or a time",
    example: "30s",
    parse: |text| units::duration(text).map(Moment::At).or_else(|_| named(text)),
    write: Moment::name,
    schema: |generator| {
        let name = Word.schema(PhantomData::<Moment>, generator);
        json!({ "anyOf": [name, time_schema(generator)] })
    },
    is_removable: false,
};

/// The moment of a name.
fn named(name: &str) -> Result<Moment, Problem> {
    Moment::of_name(name).ok_or_else(|| {
        let help = match nearest(name, Moment::names().into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {EXAMPLE}"),
        };
        let shown: String = name.chars().take(60).collect();
        Problem::new(format!(": unknown moment `{shown}`"), help)
    })
}

fn profile(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Option<Vec<ProfileRequest>> {
    let path = fields.path_of(key);
    let node = fields.get(key)?;
    let items = node.one_or_many();
    if items.len() > LIST_MAX {
        let message = format!("`{path}` has more than {LIST_MAX} profiles");
        reader.fail(node.span, message, "remove some");
        return None;
    }
    Some(items.iter().filter_map(|item| request(reader, item, &path)).collect())
}

fn request(reader: &mut Reader, node: &Node, path: &str) -> Option<ProfileRequest> {
    if let Value::Text(text) = &node.value {
        let name = Parsed { parse: named, ..MOMENT };
        let moment = name.of_text(reader, (text, path, node))?;
        return Some(ProfileRequest { duration: moment.usual_duration(), moment });
    }
    let mut fields = reader.table(node, path, EXAMPLE)?;
    let request = crate::keys::read(reader, &mut fields, ProfileRequest::usual());
    let duration = match fields.get("for") {
        Some(_) => request.duration,
        None => request.moment.usual_duration(),
    };
    Some(ProfileRequest { duration, ..request })
}

fn written(request: &ProfileRequest) -> Json {
    let ProfileRequest { moment, duration } = *request;
    if duration == moment.usual_duration() && !matches!(moment, Moment::At(_)) {
        return moment.named().into();
    }
    request.write_keys().into_iter().collect()
}
