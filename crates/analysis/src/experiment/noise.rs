//! The noise of a response: how much runs of the same cell differ.

use super::CellValues;

/// The pooled variance between runs of one cell (pure error).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Variance of one run.
    pub variance: f64,
    /// Degrees of freedom: runs beyond the first of each cell.
    pub freedom: usize,
}

impl Noise {
    /// `None` if no cell was run twice.
    #[must_use]
    pub fn of(cells: &[CellValues]) -> Option<Self> {
        let (mut squares, mut freedom) = (0.0, 0);
        for cell in cells {
            let Some(mean) = cell.mean() else { continue };
            squares += cell.finite().map(|value| (value - mean).powi(2)).sum::<f64>();
            freedom += cell.count() - 1;
        }
        (freedom > 0).then(|| Self { variance: squares / freedom as f64, freedom })
    }

    /// The 95 % interval around `value`, a sum of means of cells: `runs` are the number of runs and
    /// the weight of each.
    pub(super) fn around(self, value: f64, cells: impl Iterator<Item = (usize, f64)>) -> [f64; 2] {
        let scale: f64 = cells.map(|(runs, weight)| weight * weight / runs.max(1) as f64).sum();
        let half = t_975(self.freedom) * (self.variance * scale).sqrt();
        [value - half, value + half]
    }
}

/// The critical value of the normal distribution and the chance of both tails beyond it, for 1, 2,
/// … looks at data that grow: the chance that any of the looks is beyond it is 5 %, with Student's
/// t up to 6 % (Pocock, Biometrika 64, 1977; the constants as in Jennison and Turnbull, Group
/// Sequential Methods, table 2.1).
const POCOCK: [(f64, f64); 10] = [
    (1.959_963_985, 0.05),
    (2.178, 0.0294),
    (2.289, 0.0221),
    (2.361, 0.0182),
    (2.413, 0.0158),
    (2.453, 0.0142),
    (2.485, 0.0130),
    (2.512, 0.0120),
    (2.535, 0.0112),
    (2.555, 0.0106),
];

/// How wide an interval is that holds with 95 %, by how often it is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// In standard deviations that are known beforehand.
    pub(super) z: f64,
    /// The chance beyond one end.
    tail: f64,
}

impl Level {
    /// Of up to `looks` looks; more than there are constants for are taken as that many.
    pub(super) fn of_looks(looks: usize) -> Self {
        let index = looks.clamp(1, POCOCK.len()) - 1;
        let (z, both) = POCOCK.get(index).copied().unwrap_or((f64::INFINITY, 0.0));
        Self { z, tail: both / 2.0 }
    }

    /// The same in standard deviations by Student's t, within 1 % (Abramowitz and Stegun 26.7.5
    /// from three degrees of freedom on; exact for one and two).
    pub(super) fn t(self, freedom: usize) -> f64 {
        let between = 1.0 - 2.0 * self.tail;
        match freedom {
            0 => f64::INFINITY,
            1 => 1.0 / (std::f64::consts::PI * self.tail).tan(),
            2 => between * (2.0 / (1.0 - between * between)).sqrt(),
            _ => {
                let (z, n, z2) = (self.z, freedom as f64, self.z * self.z);
                let g1 = z * (z2 + 1.0) / 4.0;
                let g2 = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
                let g3 = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
                let g4 = z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0)
                    / 92_160.0;
                z + g1 / n + g2 / n.powi(2) + g3 / n.powi(3) + g4 / n.powi(4)
            }
        }
    }
}

/// The 97.5 % quantile of Student's t.
pub(super) fn t_975(freedom: usize) -> f64 {
    Level::of_looks(1).t(freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_that_of_the_tables() {
        for (freedom, expect) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042)]
        {
            let got = t_975(freedom);
            assert!((got / expect - 1.0).abs() < 0.002, "{freedom}: {got}");
        }
        assert!((t_975(1_000_000) - 1.96).abs() < 0.001);
        // By integration of the density.
        for (looks, freedom, expect) in
            [(2, 1, 21.638), (2, 3, 3.926), (4, 2, 7.311), (4, 5, 3.452), (10, 7, 3.456)]
        {
            let got = Level::of_looks(looks).t(freedom);
            assert!((got / expect - 1.0).abs() < 0.003, "{looks} {freedom}: {got}");
        }
        assert_eq!(Level::of_looks(99), Level::of_looks(10));
    }
}
