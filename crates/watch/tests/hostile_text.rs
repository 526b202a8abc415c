//! A brief fuzz that runs with every `cargo test`: good lines of logs, answers of endpoints, frames
//! of agents and files of processes, damaged in every simple way. The seed is fixed, so a failure
//! is reproducible; the long search is `fuzz/`.

#[path = "../../../fuzz/hunt.rs"]
mod hunt;
mod laws;

const ROUNDS: usize = 50_000;

#[test]
fn access_logs_hold_their_laws_for_any_text() {
    hunt::hunt(laws::access_log, &hunt::seeds_in("fuzz/seeds/access-log"), hunt::TEXT, ROUNDS);
}

#[test]
fn endpoints_hold_their_laws_for_any_text() {
    let words: [&[u8]; 5] =
        [b"\0", b"{\"janus\":\"success\"", b"NaN", b"+Inf", b"1.7976931348623157e308"];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::scrape, &hunt::seeds_in("fuzz/seeds/scrape"), &words, ROUNDS / 5);
}

/// A frame of an agent: length, kind, content.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes(), &[kind][..], content].concat()
}

#[test]
fn frames_of_agents_hold_their_laws_for_any_bytes() {
    let requests = [
        &br#"{"Hello":{"version":1,"token":"t"}}"#[..],
        br#"{"Ping":{"number":7}}"#,
        br#""Begin""#,
        br#"{"Profile":{"moment":"peak","duration_ms":500}}"#,
        br#""EndProfile""#,
    ];
    let answers = [
        &br#"{"Welcome":{"version":1,"name":"h","targets":["a"],"consent":{"ports":[80],"users_max":9,"joins_per_s_max":1.5,"mbit_per_s_max":null,"duration_s_max":60}}}"#[..],
        br#"{"Refused":{"why":"no"}}"#,
        br#"{"Pong":{"number":7,"agent_us":-1,"rows_dropped":0}}"#,
    ];
    let framed = |messages: &[&[u8]]| -> Vec<u8> {
        messages.iter().flat_map(|message| frame(1, message)).collect()
    };
    let samples = [frame(2, &[7; 40]), frame(1, requests[1])].concat();
    let seeds = [framed(&requests), framed(&answers), samples];
    hunt::hunt(laws::agent, &seeds, hunt::TEXT, ROUNDS / 5);
}

/// A program of 64 bits with one function, `inner` at 0x1000, and a stub behind it.
fn program() -> Vec<u8> {
    const NAMES: &[u8] = b"\0.text\0.plt\0.symtab\0.strtab\0.shstrtab\0";
    let name = |of: &str| NAMES.windows(of.len()).position(|w| w == of.as_bytes()).unwrap() as u32;
    let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
    let words = |bytes: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    };
    // Behind the header: code, symbols, their names, the names of sections, then the sections.
    let (code, symbols, strings, names) = (64, 128, 176, 192);
    let sections = (names + NAMES.len()).next_multiple_of(8);
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    half(&mut elf, 2);
    half(&mut elf, 62);
    elf.extend(1_u32.to_le_bytes());
    words(&mut elf, &[0x1000, 0, sections as u64]);
    elf.extend(0_u32.to_le_bytes());
    for value in [64, 56, 0, 64, 6, 5] {
        half(&mut elf, value);
    }
    elf.resize(symbols + 24, 0x90);
    elf[symbols..].fill(0);
    // `inner`: a global function in section 1, of 16 bytes.
    elf.extend(1_u32.to_le_bytes());
    elf.extend([0x12, 0, 1, 0]);
    words(&mut elf, &[0x1000, 16]);
    assert_eq!(elf.len(), strings);
    elf.extend(b"\0inner\0");
    elf.resize(names, 0);
    elf.extend(NAMES);
    elf.resize(sections, 0);
    let mut section = |name: u32, kind: u32, values: [u64; 4], link: u32, last: [u64; 2]| {
        elf.extend(name.to_le_bytes());
        elf.extend(kind.to_le_bytes());
        words(&mut elf, &values);
        elf.extend(link.to_le_bytes());
        elf.extend(1_u32.to_le_bytes());
        words(&mut elf, &last);
    };
    // Flags, address, place and length; then alignment and size of an entry.
    section(0, 0, [0; 4], 0, [0; 2]);
    section(name(".text"), 1, [6, 0x1000, code as u64, 16], 0, [16, 0]);
    section(name(".plt"), 1, [6, 0x2000, 80, 16], 0, [16, 0]);
    section(name(".symtab"), 2, [0, 0, symbols as u64, 48], 4, [8, 24]);
    section(name(".strtab"), 3, [0, 0, strings as u64, 7], 0, [1, 0]);
    section(name(".shstrtab"), 3, [0, 0, names as u64, NAMES.len() as u64], 0, [1, 0]);
    elf
}

#[test]
fn programs_hold_their_laws_for_any_bytes() {
    let program = program();
    let named = throng_watch::profiler::read_any_elf(&program, &[0xfff, 0x1004, 0x2008]).unwrap();
    assert_eq!(named, [None, Some(b"inner".to_vec()), Some(b"[plt]".to_vec())]);
    let words: [&[u8]; 5] = [&[0xff; 8], &[0; 8], &[0xff; 2], b".eh_frame\0", b".gnu_debugdata\0"];
    hunt::hunt(laws::elf, &[program], &words, ROUNDS / 5);
}

#[test]
fn maps_of_code_hold_their_laws_for_any_text() {
    let words: [&[u8]; 4] = [b"ffffffffffffffff", b"-", b" r-xp ", b"\n1000 ffffffffffffffff x"];
    let words = [hunt::TEXT, &words].concat();
    hunt::hunt(laws::maps, &hunt::seeds_in("fuzz/seeds/maps"), &words, ROUNDS / 5);
}

#[test]
fn what_fuzzing_has_kept_holds_the_laws() {
    hunt::replay("access-log", laws::access_log);
    hunt::replay("agent", laws::agent);
    hunt::replay("elf", laws::elf);
    hunt::replay("maps", laws::maps);
    hunt::replay("scrape", laws::scrape);
}
