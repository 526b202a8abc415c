//! A heat map of streams: rows are senders, columns receivers. Cells of one level that lie side by
//! side are one run of a path, so that a conference of 100 is a few thousand characters when it
//! went well and some hundred thousand at worst.

use std::fmt::Write as _;

use super::markup::escape;

/// Most cells of a side; in a larger room a cell covers a block of pairs and shows the worst.
const SIDE_MAX: usize = 100;

/// A heat map.
pub(crate) struct Heatmap<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// The meaning of each level, the best first; the last is for streams that never arrived.
    pub(crate) levels: &'a [&'a str],
    /// The numbers of the participants, in order.
    pub(crate) people: &'a [u32],
    /// The level of the cell (sender, receiver), by their places; `None` where nothing should be.
    pub(crate) cells: &'a dyn Fn(usize, usize) -> Option<usize>,
}

impl Heatmap<'_> {
    pub(crate) fn render(&self) -> String {
        let count = self.people.len();
        let block = count.div_ceil(SIDE_MAX).max(1);
        let side = count.div_ceil(block);
        let mut paths = vec![String::new(); self.levels.len()];
        for row in 0..side {
            let levels: Vec<Option<usize>> =
                (0..side).map(|column| self.level(row, column, block)).collect();
            let mut column = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                if let Some(path) =
                    run.first().copied().flatten().and_then(|level| paths.get_mut(level))
                {
                    // Writing to a String cannot fail.
                    let _ = write!(path, "M{column} {row}h{0}v1h-{0}z", run.len());
                }
                column += run.len();
            }
        }
        let last = self.levels.len().saturating_sub(1);
        let class =
            |level: usize| if level == last { "h-never".into() } else { format!("h{level}") };
        let is_used = |level: usize| paths.get(level).is_some_and(|path| !path.is_empty());
        let mut drawn = String::new();
        for (level, path) in paths.iter().enumerate().filter(|(level, _)| is_used(*level)) {
            let _ = write!(drawn, "<path class=\"{}\" d=\"{path}\"/>", class(level));
        }
        let mut legend = String::new();
        for (level, name) in self.levels.iter().enumerate().filter(|(level, _)| is_used(*level)) {
            let _ =
                write!(legend, "<span class=\"swatch {}\">{}</span>", class(level), escape(name));
        }
        let ends =
            |place: usize| self.people.get(place).map_or_else(String::new, ToString::to_string);
        let (first, end) = (ends(0), ends(count.saturating_sub(1)));
        let blocks = if block > 1 {
            format!(" A cell covers {block} × {block} participants and shows the worst.")
        } else {
            String::new()
        };
        format!(
            "<figure class=\"chart heat\"><h3>{} <small>{}</small></h3><div \
             class=\"legend\">{legend}</div><svg viewBox=\"0 0 {side} {side}\" role=\"img\" \
             aria-label=\"{}\" shape-rendering=\"crispEdges\"><rect class=\"h-none\" \
             width=\"{side}\" height=\"{side}\"/>{drawn}</svg><figcaption>Rows: senders, {first} \
             to {end}. Columns: receivers, {first} to {end}.{blocks}</figcaption></figure>",
            escape(self.title),
            escape(self.unit),
            escape(self.title),
        )
    }

    /// The worst level of a block.
    fn level(&self, row: usize, column: usize, block: usize) -> Option<usize> {
        let within = |start: usize| {
            (start * block..(start + 1) * block).filter(|at| *at < self.people.len())
        };
        within(row)
            .flat_map(|from| within(column).map(move |to| (from, to)))
            .filter_map(|(from, to)| (self.cells)(from, to))
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(count: u32, cells: &dyn Fn(usize, usize) -> Option<usize>) -> String {
        let people: Vec<u32> = (0..count).collect();
        Heatmap { title: "t", unit: "u", levels: &["good", "bad", "never"], people: &people, cells }
            .render()
    }

    #[test]
    fn equal_cells_side_by_side_are_one_run() {
        let page = heat(3, &|from, to| (from != to).then_some(usize::from(from == 2)));
        assert!(
            page.contains("<path class=\"h0\" d=\"M1 0h2v1h-2zM0 1h1v1h-1zM2 1h1v1h-1z\"/>"),
            "{page}"
        );
        assert!(
            page.contains("<path class=\"h1\" d=\"M0 2h2v1h-2z\"/>") && !page.contains("h-never")
        );
    }

    #[test]
    fn a_large_room_stays_small_and_hides_nothing() {
        let lone = heat(1_000, &|from, to| Some(if (from, to) == (777, 3) { 2 } else { 0 }));
        assert!(lone.contains("M0 77h1v1h-1z") && lone.contains("10 × 10 participants"), "{lone}");
        let noise = heat(100, &|from, to| Some((from * 7 + to) % 3));
        assert!(noise.len() < 200_000, "{}", noise.len());
        assert!(heat(0, &|_, _| None).contains("<svg"));
    }
}
