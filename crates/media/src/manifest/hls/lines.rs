//! The lines of a playlist, with variables replaced (RFC 8216bis section 4.3).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Variables;
use super::attributes::Attributes;
use crate::manifest::ManifestError;

/// Bytes of a line, with variables replaced.
const LINE_LEN_MAX: usize = 64 << 10;

/// Bytes that variables may add to a playlist.
const ADDED_MAX: usize = 32 << 20;

/// Variables of a playlist.
const VARIABLES_MAX: usize = 1_000;

/// A line that has a meaning.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// Its number, from 1 on.
    pub(super) number: u32,
    pub(super) what: What<'a>,
}

#[derive(Clone, Debug)]
pub(super) enum What<'a> {
    /// A tag without its `#`, and what follows the colon.
    Tag(&'a str, Cow<'a, str>),
    Uri(Cow<'a, str>),
}

impl Line<'_> {
    pub(super) fn error(&self, problem: impl Into<Cow<'static, str>>) -> ManifestError {
        let place = match &self.what {
            What::Tag(tag, _) => format!("#{tag}"),
            What::Uri(_) => "URI".into(),
        };
        ManifestError::new(self.number, place, problem)
    }
}

/// Reads lines one by one; takes note of variables.
pub(super) struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    outside: &'a Variables,
    pub(super) defined: BTreeMap<String, String>,
    added: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str, outside: &'a Variables) -> Self {
        Self { lines: text.lines().enumerate(), outside, defined: BTreeMap::new(), added: 0 }
    }

    /// The next line with a tag or a URI.
    pub(super) fn next(&mut self) -> Result<Option<Line<'a>>, ManifestError> {
        while let Some((index, text)) = self.lines.next() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let text = text.trim();
            if text.len() > LINE_LEN_MAX {
                return Err(ManifestError::new(
                    number,
                    "line",
                    format!("has more than {LINE_LEN_MAX} bytes"),
                ));
            }
            let (tag, value) = match text.strip_prefix('#') {
                Some(tag) if tag.starts_with("EXT") => tag.split_once(':').unwrap_or((tag, "")),
                None if !text.is_empty() => ("", text),
                _ => continue,
            };
            let (value, added) = replace(value, &self.defined)
                .map_err(|problem| ManifestError::new(number, format!("#{tag}"), problem))?;
            self.added += added;
            if self.added > ADDED_MAX {
                return Err(ManifestError::new(
                    number,
                    "variables",
                    "make the playlist larger than can be read",
                ));
            }
            let what = if tag.is_empty() { What::Uri(value) } else { What::Tag(tag, value) };
            let line = Line { number, what };
            if tag == "EXT-X-DEFINE" {
                self.define(&line)?;
                continue;
            }
            return Ok(Some(line));
        }
        Ok(None)
    }

    /// `EXT-X-DEFINE` (section 4.4.2.3).
    fn define(&mut self, line: &Line<'_>) -> Result<(), ManifestError> {
        let What::Tag(_, value) = &line.what else { return Ok(()) };
        let attributes = Attributes::parse(value).map_err(|problem| line.error(problem))?;
        let (name, value) = if let Some(name) = attributes.get("NAME") {
            (name, attributes.get("VALUE").unwrap_or_default())
        } else if let Some(name) = attributes.get("IMPORT") {
            let value = self.outside.imported.get(name).map(String::as_str);
            (
                name,
                value.ok_or_else(|| {
                    line.error(format!("imports {name:.60}, which the master playlist has not"))
                })?,
            )
        } else if let Some(name) = attributes.get("QUERYPARAM") {
            let value = self.outside.query.get(name).map(String::as_str);
            (
                name,
                value.ok_or_else(|| line.error(format!("needs the query parameter {name:.60}")))?,
            )
        } else {
            return Err(line.error("has none of NAME, IMPORT, QUERYPARAM"));
        };
        if self.defined.len() >= VARIABLES_MAX {
            return Err(line.error(format!("is one of more than {VARIABLES_MAX}")));
        }
        self.defined.insert(name.to_owned(), value.to_owned());
        Ok(())
    }
}

/// Replaces `{$name}` once: what variables contain is not looked at again. Also the bytes that this
/// added.
fn replace<'a>(
    text: &'a str,
    variables: &BTreeMap<String, String>,
) -> Result<(Cow<'a, str>, usize), Cow<'static, str>> {
    if variables.is_empty() || !text.contains("{$") {
        return Ok((Cow::Borrowed(text), 0));
    }
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{$") {
        out.push_str(before);
        let (name, after) = after.split_once('}').ok_or("has a variable that does not end")?;
        let value =
            variables.get(name).ok_or_else(|| format!("has an undefined variable {name:.60}"))?;
        out.push_str(value);
        rest = after;
        if out.len() > LINE_LEN_MAX {
            return Err("becomes too long by its variables".into());
        }
    }
    out.push_str(rest);
    let added = out.len();
    Ok((Cow::Owned(out), added))
}
