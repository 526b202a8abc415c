//! A small tree of an XML document: elements with their attributes and text.
//!
//! Document type definitions are refused, so that no entities can be declared; those of XML itself
//! are replaced.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::manifest::ManifestError;

/// Elements in elements; an MPD has about ten.
const DEPTH_MAX: usize = 32;

/// Elements of a document: a day of segments of two seconds in ten representations.
const ELEMENTS_MAX: usize = 500_000;

/// An element.
#[derive(Clone, Debug, Default)]
pub(super) struct Element {
    /// Its name, without a namespace prefix.
    pub(super) name: String,
    /// Where it begins.
    pub(super) line: u32,
    attributes: Vec<(String, String)>,
    /// Its text, without that of its children.
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// The value of an attribute, named with its prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn children_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(super) fn error(
        &self,
        problem: impl Into<std::borrow::Cow<'static, str>>,
    ) -> ManifestError {
        ManifestError::new(self.line, &self.name, problem)
    }
}

/// Reads a document; returns its root.
pub(super) fn read(text: &str) -> Result<Element, ManifestError> {
    let mut reader = Reader::from_str(text);
    let mut lines = LineCounter { text, at: 0, line: 1 };
    let mut open: Vec<Element> = Vec::new();
    let mut count = 0;
    loop {
        let line = lines.at(reader.buffer_position());
        let event = reader.read_event().map_err(|error| {
            let line = lines.at(reader.error_position());
            ManifestError::new(line, "XML", format!("is malformed: {error}"))
        })?;
        let closed = match event {
            Event::Start(start) => {
                open.push(element(&start, line, &mut count)?);
                if open.len() > DEPTH_MAX {
                    return Err(ManifestError::new(
                        line,
                        "XML",
                        format!("has elements more than {DEPTH_MAX} deep"),
                    ));
                }
                None
            }
            Event::Empty(start) => Some(element(&start, line, &mut count)?),
            Event::End(_) => open.pop(),
            Event::Text(text) => {
                append(&mut open, text.decode().ok().as_deref().unwrap_or_default());
                None
            }
            Event::CData(text) => {
                append(&mut open, text.decode().ok().as_deref().unwrap_or_default());
                None
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap_or_default();
                let known = match reference.resolve_char_ref() {
                    Ok(Some(c)) => Some(c.to_string()),
                    _ => quick_xml::escape::resolve_xml_entity(&name).map(str::to_owned),
                };
                let unknown =
                    || ManifestError::new(line, "XML", "uses an entity that XML does not define");
                append(&mut open, &known.ok_or_else(unknown)?);
                None
            }
            Event::DocType(_) => {
                return Err(ManifestError::new(
                    line,
                    "XML",
                    "has a document type definition, which is not read",
                )
                .unsupported());
            }
            Event::Eof => {
                return Err(ManifestError::new(line, "XML", "ends before its root element does"));
            }
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => None,
        };
        let Some(closed) = closed else { continue };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => return Ok(closed),
        }
    }
}

fn append(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn element(start: &BytesStart<'_>, line: u32, count: &mut usize) -> Result<Element, ManifestError> {
    *count += 1;
    if *count > ELEMENTS_MAX {
        return Err(ManifestError::new(
            line,
            "XML",
            format!("has more than {ELEMENTS_MAX} elements"),
        ));
    }
    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
    let mut element = Element { name, line, ..Element::default() };
    for attribute in start.attributes() {
        let attribute = attribute
            .map_err(|error| element.error(format!("has a malformed attribute: {error}")))?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value =
            value.map_err(|error| element.error(format!("has a malformed {key}: {error}")))?;
        element.attributes.push((key, value.into_owned()));
    }
    Ok(element)
}

/// Counts lines up to a place, which only moves on.
struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl LineCounter<'_> {
    fn at(&mut self, place: u64) -> u32 {
        let place = usize::try_from(place).unwrap_or(usize::MAX).min(self.text.len());
        let passed = self.text.as_bytes().get(self.at..place).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.at = self.at.max(place);
        self.line
    }
}
