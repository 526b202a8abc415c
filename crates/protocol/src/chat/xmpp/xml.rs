//! Reads the XML of a stanza in place: no tree is built, nothing is copied.
//!
//! A participant of a chat receives a presence from each other one, so that most of what it does is
//! to read elements of a few hundred bytes. XMPP allows only a part of XML (RFC 6120 section 11.1):
//! no comments, no processing instructions, no document types, and no entities but the predefined
//! ones. What has them is an error, so that nothing can expand. CDATA is text.

use std::borrow::Cow;

/// Elements within elements.
const DEPTH_MAX: usize = 32;

/// Why a frame cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmlError {
    /// It ends in the middle.
    #[error("it ends in the middle of an element")]
    Truncated,
    /// An end tag, a name or an attribute is not where it could be.
    #[error("it is not well-formed")]
    Malformed,
    /// What XMPP does not allow.
    #[error(
        "it has a comment, a processing instruction or a document type, which XMPP does not allow"
    )]
    Restricted,
    /// More than [`DEPTH_MAX`].
    #[error("it has more than 32 elements within one another")]
    TooDeep,
    /// Text before or behind the element, or a second element.
    #[error("it is not one element")]
    NotOne,
}

/// An element, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// Its name, with its prefix.
    pub(super) name: &'a str,
    attributes: &'a str,
    /// All between its tags.
    content: &'a str,
}

impl<'a> Element<'a> {
    /// Reads a frame, which is one element (RFC 7395 section 3.3), and checks all of it.
    pub(super) fn read(frame: &'a str) -> Result<Self, XmlError> {
        let mut tokens = Tokens { text: frame, at: 0 };
        let mut open: [&str; DEPTH_MAX] = [""; DEPTH_MAX];
        let (mut depth, mut root) = (0, None::<(Element<'a>, usize)>);
        let mut read = None;
        while let Some(token) = tokens.next()? {
            match token {
                Token::Text(text) if depth == 0 && !text.trim().is_empty() => {
                    return Err(XmlError::NotOne);
                }
                Token::Data(_) if depth == 0 => return Err(XmlError::NotOne),
                Token::Text(_) | Token::Data(_) => {}
                Token::Start { .. } if read.is_some() => return Err(XmlError::NotOne),
                Token::Start { name, attributes, is_empty } => {
                    check_attributes(attributes)?;
                    if depth == 0 {
                        root = Some((Element { name, attributes, content: "" }, tokens.at));
                    }
                    if is_empty && depth == 0 {
                        read = root.map(|(element, _)| element);
                    } else if !is_empty {
                        *open.get_mut(depth).ok_or(XmlError::TooDeep)? = name;
                        depth += 1;
                    }
                }
                Token::End { name, before } => {
                    depth = depth.checked_sub(1).ok_or(XmlError::Malformed)?;
                    if open.get(depth) != Some(&name) {
                        return Err(XmlError::Malformed);
                    }
                    if let (0, Some((element, from))) = (depth, root) {
                        let content = frame.get(from..before).unwrap_or_default();
                        read = Some(Element { content, ..element });
                    }
                }
            }
        }
        read.filter(|_| depth == 0).ok_or(XmlError::Truncated)
    }

    /// The value of an attribute, as it is written.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        attributes(self.attributes)
            .filter_map(Result::ok)
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    /// Its namespace, where it is declared on it.
    pub(super) fn namespace(&self) -> Option<&'a str> {
        self.attribute("xmlns")
    }

    /// The elements in it.
    pub(super) fn children(&self) -> Children<'a> {
        Children { tokens: Tokens { text: self.content, at: 0 } }
    }

    /// The first element of this name in it.
    pub(super) fn child(&self, name: &str) -> Option<Element<'a>> {
        self.children().find(|child| child.name == name)
    }

    /// The first element of this name and namespace in it.
    pub(super) fn child_of(&self, name: &str, namespace: &str) -> Option<Element<'a>> {
        self.children().find(|child| child.name == name && child.namespace() == Some(namespace))
    }

    /// The text in it, before the first element.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let mut tokens = Tokens { text: self.content, at: 0 };
        let mut text = Cow::Borrowed("");
        while let Ok(Some(token)) = tokens.next() {
            let part = match token {
                Token::Text(part) => unescaped(part),
                Token::Data(part) => Cow::Borrowed(part),
                Token::Start { .. } | Token::End { .. } => break,
            };
            if text.is_empty() {
                text = part;
            } else {
                text.to_mut().push_str(&part);
            }
        }
        text
    }
}

