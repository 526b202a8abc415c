//! Structural similarity (SSIM) of two pictures (Wang, Bovik, Sheikh and Simoncelli, 2004), of
//! luma, over windows of 8 × 8 pixels that do not overlap: 1 for equal pictures.

/// Pixels of a window's side.
const WINDOW: usize = 8;
/// (0.01 × 255)² and (0.03 × 255)², the paper's constants for eight bits.
const C1: f64 = 6.502_5;
const C2: f64 = 58.522_5;

/// The SSIM of two pictures of one size, 1 at most; `None` if a plane is too short, or too small
/// for a window.
#[must_use]
pub fn ssim(one: &[u8], other: &[u8], width: usize, height: usize) -> Option<f64> {
    let size = width.checked_mul(height)?;
    let (one, other) = (one.get(..size)?, other.get(..size)?);
    let (mut sum, mut windows) = (0.0, 0_u32);
    for top in (0..height.saturating_sub(WINDOW - 1)).step_by(WINDOW) {
        for left in (0..width.saturating_sub(WINDOW - 1)).step_by(WINDOW) {
            sum += window(one, other, width, top, left);
            windows += 1;
        }
    }
    (windows > 0).then(|| sum / f64::from(windows))
}

fn window(one: &[u8], other: &[u8], width: usize, top: usize, left: usize) -> f64 {
    // Sums of at most 64 products of bytes: no overflow.
    let (mut a, mut b, mut aa, mut bb, mut ab) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
    for line in top..top + WINDOW {
        let at = line * width + left;
        let (Some(x), Some(y)) = (one.get(at..at + WINDOW), other.get(at..at + WINDOW)) else {
            continue;
        };
        for (x, y) in x.iter().zip(y) {
            let (x, y) = (u32::from(*x), u32::from(*y));
            a += x;
            b += y;
            aa += x * x;
            bb += y * y;
            ab += x * y;
        }
    }
    let count = (WINDOW * WINDOW) as f64;
    let mean = |sum: u32| f64::from(sum) / count;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let variance_a = mean(aa) - mean_a * mean_a;
    let variance_b = mean(bb) - mean_b * mean_b;
    let covariance = mean(ab) - mean_a * mean_b;
    (2.0 * mean_a * mean_b + C1) * (2.0 * covariance + C2)
        / ((mean_a * mean_a + mean_b * mean_b + C1) * (variance_a + variance_b + C2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pictures_are_one_and_damage_is_less_the_more_of_it_there_is() {
        let (width, height) = (50, 40);
        let picture: Vec<u8> = (0..width * height).map(|at| (at * 7 % 251) as u8).collect();
        assert_eq!(ssim(&picture, &picture, width, height), Some(1.0));
        let mut last = 1.0;
        for lines in [4, 12, 24, 40] {
            let mut damaged = picture.clone();
            damaged[..lines * width].fill(128);
            let alike = ssim(&picture, &damaged, width, height).unwrap();
            assert!(alike < last, "{lines}: {alike} of {last}");
            last = alike;
        }
        assert!(last < 0.1, "{last}");
        assert_eq!(ssim(&picture, &picture[1..], width, height), None);
        assert_eq!(ssim(&picture, &picture, 7, 7), None);
    }
}
