//! The page's colours can be told apart in light, in dark and on paper.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("page.css");

/// Red, green and blue, 0 to 1.
type Colour = [f64; 3];

/// A colour of three or six hexadecimal digits.
fn colour(hex: &str) -> Colour {
    let digits: Vec<f64> = hex.chars().map(|c| f64::from(c.to_digit(16).unwrap())).collect();
    let length = digits.len() / 3;
    // Of three digits each stands for two.
    [0, 1, 2]
        .map(|part| (digits[part * length] * 16.0 + digits[part * length + length - 1]) / 255.0)
}

/// `share` of a colour over another one.
fn over(above: Colour, share: f64, below: Colour) -> Colour {
    [0, 1, 2].map(|part| above[part] * share + below[part] * (1.0 - share))
}

/// Relative luminance (WCAG 2).
fn luminance(colour: Colour) -> f64 {
    let linear = |share: f64| {
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let weighed = colour.into_iter().zip([0.2126, 0.7152, 0.0722]);
    weighed.map(|(part, weight)| linear(part) * weight).sum()
}

fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colours of each scheme: light, dark, paper.
fn schemes() -> Vec<BTreeMap<&'static str, Colour>> {
    let colours = |scheme: &'static str| -> BTreeMap<&'static str, Colour> {
        let entries = scheme.split('}').next().unwrap_or_default().split(';');
        entries
            .filter_map(|entry| entry.split_once(":#"))
            .map(|(name, hex)| (name, colour(hex)))
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

/// No tool knows what is behind the text of a picture.
#[test]
fn names_stand_out_from_their_bars_in_flame_graphs() {
    let shares: Vec<f64> = include_str!("flame.css")
        .split("fill-opacity:")
        .skip(1)
        .map(|rest| rest.split([';', '}']).next().unwrap_or_default().parse().unwrap())
        .collect();
    assert!(shares.len() > 4, "{shares:?}");
    for (number, colours) in schemes().iter().enumerate() {
        let (behind, ink) = (colours["--bg"], colours["--ink"]);
        for bar in ["--good", "--bad", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"] {
            for share in &shares {
                let found = contrast(ink, over(colours[bar], *share, behind));
                assert!(found >= 4.5, "scheme {number}: {share} of {bar}: {found:.2}");
            }
        }
    }
}

#[test]
fn the_contrast_is_that_of_the_definition() {
    let of = |a, b| (contrast(colour(a), colour(b)) * 100.0).round() / 100.0;
    assert_eq!((of("000", "ffffff"), of("777", "fff"), of("fff", "fff")), (21.0, 4.48, 1.0));
}
