//! A reader of Prometheus's protobuf format by the rules of its encoding alone. It refuses what
//! Prometheus refuses. The end-to-end tests read answers by it, too.

use std::collections::BTreeMap;

/// What an answer has.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The type of each family by its name, as its number.
    pub(super) kinds: BTreeMap<String, u64>,
    /// The value of each series, called as in text; those of classic histograms, too.
    pub(super) series: BTreeMap<String, f64>,
    /// Of each native histogram how many are zero, and how many are in each bucket by its index.
    pub(super) native: BTreeMap<String, (u64, BTreeMap<i64, u64>)>,
}

/// Reads families, each with its length before it.
pub(super) fn read(mut bytes: &[u8]) -> Answer {
    let mut answer = Answer::default();
    while !bytes.is_empty() {
        let length = varint(&mut bytes);
        answer.family(&Message::read(taken(&mut bytes, length)));
    }
    answer
}

impl Answer {
    fn family(&mut self, family: &Message<'_>) {
        let (name, kind) = (family.text(1), family.number(3));
        assert!(self.kinds.insert(name.to_owned(), kind).is_none(), "twice: {name}");
        for metric in family.messages(4) {
            let label =
                |pair: Message<'_>| format!("{}=\"{}\"", pair.text(1), escaped(pair.text(2)));
            let labels: Vec<String> = metric.messages(1).map(label).collect();
            match kind {
                0 => self.put(&called(name, &labels), metric.message(3).double(1)),
                1 => self.put(&called(name, &labels), metric.message(2).double(1)),
                4 => self.histogram(name, &labels, &metric.message(7)),
                other => panic!("{name} is of type {other}"),
            }
        }
    }

    fn put(&mut self, series: &str, value: f64) {
        assert!(self.series.insert(series.to_owned(), value).is_none(), "twice: {series}");
    }

    fn histogram(&mut self, name: &str, labels: &[String], histogram: &Message<'_>) {
        let count = histogram.number(1);
        self.put(&called(&format!("{name}_count"), labels), count as f64);
        self.put(&called(&format!("{name}_sum"), labels), histogram.double(2));
        for bucket in histogram.messages(3) {
            let bound = match bucket.double(2) {
                f64::INFINITY => "+Inf".to_owned(),
                bound => format!("{bound:?}"),
            };
            let labels = [labels, &[format!("le=\"{bound}\"")]].concat();
            self.put(&called(&format!("{name}_bucket"), &labels), bucket.number(1) as f64);
        }
        assert_eq!((signed(histogram.number(5)), histogram.double(6)), (3, 0.000_976_562_5));
        let (zero, buckets) = (histogram.number(7), buckets(histogram));
        assert_eq!(zero + buckets.values().sum::<u64>(), count, "{name}");
        self.native.insert(called(name, labels), (zero, buckets));
    }
}

/// The buckets of a native histogram.
fn buckets(histogram: &Message<'_>) -> BTreeMap<i64, u64> {
    let mut buckets = BTreeMap::new();
    let mut deltas = histogram.numbers(13).map(signed);
    let (mut index, mut count) = (0, 0);
    for span in histogram.messages(12) {
        index += signed(span.number(1));
        for _ in 0..span.number(2) {
            count += deltas.next().expect("a count for each bucket");
            buckets.insert(index, u64::try_from(count).expect("a count"));
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None, "more counts than buckets");
    buckets
}

fn called(name: &str, labels: &[String]) -> String {
    if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
}

/// The value of a label as text has it in quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The fields of a message by their numbers.
struct Message<'a>(Vec<(u64, Field<'a>)>);

#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Double(f64::from_le_bytes(taken(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes);
                    Field::Bytes(taken(&mut bytes, length))
                }
                other => panic!("a field of type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    /// The only field of a number.
    fn only(&self, number: u64) -> Field<'a> {
        let mut of = self.0.iter().filter(|(other, _)| *other == number);
        let (Some((_, field)), None) = (of.next(), of.next()) else {
            panic!("field {number} is not there once")
        };
        *field
    }

    fn number(&self, number: u64) -> u64 {
        let Field::Number(value) = self.only(number) else { panic!("field {number} is no number") };
        value
    }

    fn double(&self, number: u64) -> f64 {
        let Field::Double(value) = self.only(number) else { panic!("field {number} is no double") };
        value
    }

    fn text(&self, number: u64) -> &'a str {
        let Field::Bytes(bytes) = self.only(number) else { panic!("field {number} is no text") };
        std::str::from_utf8(bytes).unwrap()
    }

    fn message(&self, number: u64) -> Message<'a> {
        let Field::Bytes(bytes) = self.only(number) else { panic!("field {number} is no message") };
        Message::read(bytes)
    }

    fn numbers(&self, number: u64) -> impl Iterator<Item = u64> {
        self.0.iter().filter_map(move |(other, field)| match field {
            Field::Number(value) if *other == number => Some(*value),
            _ => None,
        })
    }

    fn messages(&self, number: u64) -> impl Iterator<Item = Message<'a>> {
        self.0.iter().filter_map(move |(other, field)| match field {
            Field::Bytes(bytes) if *other == number => Some(Message::read(bytes)),
            _ => None,
        })
    }
}

/// A number of seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = taken(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// A number with its sign in the lowest bit.
fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn taken<'a>(bytes: &mut &'a [u8], length: u64) -> &'a [u8] {
    let (taken, rest) = bytes.split_at_checked(length as usize).expect("it ends too early");
    *bytes = rest;
    taken
}
