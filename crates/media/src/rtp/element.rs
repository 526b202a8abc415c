//! The elements of an RFC 8285 header extension, in its one-byte and its two-byte form.

/// "Defined by profile" of the one-byte form.
pub(super) const ONE_BYTE_PROFILE: u16 = 0xbede;
/// "Defined by profile" of the two-byte form; the lowest four bits are free for the application.
pub(super) const TWO_BYTE_PROFILE: u16 = 0x1000;

/// Iterates over (id, data) of the elements of a header extension. An element that runs past the
/// end of the extension ends the iteration, as do id 15, and id 0 with a length, of the one-byte
/// form.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    OneByte,
    TwoByte,
}

impl<'a> Elements<'a> {
    #[inline]
    pub(super) fn new(profile: u16, block: &'a [u8]) -> Self {
        match profile {
            ONE_BYTE_PROFILE => Self { rest: block, form: Form::OneByte },
            _ if profile & 0xfff0 == TWO_BYTE_PROFILE => Self { rest: block, form: Form::TwoByte },
            _ => Self { rest: &[], form: Form::OneByte },
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (id, len, body) = match (self.form, self.rest) {
                // A zero byte is padding in both forms.
                (_, &[0, ref rest @ ..]) => {
                    self.rest = rest;
                    continue;
                }
                // RFC 8285 section 4.2: id 0 with a length, like id 15, ends the processing.
                (Form::OneByte, &[head, ref body @ ..]) if !matches!(head >> 4, 0 | 15) => {
                    (head >> 4, usize::from(head & 0x0f) + 1, body)
                }
                (Form::TwoByte, &[id, len, ref body @ ..]) => (id, usize::from(len), body),
                _ => break,
            };
            let Some((data, rest)) = body.split_at_checked(len) else { break };
            self.rest = rest;
            return Some((id, data));
        }
        self.rest = &[];
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(profile: u16, block: &[u8], expect: &[(u8, &[u8])]) {
        assert_eq!(
            Elements::new(profile, block).collect::<Vec<_>>(),
            expect,
            "{profile:#x} {block:?}"
        );
    }

    #[test]
    fn one_byte_form() {
        // The example of RFC 8285 section 4.2, with padding between and after.
        check(
            0xbede,
            &[0x10, 1, 0x21, 2, 3, 0, 0, 0x33, 4, 5, 6, 7],
            &[(1, &[1]), (2, &[2, 3]), (3, &[4, 5, 6, 7])],
        );
        check(0xbede, &[0x10, 1, 0xf0, 9, 0x20, 2], &[(1, &[1])]); // id 15 ends it
        check(0xbede, &[0x10, 1, 0x23, 2, 3], &[(1, &[1])]); // runs past the end
        check(0xbede, &[0x10, 1, 0x01, 9, 9, 0x20, 2], &[(1, &[1])]); // id 0 with a length ends it
        check(0xbede, &[0, 0, 0, 0], &[]);
    }

    #[test]
    fn two_byte_form() {
        check(
            0x1000,
            &[1, 0, 2, 1, 9, 0, 200, 2, 7, 8, 0, 0],
            &[(1, &[]), (2, &[9]), (200, &[7, 8])],
        );
        check(0x100f, &[15, 1, 9], &[(15, &[9])]);
        check(0x1000, &[1, 5, 0], &[]);
        check(0x1000, &[1], &[]);
    }

    #[test]
    fn other_profiles_have_no_elements() {
        check(0x1010, &[1, 0], &[]);
        check(0, &[0x10, 1], &[]);
    }
}
