use super::*;

/// A record with its header, in the kernel's format.
fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend((body.len() as u16 + 8).to_ne_bytes());
    bytes.extend(body);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Two 32-bit numbers as one word of bytes.
fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// Thread and time at the end of every record other than a sample.
fn with_id(mut body: Vec<u8>, at_ns: u64) -> Vec<u8> {
    body.extend(words(&[pair(7, 8), at_ns]));
    body
}

#[track_caller]
fn event(bytes: &[u8]) -> Option<Event> {
    let (size, record) = parse(bytes).expect("the header is whole");
    assert_eq!(size, bytes.len());
    record.map(|record| record.event)
}

const KERNEL: u64 = (-128_i64).cast_unsigned();
const USER: u64 = (-512_i64).cast_unsigned();

fn sample_body(chain: &[u64], stack: &[u64]) -> Vec<u8> {
    let mut body = words(&[0xdead, pair(7, 8), 99, chain.len() as u64]);
    body.extend(words(chain));
    body.extend(words(stack));
    body
}

#[test]
fn samples_have_their_kernel_and_user_side_apart() {
    let body = sample_body(&[KERNEL, 0xffff_ffff_8100_0001, USER, 0x10, 0x20], &[]);
    let (_, Some(Record { at_ns: 99, event: Event::Sample(sample) })) =
        parse(&record(9, 0, &body)).unwrap()
    else {
        panic!()
    };
    assert_eq!(sample.ids, Ids { pid: 7, tid: 8 });
    assert_eq!(
        (sample.kernel, sample.user, sample.stack),
        (vec![0xffff_ffff_8100_0001], vec![0x10, 0x20], None)
    );
}

#[test]
fn a_sample_without_a_chain_still_has_its_address() {
    let Some(Event::Sample(sample)) = event(&record(9, 0, &sample_body(&[], &[]))) else {
        panic!()
    };
    assert_eq!(sample.user, [0xdead]);
}

#[test]
fn a_stack_is_as_long_as_the_kernel_could_fill_it() {
    let registers: Vec<u64> = (1..=REGISTERS_COUNT as u64).collect();
    let check = |size: u64, filled: u64, expect: Option<usize>| {
        let mut stack = vec![2];
        stack.extend(&registers);
        stack.push(size);
        stack.extend(vec![5; size as usize / 8]);
        stack.push(filled);
        let Some(Event::Sample(sample)) = event(&record(9, 0, &sample_body(&[USER, 1], &stack)))
        else {
            panic!()
        };
        assert_eq!(sample.stack.map(|stack| stack.bytes.len()), expect, "{size} {filled}");
    };
    check(64, 64, Some(64));
    check(64, 24, Some(24));
    check(64, 0, Some(0));
    check(64, u64::MAX, Some(64));
    // A size beyond the record means that there is no stack.
    let mut stack = vec![2];
    stack.extend(&registers);
    stack.push(u64::MAX);
    let Some(Event::Sample(sample)) = event(&record(9, 0, &sample_body(&[USER, 1], &stack))) else {
        panic!()
    };
    assert_eq!(sample.stack, None);
}

#[test]
fn processes_are_reported() {
    let check = |kind, misc, body: Vec<u8>, expect: Event| {
        assert_eq!(event(&record(kind, misc, &with_id(body, 5))), Some(expect));
    };
    let (parent, child) = (Ids { pid: 1, tid: 2 }, Ids { pid: 3, tid: 4 });
    check(7, 0, words(&[pair(3, 1), pair(4, 2), 5]), Event::Fork { parent, child });
    check(4, 0, words(&[pair(3, 1), pair(4, 2), 5]), Event::Exit(child));
    let mut name = words(&[pair(3, 4)]);
    name.extend(b"janus\0\0\0");
    check(3, 1 << 13, name.clone(), Event::Name { ids: child, name: "janus".into(), exec: true });
    check(3, 0, name, Event::Name { ids: child, name: "janus".into(), exec: false });
    let mut mmap = words(&[pair(3, 4), 0x1000, 0x200, 0x30, 0, 77, 0, 0]);
    mmap.extend(b"/lib/x.so\0\0\0\0\0\0\0");
    let expect =
        Mmap { start: 0x1000, end: 0x1200, offset: 0x30, inode: 77, path: b"/lib/x.so".to_vec() };
    check(10, 0, mmap, Event::Mmap(child, expect));
    check(2, 0, words(&[1, 42]), Event::Lost(42));
    check(13, 0, words(&[3]), Event::Lost(3));
    check(5, 0, words(&[1, 2, 3]), Event::Throttled);
    assert_eq!(
        event(&record(200, 0, &with_id(words(&[1]), 5))),
        None,
        "what is not known is passed over"
    );
}

#[test]
fn a_mapping_beyond_the_end_of_memory_is_none() {
    let body = with_id(words(&[pair(3, 4), u64::MAX, 2, 0, 0, 0, 0, 0]), 5);
    assert_eq!(event(&record(10, 0, &body)), None);
}

#[test]
fn bytes_that_are_no_record_end_the_reading() {
    assert_eq!(parse(&[]), None);
    assert_eq!(parse(&[0; 7]), None);
    assert_eq!(parse(&[0; 64]), None, "a record of no length would be read for ever");
    let mut long = record(9, 0, &[]);
    long[6] = 255;
    assert_eq!(parse(&long), None, "longer than what there is");
}

#[test]
fn no_bytes_break_the_reader() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let whole = sample_body(&[KERNEL, 1, USER, 2, 3], &[2, 1, 2, 3, 16, 9, 9, 16]);
    for round in 0..20_000_u64 {
        let mut body = whole.clone();
        for _ in 0..1 + round % 6 {
            let at = random() as usize % body.len();
            body[at] = random() as u8;
        }
        body.truncate(random() as usize % (body.len() + 1));
        let kind = if round % 3 == 0 { 9 } else { random() as u32 % 16 };
        let bytes = record(kind, random() as u16, &body);
        if let Some((_, Some(Record { event: Event::Sample(sample), .. }))) = parse(&bytes) {
            assert!(sample.user.len() + sample.kernel.len() <= body.len());
        }
    }
}
