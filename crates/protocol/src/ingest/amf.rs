//! Action Message Format 0: the values in the commands of RTMP ("Action Message Format -- AMF 0",
//! 2007).

/// Objects and arrays within each other that are read: commands need two.
const DEPTH_MAX: usize = 8;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Amf {
    Number(f64),
    Boolean(bool),
    Text(String),
    /// An object or an ECMA array, with its properties in their order.
    Object(Vec<(String, Amf)>),
    List(Vec<Amf>),
    /// Null, undefined, or of a type that commands do not use.
    Null,
}

/// The bytes are no AMF 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AmfError {
    #[error("a value is cut off")]
    CutOff,
    #[error("a value of the unknown type {0}")]
    Type(u8),
    #[error("more than {DEPTH_MAX} objects within each other")]
    Depth,
}

impl Amf {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A property of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Amf> {
        let Self::Object(properties) = self else { return None };
        properties.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Appends the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                out.push(0);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Boolean(value) => out.extend_from_slice(&[1, u8::from(*value)]),
            Self::Text(text) => match u16::try_from(text.len()) {
                Ok(_) => {
                    out.push(2);
                    write_name(text, out);
                }
                Err(_) => {
                    out.push(12);
                    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
            },
            Self::Object(properties) => {
                out.push(3);
                write_properties(properties, out);
            }
            Self::List(values) => {
                out.push(10);
                out.extend_from_slice(&(values.len() as u32).to_be_bytes());
                values.iter().for_each(|value| value.write(out));
            }
            Self::Null => out.push(5),
        }
    }

    /// Appends an ECMA array, the form of `onMetaData` that players expect.
    pub(super) fn write_array(properties: &[(String, Amf)], out: &mut Vec<u8>) {
        out.push(8);
        out.extend_from_slice(&(properties.len() as u32).to_be_bytes());
        write_properties(properties, out);
    }

    /// Reads all values of a message.
    pub(super) fn read_all(mut bytes: &[u8]) -> Result<Vec<Self>, AmfError> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            values.push(read(&mut bytes, 0)?);
        }
        Ok(values)
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    let name = name.get(..name.floor_char_boundary(u16::MAX.into())).unwrap_or_default();
    out.extend_from_slice(&(name.len() as u16).to_be_bytes());
    out.extend_from_slice(name.as_bytes());
}

fn write_properties(properties: &[(String, Amf)], out: &mut Vec<u8>) {
    for (name, value) in properties {
        write_name(name, out);
        value.write(out);
    }
    out.extend_from_slice(&[0, 0, 9]);
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], AmfError> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(AmfError::CutOff)?;
    *bytes = rest;
    Ok(taken)
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], AmfError> {
    take(bytes, N)?.try_into().map_err(|_| AmfError::CutOff)
}

fn take_name(bytes: &mut &[u8]) -> Result<String, AmfError> {
    let length = u16::from_be_bytes(take_array(bytes)?);
    Ok(String::from_utf8_lossy(take(bytes, usize::from(length))?).into_owned())
}

fn take_count(bytes: &mut &[u8]) -> Result<usize, AmfError> {
    Ok(u32::from_be_bytes(take_array(bytes)?) as usize)
}

fn read(bytes: &mut &[u8], depth: usize) -> Result<Amf, AmfError> {
    if depth > DEPTH_MAX {
        return Err(AmfError::Depth);
    }
    let [kind] = take_array(bytes)?;
    Ok(match kind {
        0 => Amf::Number(f64::from_be_bytes(take_array(bytes)?)),
        1 => Amf::Boolean(take_array(bytes)? != [0]),
        2 => Amf::Text(take_name(bytes)?),
        3 => Amf::Object(read_properties(bytes, depth)?),
        5 | 6 => Amf::Null,
        // A reference to an earlier object.
        7 => {
            take(bytes, 2)?;
            Amf::Null
        }
        8 => {
            // The number of properties is a hint: the end is marked.
            take_count(bytes)?;
            Amf::Object(read_properties(bytes, depth)?)
        }
        10 => {
            let count = take_count(bytes)?;
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(read(bytes, depth + 1)?);
            }
            Amf::List(values)
        }
        // A date: milliseconds, and a time zone that nobody fills in.
        11 => {
            let ms = f64::from_be_bytes(take_array(bytes)?);
            take(bytes, 2)?;
            Amf::Number(ms)
        }
        12 => {
            let length = take_count(bytes)?;
            Amf::Text(String::from_utf8_lossy(take(bytes, length)?).into_owned())
        }
        other => return Err(AmfError::Type(other)),
    })
}

fn read_properties(bytes: &mut &[u8], depth: usize) -> Result<Vec<(String, Amf)>, AmfError> {
    let mut properties = Vec::new();
    loop {
        let name = take_name(bytes)?;
        if name.is_empty() && bytes.first() == Some(&9) {
            take(bytes, 1)?;
            return Ok(properties);
        }
        properties.push((name, read(bytes, depth + 1)?));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let values = [
            Amf::text("connect"),
            Amf::Number(1.0),
            Amf::Object(vec![
                ("app".into(), Amf::text("live")),
                ("fpad".into(), Amf::Boolean(false)),
                ("of".into(), Amf::Object(vec![("x".into(), Amf::Null)])),
            ]),
            Amf::Null,
            Amf::List(vec![Amf::Number(-0.5), Amf::text("")]),
            Amf::text("k".repeat(70_000)),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| value.write(&mut bytes));
        assert_eq!(Amf::read_all(&bytes).unwrap(), values);
        assert_eq!(values[2].get("app").and_then(Amf::as_text), Some("live"));
        let mut array = Vec::new();
        Amf::write_array(&[("width".into(), Amf::Number(640.0))], &mut array);
        let read = Amf::read_all(&array).unwrap();
        assert_eq!(read[0].get("width").and_then(Amf::as_number), Some(640.0));
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_at_a_letter() {
        let long = Amf::Object(vec![(format!("a{}", "ü".repeat(40_000)), Amf::Null)]);
        let mut bytes = Vec::new();
        long.write(&mut bytes);
        let read = Amf::read_all(&bytes).unwrap();
        let [Amf::Object(properties)] = &read[..] else { panic!("not one object") };
        assert_eq!((properties.len(), properties[0].0.len()), (1, 65_535));
    }

    #[test]
    fn damage_and_depth_are_errors_and_no_overflow() {
        for (bytes, expect) in [
            (&[0, 1][..], AmfError::CutOff),
            (&[2, 0, 9, b'x'], AmfError::CutOff),
            (&[3, 0, 1, b'a'], AmfError::CutOff),
            (&[12, 255, 255, 255, 255], AmfError::CutOff),
            (&[10, 255, 255, 255, 255], AmfError::CutOff),
            (&[17], AmfError::Type(17)),
        ] {
            assert_eq!(Amf::read_all(bytes), Err(expect), "{bytes:?}");
        }
        let nested = [3, 0, 1, b'a'].repeat(1_000_000);
        assert_eq!(Amf::read_all(&nested), Err(AmfError::Depth));
        let lists = [10, 0, 0, 0, 1].repeat(1_000_000);
        assert_eq!(Amf::read_all(&lists), Err(AmfError::Depth));
    }
}
