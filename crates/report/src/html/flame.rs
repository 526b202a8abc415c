//! Flame graphs: all stacks of a profile in one picture. A bar is a function, as wide as its share
//! of the samples; below it are the functions that it called. The outermost function is at the top.
//!
//! The bars are SVG in percent of the width there is; their text keeps its size, and a bar that is
//! too narrow cuts it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use throng_observation::host::{Frame, Profile};

use super::markup::escape;
use crate::profile::percent;

/// What the page needs in addition to the graph itself.
pub(crate) const STYLE: &str = include_str!("flame.css");
/// Zooms to a bar when it is chosen; without scripts the graph is complete but does not zoom.
pub(crate) const SCRIPT: &str = include_str!("flame.js");

/// Height of a bar, large enough for a finger.
const ROW_PX: usize = 24;
/// A bar below this share of the width cannot be seen.
const SHARE_MIN: f64 = 0.001;
/// Most bars; the widest are drawn.
const BARS_MAX: usize = 1_500;
/// Distinct functions in the tree, and its depth.
const NODES_MAX: usize = 200_000;
const DEPTH_MAX: usize = 96;
/// Files that have a colour of their own (1, 3, 4, 5 of the palette); 2 is the kernel, 6 all
/// others.
const FILE_COLOURS: [u8; 4] = [1, 3, 4, 5];

/// Samples at two moments; a graph of one has no first.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    before: u64,
    after: u64,
}

struct Node {
    frame: Frame,
    depth: usize,
    samples: Samples,
    children: BTreeMap<(String, String), usize>,
}

/// All stacks, merged below each thread's name as far as they begin with the same functions; the
/// root is `all`.
struct Tree {
    nodes: Vec<Node>,
    /// Whether it compares two profiles.
    is_comparison: bool,
}

impl Tree {
    fn new(is_comparison: bool) -> Self {
        let frame = Frame { symbol: "all".to_owned(), module: String::new() };
        let root = Node { frame, depth: 0, samples: Samples::default(), children: BTreeMap::new() };
        Self { nodes: vec![root], is_comparison }
    }

    fn add(&mut self, profile: &Profile, is_before: bool) {
        for stack in &profile.stacks {
            let count = |samples: &mut Samples| {
                let side = if is_before { &mut samples.before } else { &mut samples.after };
                *side += u64::from(stack.count);
            };
            let thread = Frame { symbol: stack.thread.clone(), module: String::new() };
            let mut at = 0;
            count(&mut self.nodes[0].samples);
            for frame in
                std::iter::once(&thread).chain(profile.frames_of(stack).rev()).take(DEPTH_MAX)
            {
                let Some(next) = self.child(at, frame) else { break };
                count(&mut self.nodes[next].samples);
                at = next;
            }
        }
    }

    fn child(&mut self, of: usize, frame: &Frame) -> Option<usize> {
        let key = (frame.symbol.clone(), frame.module.clone());
        let (known, depth) = (self.nodes[of].children.get(&key).copied(), self.nodes[of].depth + 1);
        if known.is_some() || self.nodes.len() >= NODES_MAX {
            return known;
        }
        let next = self.nodes.len();
        let node = Node {
            frame: frame.clone(),
            depth,
            samples: Samples::default(),
            children: BTreeMap::new(),
        };
        self.nodes.push(node);
        self.nodes[of].children.insert(key, next);
        Some(next)
    }

    /// How wide a bar is. In a comparison the later profile gives the widths, and the earlier one
    /// where the later has nothing at all.
    fn share(&self, samples: Samples) -> f64 {
        ratio(samples.after, self.nodes[0].samples.after)
    }

    /// The bars wide enough to be drawn, with their left edge, from the top.
    fn bars(&self) -> Vec<(usize, f64)> {
        let mut bars = Vec::new();
        let mut open = vec![(0, 0.0)];
        while let Some((number, left)) = open.pop() {
            let node = &self.nodes[number];
            if self.share(node.samples) < SHARE_MIN {
                continue;
            }
            bars.push((number, left));
            let mut left = left;
            let mut children: Vec<usize> = node.children.values().copied().collect();
            children.sort_by_key(|child| std::cmp::Reverse(self.nodes[*child].samples.after));
            for child in children {
                open.push((child, left));
                left += self.share(self.nodes[child].samples);
            }
        }
        bars.sort_by(|(a, _), (b, _)| {
            self.nodes[*b].samples.after.cmp(&self.nodes[*a].samples.after).then(a.cmp(b))
        });
        bars.truncate(BARS_MAX);
        bars.sort_by_key(|(number, _)| (self.nodes[*number].depth, *number));
        bars
    }

