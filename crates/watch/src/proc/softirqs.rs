//! `/proc/softirqs` (proc(5)): soft interrupts by kind, one column for each CPU.

use super::scan::{fields, lines, number};

/// Number of NET_RX soft interrupts of each CPU: CPU number and count.
pub fn net_rx(text: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    let mut lines = lines(text);
    let cpus = lines.next().unwrap_or_default();
    let counts = lines.find_map(|line| {
        let mut fields = fields(line);
        (fields.next()? == b"NET_RX:").then_some(fields)
    });
    // Offline CPUs have no column.
    let cpus = fields(cpus)
        .map(|name| number(name.strip_prefix(b"CPU")?).and_then(|n| u32::try_from(n).ok()));
    cpus.zip(counts.into_iter().flatten()).filter_map(|(cpu, count)| Some((cpu?, number(count)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_is_of_the_cpu_above_it() {
        let text = b"                    CPU0       CPU2\n          HI:          0          0\n      NET_RX:   26616246   19831859\n";
        assert_eq!(net_rx(text).collect::<Vec<_>>(), [(0, 26_616_246), (2, 19_831_859)]);
        assert_eq!(net_rx(b"").count() + net_rx(b"CPU0\nHI: 1\n").count(), 0);
    }
}
