//! URL templates of segments (ISO/IEC 23009-1 section 5.3.9.4.4).

use std::borrow::Cow;
use std::fmt::Write;

use crate::manifest::excerpt;

/// Digits that a format may ask for.
const WIDTH_MAX: usize = 64;

/// Bytes of a template.
const LEN_MAX: usize = 16 << 10;

/// A template, with what is the same for all segments of a representation already in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlTemplate(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// With so many digits at least.
    Number(usize),
    Time(usize),
}

impl UrlTemplate {
    /// Reads a template of the representation with this id and bandwidth.
    pub(super) fn parse(
        text: &str,
        id: &str,
        bandwidth_bps: u64,
    ) -> Result<Self, Cow<'static, str>> {
        if text.len() > LEN_MAX {
            return Err(format!("has a template of {} bytes", text.len()).into());
        }
        let mut pieces = Self(Vec::new());
        let mut parts = text.split('$');
        pieces.text(parts.next().unwrap_or_default());
        while let Some(identifier) = parts.next() {
            let after = parts.next();
            let after = after
                .ok_or_else(|| format!("has a template with a single $: \"{}\"", excerpt(text)))?;
            let (name, format) = identifier
                .split_once('%')
                .map_or((identifier, None), |(name, format)| (name, Some(format)));
            let width = format.map_or(Some(1), |format| {
                let width = format.strip_prefix('0')?.strip_suffix('d')?;
                width.parse().ok().filter(|width| *width <= WIDTH_MAX)
            });
            let width = width.ok_or_else(|| {
                format!("has a template with the format of ${}$", excerpt(identifier))
            })?;
            match name {
                "" => pieces.text("$"),
                "RepresentationID" => pieces.text(id),
                "Bandwidth" => pieces.text(&format!("{bandwidth_bps:0width$}")),
                "Number" => pieces.0.push(Piece::Number(width)),
                "Time" => pieces.0.push(Piece::Time(width)),
                _ => {
                    return Err(
                        format!("has a template with the unknown ${}$", excerpt(name)).into()
                    );
                }
            }
            pieces.text(after);
        }
        Ok(pieces)
    }

    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    /// The URL of a segment, by its number and its time in ticks.
    #[must_use]
    pub fn url(&self, number: u64, time: u64) -> String {
        let mut url = String::new();
        for piece in &self.0 {
            let _ = match piece {
                Piece::Text(text) => url.write_str(text),
                Piece::Number(width) => write!(url, "{number:0width$}"),
                Piece::Time(width) => write!(url, "{time:0width$}"),
            };
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_replaced() {
        for (text, expect) in [
            ("$RepresentationID$/$Number$.m4s", "v 1/7.m4s"),
            ("seg-$Number%05d$-$Time%012d$.m4s", "seg-00007-000000090000.m4s"),
            ("$Bandwidth$/$Time$$$.mp4", "128000/90000$.mp4"),
            ("$Bandwidth%08d$", "00128000"),
            ("plain.mp4", "plain.mp4"),
            ("", ""),
        ] {
            assert_eq!(
                UrlTemplate::parse(text, "v 1", 128_000).unwrap().url(7, 90_000),
                expect,
                "{text}"
            );
        }
        for (text, expect) in [
            ("a$Number", "has a template with a single $: \"a$Number\""),
            ("$SubNumber$", "has a template with the unknown $SubNumber$"),
            ("$Number%x$", "has a template with the format of $Number%x$"),
            ("$Number%0999d$", "has a template with the format of $Number%0999d$"),
        ] {
            assert_eq!(UrlTemplate::parse(text, "", 0).unwrap_err(), expect);
        }
    }
}