    fn render(&self, caption: &str, legend: &str, colour: impl Fn(&Node) -> String) -> String {
        if self.nodes[0].samples.after == 0 {
            return "<p class=\"none\">Nothing was sampled.</p>".to_owned();
        }
        let bars = self.bars();
        let deepest = bars.iter().map(|(number, _)| self.nodes[*number].depth).max().unwrap_or(0);
        let height = (deepest + 1) * ROW_PX;
        let mut out = format!(
            "<figure class=\"flame\"><p class=\"legend\">{legend}</p><div class=\"scroll\"><svg \
             class=\"bars-of-time\" role=\"group\" aria-label=\"{}\" height=\"{height}\">",
            escape(caption)
        );
        for (number, left) in bars {
            let node = &self.nodes[number];
            let (x, width) = (left * 100.0, self.share(node.samples) * 100.0);
            let _ = write!(
                out,
                "<svg class=\"bar-of-time {}\" tabindex=\"{}\" x=\"{x:.3}%\" y=\"{}\" \
                 width=\"{width:.3}%\" height=\"{}\"><title>{}</title><rect width=\"100%\" \
                 height=\"100%\"/><text x=\"4\" y=\"16\">{}</text></svg>",
                colour(node),
                // Only wide bars are reachable by the keyboard.
                if width >= 2.0 { 0 } else { -1 },
                node.depth * ROW_PX,
                ROW_PX - 1,
                escape(&self.title(node)),
                escape(&node.frame.symbol),
            );
        }
        let _ = write!(
            out,
            "</svg></div><output class=\"chosen\" \
             aria-live=\"polite\"></output><figcaption>{}</figcaption></figure>",
            escape(caption)
        );
        out
    }

    fn title(&self, node: &Node) -> String {
        let file = if node.frame.module.is_empty() {
            String::new()
        } else {
            format!(" ({})", node.frame.module)
        };
        let after = percent(self.share(node.samples));
        if self.is_comparison {
            let before = percent(ratio(node.samples.before, self.nodes[0].samples.before));
            return format!("{}{file}: {before} before, {after} after", node.frame.symbol);
        }
        format!("{}{file}: {after}, {} samples", node.frame.symbol, node.samples.after)
    }
}

/// The flame graph of a profile.
#[must_use]
pub(crate) fn graph(profile: &Profile) -> String {
    let mut tree = Tree::new(false);
    tree.add(profile, false);
    let files = files(profile);
    let mut legend = String::from("<span class=\"key c2\">kernel</span>");
    for (file, colour) in &files {
        let _ = write!(legend, "<span class=\"key c{colour}\">{}</span>", escape(file));
    }
    legend.push_str("<span class=\"key c6\">other</span>");
    let caption = "Each bar is a function, as wide as its share of the samples; below it are the \
                   functions that it called. Choose a bar to see it across the whole width.";
    tree.render(caption, &legend, |node| {
        let module = node.frame.module.as_str();
        let colour = if module == "[kernel]" {
            2
        } else {
            files.iter().find(|(f, _)| f == module).map_or(6, |f| f.1)
        };
        format!("c{colour}")
    })
}

/// The flame graph of `after`, coloured by what changed since `before`.
#[must_use]
pub(crate) fn comparison(before: &Profile, after: &Profile) -> String {
    let mut tree = Tree::new(true);
    tree.add(before, true);
    tree.add(after, false);
    let (all_before, all_after) = (tree.nodes[0].samples.before, tree.nodes[0].samples.after);
    let legend = "<span class=\"key grew\">larger share than before</span><span class=\"key \
                  shrank\">smaller share</span>";
    let caption = "The later profile, each bar as wide as its share then. The stronger the \
                   colour, the more the share changed.";
    tree.render(caption, legend, |node| {
        let change = ratio(node.samples.after, all_after) - ratio(node.samples.before, all_before);
        // Four steps: beyond 1, 3, 10 and 30 points.
        let step = [0.01, 0.03, 0.1, 0.3].iter().filter(|limit| change.abs() >= **limit).count();
        let side = if change > 0.0 { "grew" } else { "shrank" };
        if step == 0 { "same".to_owned() } else { format!("{side} s{step}") }
    })
}

/// The files in which most time went, with a colour for each.
fn files(profile: &Profile) -> Vec<(String, u8)> {
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in &profile.stacks {
        // A file counts once per stack, with the samples of that stack.
        let files: std::collections::BTreeSet<&str> =
            profile.frames_of(stack).map(|frame| frame.module.as_str()).collect();
        for file in files.into_iter().filter(|file| !file.starts_with('[')) {
            *samples.entry(file).or_default() += u64::from(stack.count);
        }
    }
    let mut files: Vec<_> = samples.into_iter().collect();
    files.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    files.into_iter().map(|(file, _)| file.to_owned()).zip(FILE_COLOURS).collect()
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
#[path = "flame_tests.rs"]
mod tests;
