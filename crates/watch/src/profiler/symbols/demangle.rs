//! Demangles symbol names.

use std::fmt::Write;

/// Maximum length of a name, bytes; template names can be arbitrarily long.
const NAME_BYTES_MAX: usize = 1_024;

/// The demangled name, without hashes, parameters and return types.
pub(crate) fn demangle(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name.get(..NAME_BYTES_MAX).unwrap_or(name));
    let mut out = Short(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(&text) {
        let _ = write!(out, "{rust:#}");
    } else if text.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(text.as_bytes())
    {
        let options =
            cpp_demangle::DemangleOptions::new().no_params().no_return_type().recursion_limit(64);
        if symbol.structured_demangle(&mut out, &options).is_err() {
            out.0.clear();
        }
    }
    if out.0.is_empty() { text.into_owned() } else { out.0 }
}

/// A string of bounded length.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > NAME_BYTES_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_were_written() {
        let check = |mangled: &str, expect| assert_eq!(demangle(mangled.as_bytes()), expect);
        check("main", "main");
        check("_ZN3std2io5Write9write_all17h0123456789abcdefE", "std::io::Write::write_all");
        check("_RNvC6_123foo3bar", "123foo::bar");
        check(
            "_ZN6ov_h2646NalUnitBitstreamParser4ReadEv",
            "_ZN6ov_h2646NalUnitBitstreamParser4ReadEv",
        );
        check("_ZN10H264Parser10parseSliceEPKhm", "H264Parser::parseSlice");
        check(
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back",
        );
        check("_Z", "_Z");
    }

    #[test]
    fn a_name_that_unfolds_without_end_is_left_as_it_is() {
        // Each pair doubles the length of the previous one.
        let pairs = (0..40).map(|_| "S_I").collect::<String>();
        let hostile = format!("_Z1fISt4pairI{pairs}E");
        assert!(demangle(hostile.as_bytes()).len() <= NAME_BYTES_MAX);
        assert!(demangle(&[b'x'; 1 << 20]).len() <= NAME_BYTES_MAX);
        assert!(demangle(&[0xff, 0xfe]).contains('\u{fffd}'));
    }
}
