//! Helpers for all kernel files: lines, blank-separated fields, and numbers that may be missing or
//! out of range.

/// The non-empty lines of a file.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The fields of a line, separated by any number of blanks.
pub fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Parses a decimal number; `None` for anything else, and on overflow.
#[must_use]
pub fn number(field: &[u8]) -> Option<u64> {
    digits(field, 10)
}

/// Parses a hexadecimal number without prefix.
#[must_use]
pub fn hexadecimal(field: &[u8]) -> Option<u64> {
    digits(field, 16)
}

fn digits(field: &[u8], radix: u32) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0_u64, |value, byte| {
        let digit = char::from(*byte).to_digit(radix)?;
        value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}

/// The next field as a number; `None` if it is missing or invalid.
pub fn next_number<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    fields.next().and_then(number)
}

/// Parses a line `key value …` or `key: value …`: the key and the first number after it.
#[must_use]
pub fn key_and_number(line: &[u8]) -> Option<(&[u8], u64)> {
    let mut fields = fields(line);
    let key = fields.next()?;
    let key = key.strip_suffix(b":").unwrap_or(key);
    Some((key, next_number(&mut fields)?))
}

/// The first number after `key` in a file of such lines.
#[must_use]
pub fn find(text: &[u8], key: &[u8]) -> Option<u64> {
    // Compare the prefix first: most lines do not match.
    let mut named = lines(text).filter(|line| line.starts_with(key)).filter_map(key_and_number);
    named.find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The CPUs of a list like `0-3,8,10-11`.
pub fn cpu_list(list: &str) -> impl Iterator<Item = u32> {
    const CPUS_MAX: u32 = 8_192;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?.min(CPUS_MAX))
    };
    list.split(',').filter_map(range).flatten()
}

/// Converts bytes to text for display.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.trim_ascii()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        let check = |list: &str, expect: &[u32]| {
            assert_eq!(cpu_list(list).collect::<Vec<_>>(), expect, "{list}");
        };
        check("0-1", &[0, 1]);
        check("0", &[0]);
        check("0-2,8,10-11", &[0, 1, 2, 8, 10, 11]);
        check("", &[]);
        check("x-3,5", &[5]);
        assert!(cpu_list("0-4294967295").count() < 10_000);
    }

    #[test]
    fn numbers_are_whole_fields_that_fit() {
        for (field, expect) in [
            (&b"0"[..], Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"-1", None),
            (b"1x", None),
            (b"", None),
            (b"+1", None),
        ] {
            assert_eq!(number(field), expect, "{}", text(field));
        }
        assert_eq!(hexadecimal(b"00ff"), Some(255));
        assert_eq!(hexadecimal(b"0x1"), None);
    }

    #[test]
    fn a_key_may_end_in_a_colon() {
        assert_eq!(find(b"MemTotal:       24683000 kB\nMemFree: 1 kB\n", b"MemFree"), Some(1));
        assert_eq!(find(b"nr_free 5\n", b"nr_free"), Some(5));
        assert_eq!(find(b"nr_free\n", b"nr_free"), None);
    }
}