/// The elements in an element that was checked.
pub(super) struct Children<'a> {
    tokens: Tokens<'a>,
}

impl<'a> Iterator for Children<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (mut depth, mut first) = (0_usize, None::<(Element<'a>, usize)>);
        while let Ok(Some(token)) = self.tokens.next() {
            match token {
                Token::Text(_) | Token::Data(_) => {}
                Token::Start { name, attributes, is_empty } => {
                    if depth == 0 {
                        let element = Element { name, attributes, content: "" };
                        if is_empty {
                            return Some(element);
                        }
                        first = Some((element, self.tokens.at));
                    }
                    depth += usize::from(!is_empty);
                }
                Token::End { before, .. } => {
                    depth = depth.checked_sub(1)?;
                    if let (0, Some((element, from))) = (depth, first) {
                        let content = self.tokens.text.get(from..before)?;
                        return Some(Element { content, ..element });
                    }
                }
            }
        }
        None
    }
}

enum Token<'a> {
    Start {
        name: &'a str,
        attributes: &'a str,
        is_empty: bool,
    },
    /// `before`: where the tag begins.
    End {
        name: &'a str,
        before: usize,
    },
    Text(&'a str),
    /// Text in which nothing is escaped.
    Data(&'a str),
}

/// What begins and ends [`Token::Data`].
const DATA: (&str, &str) = ("![CDATA[", "]]>");

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Option<Token<'a>>, XmlError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let Some(tag) = rest.strip_prefix('<') else {
            let text = rest.split('<').next().unwrap_or(rest);
            self.at += text.len();
            return Ok(Some(Token::Text(text)));
        };
        let (begins, ends) = DATA;
        if let Some(data) = tag.strip_prefix(begins) {
            let (data, _) = data.split_once(ends).ok_or(XmlError::Truncated)?;
            self.at += 1 + begins.len() + data.len() + ends.len();
            return Ok(Some(Token::Data(data)));
        }
        if tag.starts_with(['!', '?']) {
            return Err(XmlError::Restricted);
        }
        let before = self.at;
        let end = tag_end(tag).ok_or(XmlError::Truncated)?;
        self.at += end + 2;
        let inside = tag.get(..end).unwrap_or_default();
        if let Some(name) = inside.strip_prefix('/') {
            return Ok(Some(Token::End { name: name.trim_end(), before }));
        }
        let is_empty = inside.ends_with('/');
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        let name_len = inside.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inside.len());
        let (name, attributes) = inside.split_at(name_len);
        if name.is_empty() || name.contains(['<', '=', '"', '\'', '&']) {
            return Err(XmlError::Malformed);
        }
        Ok(Some(Token::Start { name, attributes, is_empty }))
    }
}

/// Where the tag ends: at the first `>` that is not in a value.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    tag.bytes().position(|byte| match (quote, byte) {
        (None, b'>') => true,
        (None, b'"' | b'\'') => {
            quote = Some(byte);
            false
        }
        (Some(open), byte) if byte == open => {
            quote = None;
            false
        }
        _ => false,
    })
}

/// Names and values.
fn attributes(text: &str) -> impl Iterator<Item = Result<(&str, &str), XmlError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let mut one = || {
            let (name, value) = rest.split_once('=')?;
            let (name, value) = (name.trim_end(), value.trim_start());
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let (value, after) = value.get(1..)?.split_once(quote)?;
            rest = after;
            (!name.is_empty() && !name.contains(['<', '"', '\'', ' ']) && !value.contains('<'))
                .then_some((name, value))
        };
        let read = one().ok_or(XmlError::Malformed);
        if read.is_err() {
            rest = "";
        }
        Some(read)
    })
}

fn check_attributes(text: &str) -> Result<(), XmlError> {
    attributes(text).try_for_each(|attribute| attribute.map(|_| ()))
}

/// `text` with its entities replaced; unknown ones stay as they are.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        out.push_str(before);
        let read = entity
            .split_once(';')
            .and_then(|(name, after)| Some((entity_of(name.get(1..)?)?, after)));
        match read {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push('&');
                rest = entity.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity_of(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

/// `text` as it may stand in an element or in a value.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            character => out.push(character),
        }
    }
    Cow::Owned(out)
}
