//! Names of kernel functions, from the text of `/proc/kallsyms`.

/// The kernel function at each of the sorted `addresses`. All are `None` if the kernel hides its
/// addresses (`kernel.kptr_restrict`), which then read as zero.
pub(crate) fn name(kallsyms: &str, addresses: &[u64]) -> Vec<Option<String>> {
    // The symbol with the greatest start at or below each address.
    let mut best: Vec<Option<(u64, &str)>> = vec![None; addresses.len()];
    let mut starts: Vec<(u64, &str)> = kallsyms.lines().filter_map(function).collect();
    starts.sort_by_key(|(start, _)| *start);
    for (address, slot) in addresses.iter().zip(&mut best) {
        let above = starts.partition_point(|(start, _)| start <= address);
        *slot = above.checked_sub(1).and_then(|index| starts.get(index)).copied().map(
            |(start, name)| {
                // Of aliases at one address the first in the file is the usual name.
                let first = starts.partition_point(|(other, _)| *other < start);
                starts.get(first).copied().unwrap_or((start, name))
            },
        );
    }
    best.into_iter().map(|found| found.map(|(_, name)| name.to_owned())).collect()
}

/// Parses a line `address type name [module]`; `None` if it is not a function.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let start = u64::from_str_radix(fields.next()?, 16).ok().filter(|start| *start != 0)?;
    let is_function = matches!(fields.next()?, "t" | "T" | "w" | "W");
    let name = fields.next()?;
    is_function.then_some((start, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 T copy_user_generic
ffffffff81000100 T copy_user_alias
ffffffff81000200 d some_data
ffffffff81000300 t do_syscall_64
ffffffffc0000000 t helper\t[module]
broken line
zz T x
";

    #[test]
    fn addresses_get_the_function_they_lie_in() {
        let addresses =
            [0x10, 0xffff_ffff_8100_0100, 0xffff_ffff_8100_02ff, 0xffff_ffff_8100_0301, u64::MAX];
        let names = name(KALLSYMS, &addresses);
        let names: Vec<_> = names.iter().map(Option::as_deref).collect();
        let copy = Some("copy_user_generic");
        assert_eq!(names, [None, copy, copy, Some("do_syscall_64"), Some("helper")]);
    }

    #[test]
    fn hidden_addresses_have_no_names() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 T _text\n";
        assert_eq!(name(hidden, &[0xffff_ffff_8100_0100]), [None]);
        assert_eq!(name("", &[1, 2]), [None, None]);
    }
}
