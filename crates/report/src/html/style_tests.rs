//! The page's colours can be told apart in light, in dark and on paper.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");

/// Relative luminance of a colour (WCAG 2), of three or six hexadecimal digits.
fn luminance(hex: &str) -> f64 {
    let digits: Vec<f64> = hex.chars().map(|c| f64::from(c.to_digit(16).unwrap())).collect();
    let linear = |part: &[f64]| {
        // Of three digits each stands for two.
        let share = (part[0] * 16.0 + part[part.len() - 1]) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let parts = digits.chunks(digits.len() / 3).map(linear);
    parts.zip([0.2126, 0.7152, 0.0722]).map(|(part, weight)| part * weight).sum()
}

fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colours of each scheme: light, dark, paper.
fn schemes() -> Vec<BTreeMap<&'static str, f64>> {
    let colours = |scheme: &'static str| -> BTreeMap<&'static str, f64> {
        let entries = scheme.split('}').next().unwrap_or_default().split(';');
        entries
            .filter_map(|entry| entry.split_once(":#"))
            .map(|(name, hex)| (name, luminance(hex)))
            .collect()
    };
    STYLE.split(":root{").skip(1).map(colours).collect()
}

#[test]
fn text_and_lines_stand_out_from_what_is_behind_them() {
    let schemes = schemes();
    assert_eq!(schemes.len(), 3);
    for (number, colours) in schemes.iter().enumerate() {
        let of = |name: &str| colours[name];
        for behind in ["--bg", "--card"] {
            for text in ["--ink", "--soft", "--good", "--bad"] {
                let found = contrast(of(text), of(behind));
                assert!(found >= 4.5, "scheme {number}: {text} on {behind}: {found:.2}");
            }
            for line in ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6"] {
                let found = contrast(of(line), of(behind));
                assert!(found >= 3.0, "scheme {number}: {line} on {behind}: {found:.2}");
            }
        }
    }
}

#[test]
fn the_contrast_is_that_of_the_definition() {
    let of = |a, b| (contrast(luminance(a), luminance(b)) * 100.0).round() / 100.0;
    assert_eq!((of("000", "ffffff"), of("777", "fff"), of("fff", "fff")), (21.0, 4.48, 1.0));
}
