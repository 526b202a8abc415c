use super::*;

fn read(text: &str) -> Exposition<'_> {
    parse(text, |_| true)
}

fn one(line: &str) -> (String, Vec<(String, String)>, f64, Kind) {
    let read = read(line);
    assert_eq!((read.samples.len(), read.bad_lines), (1, 0), "{line}");
    let sample = &read.samples[0];
    let labels =
        sample.labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    (sample.name.to_owned(), labels, sample.value, sample.kind)
}

#[test]
fn samples_of_both_formats_are_read() {
    let labels = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    };
    let cases = [
        ("up 1", "up", vec![], 1.0),
        ("up\t1 1700000000000", "up", vec![], 1.0),
        ("x{a=\"b\"} 2.5e3", "x", labels(&[("a", "b")]), 2500.0),
        ("x{a=\"b\",c=\"d\",} -3", "x", labels(&[("a", "b"), ("c", "d")]), -3.0),
        ("x{ a = \"b\" } 1", "x", labels(&[("a", "b")]), 1.0),
        (r#"x{a="say \"hi\" \\ there}"} 1"#, "x", labels(&[("a", r#"say "hi" \ there}"#)]), 1.0),
        (
            r#"x_bucket{le="+Inf"} 7 # {trace="y"} 0.5 1.5"#,
            "x_bucket",
            labels(&[("le", "+Inf")]),
            7.0,
        ),
        ("ns:x{} 1", "ns:x", vec![], 1.0),
    ];
    for (line, name, labels, value) in cases {
        let got = one(line);
        assert_eq!((got.0.as_str(), &got.1, got.2), (name, &labels, value), "{line}");
    }
}

#[test]
fn counters_are_distinguished_from_gauges() {
    let text = "\
# TYPE a counter
a 1
# TYPE b_total counter
b_total 1
# TYPE c counter
c_total 1
c_created 1
# TYPE d gauge
d_total 1
# TYPE e histogram
e_bucket{le=\"1\"} 1
e_sum 1
e_count 1
# TYPE f summary
f{quantile=\"0.5\"} 1
f_sum 1
g_total 1
g_count 1
# TYPE h_total gauge
h_total 1
# TYPE i untyped
i_total 1
# EOF
";
    let counters: Vec<_> = read(text)
        .samples
        .iter()
        .filter(|s| s.kind == Kind::Counter)
        .map(|s| s.name.to_owned())
        .collect();
    assert_eq!(
        counters,
        [
            "a", "b_total", "c_total", "d_total", "e_bucket", "e_sum", "e_count", "f_sum",
            "g_total", "i_total"
        ]
    );
}

#[test]
fn values_that_are_none_are_left_out_and_are_no_error() {
    let read = read("x NaN\ny +Inf\nz -Inf\nw_total -1\nv 1\n");
    assert_eq!((read.samples.len(), read.bad_lines), (1, 0));
}

#[test]
fn a_bad_line_costs_only_itself() {
    let text = "a 1\n<html>\nb{ 1\nc{x=\"} 1\nd{x=1} 1\ne\nf abc\n{} 1\n1é 2\nz 1\n";
    let read = read(text);
    assert_eq!(read.samples.iter().map(|s| s.name).collect::<Vec<_>>(), ["a", "z"]);
    assert_eq!(read.bad_lines, 8);
    assert_eq!(read.first_bad_line.as_deref(), Some("<html>"));
}

#[test]
fn lines_labels_and_samples_are_bounded() {
    let long = format!("x{{a=\"{}\"}} 1", "y".repeat(LINE_BYTES_MAX));
    assert_eq!(read(&long).bad_lines, 1);
    let cut = one(&format!("x{{a=\"{}\"}} 1", "é".repeat(500)));
    assert_eq!(cut.1[0].1.len(), LABEL_BYTES_MAX);
    let many: String = (0..40).map(|n| format!("l{n}=\"v\",")).collect();
    assert_eq!(read(&format!("x{{{many}}} 1")).bad_lines, 1);
    let flood: String = (0..SAMPLES_MAX + 3).map(|n| format!("x{n} 1\n")).collect();
    let read = read(&flood);
    assert_eq!((read.samples.len(), read.samples_over_limit), (SAMPLES_MAX, 3));
}

#[test]
fn what_is_not_kept_is_not_even_read() {
    let read = parse("keep 1\ndrop{broken 1\n", |name| name == "keep");
    assert_eq!((read.samples.len(), read.bad_lines), (1, 0));
}

#[test]
fn what_livekit_and_prosody_answer_is_read_to_the_last_line() {
    for (text, samples) in [
        (include_str!("recorded_livekit_1_13_5.txt"), 40),
        (include_str!("recorded_prosody_0_12_3.txt"), 40),
    ] {
        let read = read(text);
        assert_eq!((read.bad_lines, read.first_bad_line), (0, None));
        assert!(read.samples.len() > samples);
    }
}

#[test]
fn no_cut_or_changed_answer_panics() {
    let text = r#"# TYPE x counter
x_total{a="b\"c",d="\\"} 12.5 1700 # {e="f"} 1
"#;
    for end in 0..text.len() {
        read(&text[..end]);
        for byte in [b'"', b'\\', b'{', b'}', b'\n', 0xff, b' '] {
            let mut bytes = text.as_bytes().to_vec();
            bytes[end] = byte;
            read(&String::from_utf8_lossy(&bytes));
        }
    }
}
