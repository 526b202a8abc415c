//! Who sends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attribute;

/// The name of the instrumentation scope, and of the service unless another is given.
const NAME: &str = "throng";

/// The resource that all is of, and the scope that measured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    attributes: BTreeMap<String, String>,
    version: String,
}

impl Resource {
    /// This version of throng; `instance` tells it from others that send at the same time.
    #[must_use]
    pub fn new(version: &str, instance: &str) -> Self {
        let known = [
            ("service.name", NAME),
            ("service.version", version),
            ("service.instance.id", instance),
        ];
        let attributes = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { attributes: attributes.into(), version: version.to_owned() }
    }

    /// With an attribute, in place of the one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.attributes.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A document: `all` has `scopes`, of which each has `items`.
    pub(super) fn document(&self, all: &str, scopes: &str, items: (&str, Vec<Value>)) -> String {
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(name, value)| attribute::plain(name, value)).collect();
        let (items, list) = items;
        let scope = json!({ "name": NAME, "version": self.version });
        let scope = json!({ "scope": scope, items: list });
        let resource = json!({ "attributes": attributes });
        json!({ all: [{ "resource": resource, scopes: [scope] }] }).to_string()
    }
}
