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

    /// The 95 % interval around `value`, a sum of means of cells: `runs` are the number of runs and the weight of each.
    pub(super) fn around(self, value: f64, cells: impl Iterator<Item = (usize, f64)>) -> [f64; 2] {
        let scale: f64 = cells.map(|(runs, weight)| weight * weight / runs.max(1) as f64).sum();
        let half = t_975(self.freedom) * (self.variance * scale).sqrt();
        [value - half, value + half]
    }
}

/// The 97.5 % quantile of Student's t, within 0.2 % (Abramowitz and Stegun 26.7.5 from three degrees of freedom on).
pub(super) fn t_975(freedom: usize) -> f64 {
    const Z: f64 = 1.959_963_985;
    match freedom {
        0 => f64::INFINITY,
        1 => 12.706,
        2 => 4.3027,
        _ => {
            let (n, z2) = (freedom as f64, Z * Z);
            let g1 = Z * (z2 + 1.0) / 4.0;
            let g2 = Z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
            let g3 = Z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
            let g4 = Z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
            Z + g1 / n + g2 / n.powi(2) + g3 / n.powi(3) + g4 / n.powi(4)
        }
    }
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
    }
}
