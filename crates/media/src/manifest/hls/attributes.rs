//! Attribute lists (RFC 8216 section 4.2).

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use crate::manifest::{ByteRange, excerpt, seconds_us};

/// The attributes of a tag.
#[derive(Clone, Debug)]
pub(super) struct Attributes<'a>(Vec<(&'a str, &'a str)>);

type Problem = Cow<'static, str>;

impl<'a> Attributes<'a> {
    /// Reads `NAME=value,NAME="value"`.
    pub(super) fn parse(text: &'a str) -> Result<Self, Problem> {
        let (mut list, mut rest) = (Vec::new(), text.trim());
        while !rest.is_empty() {
            let Some((name, value)) = rest.split_once('=') else {
                return Err(format!("has \"{}\" where an attribute is due", excerpt(rest)).into());
            };
            let value = value.trim_start();
            let (value, after) = if let Some(quoted) = value.strip_prefix('"') {
                let end = quoted.find('"');
                let end =
                    end.ok_or_else(|| format!("has no end of the quotes of {}", excerpt(name)))?;
                (&quoted[..end], quoted[end + 1..].split_once(',').map_or("", |(_, after)| after))
            } else {
                let (value, after) = value.split_once(',').unwrap_or((value, ""));
                (value.trim(), after)
            };
            list.push((name.trim(), value));
            rest = after.trim_start();
        }
        Ok(Self(list))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a str, Problem> {
        self.get(name).ok_or_else(|| format!("has no {name}").into())
    }

    /// `YES`; anything else is no.
    pub(super) fn is_yes(&self, name: &str) -> bool {
        self.get(name) == Some("YES")
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T::Err: Display,
    {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.trim().parse();
        number
            .map(Some)
            .map_err(|error| format!("has {name}=\"{}\": {error}", excerpt(text)).into())
    }

    /// Seconds, as microseconds.
    pub(super) fn time_us(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(seconds) = self.number::<f64>(name)? else { return Ok(None) };
        let time_us = seconds_us(seconds)
            .ok_or_else(|| format!("has {name}={seconds}, which is no duration"))?;
        Ok(Some(time_us))
    }

    pub(super) fn required_time_us(&self, name: &str) -> Result<u64, Problem> {
        self.time_us(name)?.ok_or_else(|| format!("has no {name}").into())
    }

    /// A byte range, the offset of which is `next` when it has none.
    pub(super) fn range(&self, next: u64) -> Result<Option<ByteRange>, Problem> {
        self.get("BYTERANGE").map(|text| range(text, next)).transpose()
    }
}

/// `length[@offset]`; without an offset it begins at `next`.
pub(super) fn range(text: &str, next: u64) -> Result<ByteRange, Problem> {
    let (bytes, offset) =
        text.split_once('@').map_or((text, None), |(bytes, offset)| (bytes, Some(offset)));
    let number = |text: &str| {
        let number = text.trim().parse::<u64>();
        number.map_err(|_| {
            Problem::from(format!("has the byte range \"{}\", not length@offset", excerpt(text)))
        })
    };
    let range = ByteRange { offset: offset.map_or(Ok(next), number)?, bytes: number(bytes)? };
    if range.offset.checked_add(range.bytes).is_none() {
        return Err("has a byte range beyond any file".into());
    }
    Ok(range)
}
