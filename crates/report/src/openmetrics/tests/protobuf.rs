//! The protobuf format: its bytes, and that it says what the text formats say.

use throng_observation::Distribution;

use super::*;

/// What is written of one family with one series.
fn of(kind: Kind, name: &str, unit: &'static str, series: (Labels, Value)) -> Vec<u8> {
    let mut exposition = Exposition::default();
    let family = Family { name: name.to_owned(), kind, unit, help: "Up.".to_owned() };
    exposition.add(family, [series]);
    exposition.written(Format::Protobuf)
}

fn of_times(times: impl IntoIterator<Item = u64>) -> Buckets {
    let mut buckets = Buckets::default();
    times.into_iter().for_each(|us| buckets.record(us));
    buckets
}

/// By hand from the encoding's documentation: a key is eight times the number of the field and its
/// type: 0 a number, 1 eight bytes, 2 something with its length.
#[test]
fn a_family_is_written_byte_for_byte() {
    let labels = vec![("a", "\"b".to_owned())];
    let written = of(Kind::Gauge, "up", "", (labels, Value::Number(1.0)));
    let one = [0_u8, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let label = [0x0a_u8, 7, 0x0a, 1, b'a', 0x12, 2, b'"', b'b'];
    let gauge = [&[0x12_u8, 9, 0x09][..], &one].concat();
    let family = [0x0a_u8, 2, b'u', b'p', 0x12, 3, b'U', b'p', b'.', 0x18, 1, 0x22, 20];
    assert_eq!(written, [&[33_u8][..], &family, &label, &gauge].concat());
    // A counter has its ending, is of type 0, which is written, and has another field.
    let written = of(Kind::Counter, "up", "", (Labels::new(), Value::Number(1.0)));
    let family = b"\x0a\x08up_total\x12\x03Up.";
    let counter = [&[0x18_u8, 0, 0x22, 11, 0x1a, 9, 0x09][..], &one].concat();
    assert_eq!(written, [&[30_u8][..], family, &counter].concat());
}

#[test]
fn a_native_histogram_is_written_byte_for_byte() {
    // Buckets 0 (two times), 1 and 8, and one time that counts as none.
    let times = of_times([0, 1_000_000, 1_000_000, 1_062_500, 2_000_000]);
    let series = (Labels::new(), Value::Histogram(times));
    let written = of(Kind::Histogram, "up_seconds", "seconds", series);
    let threshold = [0_u8, 0, 0, 0, 0, 0, 0x50, 0x3f];
    // Numbers with a sign: 0 is 0, -1 is 1, 1 is 2, 2 is 4.
    let schema = [&[0x28_u8, 6, 0x31][..], &threshold, &[0x38, 1]].concat();
    let spans = [0x62_u8, 4, 0x08, 0, 0x10, 2, 0x62, 4, 0x08, 12, 0x10, 1];
    let counts = [0x68_u8, 4, 0x68, 1, 0x68, 0];
    let end = [&schema[..], &spans, &counts, b"\x2a\x07seconds"].concat();
    assert!(written.ends_with(&end), "{written:x?}");
    let sum = [0_u8, 0, 0, 0, 0, 0x40, 0x14, 0x40];
    let begin = [&[0x08_u8, 5, 0x11][..], &sum].concat();
    assert!(written.windows(begin.len()).any(|part| part == begin), "{written:x?}");
}

#[test]
fn protobuf_has_the_names_labels_and_values_of_text() {
    for name in crate::hostile_tests::HOSTILE {
        let mut metrics = of_cohorts(&["viewers", name]);
        metrics.set_subject(name, name);
        for cohort in 0..2 {
            metrics.take(&rows::series(0, cohort, 90));
            metrics.take(&rows::playback(0, cohort));
            metrics.take(&rows::failed(u32::from(cohort), cohort, 503));
        }
        metrics.take(&rows::joined(7, 250_000));
        metrics.take(&rows::joined(8, 0));
        metrics.take(&rows::closed(0));
        rows::host(0, name).iter().for_each(|row| metrics.take_host(row));
        let objective = rows::objective(&format!("video.loss < 1% {name}"));
        metrics.set_objectives(&[ObjectiveResult { met: true, ..objective }]);
        let exposition = metrics.exposition();
        let text = exposition.text(TextFormat::Prometheus);
        let answer = decoder::read(&exposition.written(Format::Protobuf));
        assert_eq!(answer.series, read(&text), "{name}");
        assert_eq!(answer.kinds, kinds(&text), "{name}");
        let histograms = answer.kinds.values().filter(|kind| **kind == 4).count();
        assert!(histograms >= 4 && answer.native.len() > histograms, "{:?}", answer.native);
        let (zero, buckets) =
            &answer.native["throng_join_seconds{cohort=\"viewers\",phase=\"first_frame\"}"];
        assert_eq!((*zero, buckets), (1, &BTreeMap::from([(-16, 1)])));
    }
}

/// The types of the families of a text, by the numbers of the definition.
fn kinds(text: &str) -> BTreeMap<String, u64> {
    let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let kinds = heads.map(|head| match head.split_once(' ') {
        Some((name, "counter")) => (name.to_owned(), 0),
        Some((name, "gauge")) => (name.to_owned(), 1),
        Some((name, "histogram")) => (name.to_owned(), 4),
        _ => panic!("{head}"),
    });
    kinds.collect()
}

/// What docs/metrics.md says of the error of quantiles.
#[test]
fn a_time_is_in_its_bucket_or_one_percent_above_it() {
    // Up to 175 s, in the form of few values and in that of many.
    for count in [200_u64, 5_000] {
        let times: Vec<u64> = (0..count).map(|n| n * n * 175_000_000 / (count * count)).collect();
        let mut distribution = Distribution::new();
        times.iter().for_each(|us| distribution.record(*us));
        let mut both = Buckets::default();
        both.add(&distribution);
        let native = both.native.by_index.iter().map(|(index, count)| (Some(*index), *count));
        let native = std::iter::once((None, both.native.zero)).chain(native);
        let mut in_order = native.flat_map(|(index, count)| (0..count).map(move |_| index));
        for us in times {
            let seconds = us as f64 / 1e6;
            let bound = |index: i32| 2_f64.powf(f64::from(index) / 8.0);
            let (low, high) = match in_order.next().expect("none is lost") {
                Some(index) => (bound(index - 1), bound(index)),
                None => (0.0, bound(-80)),
            };
            assert!(low <= seconds && seconds <= high * 1.01, "{low} {seconds} {high}");
        }
        assert_eq!(in_order.next(), None);
        assert_eq!(both.count, count);
        // 1 s and 2 s are bounds of both.
        for (bound_us, last) in [(1_000_000, 0), (2_000_000, 8)] {
            let up_to: u64 = both.native.by_index.range(..=last).map(|(_, count)| *count).sum();
            let classic = BOUNDS.iter().zip(both.up_to).find(|((us, _), _)| *us == bound_us);
            assert_eq!(classic.map(|(_, count)| count), Some(both.native.zero + up_to));
        }
    }
}
