use super::*;
use std::path::Path;
use std::process::Command;

/// The program and the names whose addresses are looked up.
const PROGRAM: &str = "int inner(int x) { return x * 3; } int main(void) { return inner(4); }";

fn tool(program: &str, arguments: &[&str], folder: &Path) {
    let done = Command::new(program).args(arguments).current_dir(folder).status();
    assert!(
        done.expect("these tests need gcc: scripts/setup.sh test").success(),
        "{program} {arguments:?}"
    );
}

/// A folder with `program` in it, and the address of its function `inner`.
fn program() -> (tempfile::TempDir, u64) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.c"), PROGRAM).unwrap();
    tool("gcc", &["-O0", "-Wl,--build-id", "p.c", "-o", "program"], folder.path());
    let bytes = std::fs::read(folder.path().join("program")).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let inner = elf.symbols().find(|symbol| symbol.name() == Ok("inner")).unwrap().address();
    (folder, inner)
}

fn name_at(file: &File, address: u64) -> Option<String> {
    let [named] = name(&Source::File(file), &[address]).try_into().unwrap();
    named.map(|named| String::from_utf8(named.name).unwrap())
}

#[test]
fn a_function_is_named_from_its_first_byte_to_its_last() {
    let (folder, inner) = program();
    let file = File::open(folder.path().join("program")).unwrap();
    assert_eq!(name_at(&file, inner).as_deref(), Some("inner"));
    assert_eq!(name_at(&file, inner + 3).as_deref(), Some("inner"));
    assert_ne!(name_at(&file, inner - 1).as_deref(), Some("inner"));
    assert_eq!(name_at(&file, 1 << 40), None);
}

#[test]
fn labels_of_hand_written_code_name_it_up_to_the_next_symbol() {
    let folder = tempfile::tempdir().unwrap();
    let assembly = ".globl spin, main\n.text\nspin: .skip 16, 0x90\n.type main,@function\nmain: .skip 8, 0x90\n\
                    inside: .skip 8, 0x90\n.size main, .-main\n";
    std::fs::write(folder.path().join("p.s"), assembly).unwrap();
    tool("gcc", &["-nostdlib", "-Wl,-e,main", "p.s", "-o", "program"], folder.path());
    let bytes = std::fs::read(folder.path().join("program")).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let spin = elf.symbols().find(|symbol| symbol.name() == Ok("spin")).unwrap().address();
    let file = File::open(folder.path().join("program")).unwrap();
    assert_eq!(name_at(&file, spin + 15).as_deref(), Some("spin"));
    assert_eq!(name_at(&file, spin + 16).as_deref(), Some("main"));
    assert_eq!(
        name_at(&file, spin + 28).as_deref(),
        Some("main"),
        "a label inside a function is not one"
    );
    assert_eq!(name_at(&file, spin + 33), None);
}

#[test]
fn a_stripped_file_still_shows_where_functions_begin() {
    let (folder, inner) = program();
    tool("strip", &["program"], folder.path());
    let file = File::open(folder.path().join("program")).unwrap();
    assert_eq!(name_at(&file, inner), None);
    let functions = Layout::read(&file).unwrap().functions();
    assert!(
        functions.iter().any(|function| function.start == inner && function.contains(&(inner + 3)))
    );
}

#[test]
fn a_debug_file_is_found_by_the_build_id() {
    let (folder, inner) = program();
    tool("objcopy", &["--only-keep-debug", "program", "debug"], folder.path());
    tool("strip", &["program"], folder.path());
    let debug_symbols = debug_symbols(&File::open(folder.path().join("program")).unwrap());
    let path = debug_symbols.debug_file.expect("it has a build id");
    assert!(path.starts_with("usr/lib/debug/.build-id/") && path.ends_with(".debug"), "{path}");
    assert_eq!(
        name_at(&File::open(folder.path().join("debug")).unwrap(), inner).as_deref(),
        Some("inner")
    );
}

#[test]
fn a_compressed_table_inside_a_stripped_file_is_read() {
    use std::io::Write;
    let (folder, inner) = program();
    let mut packed =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
    packed.write_all(&std::fs::read(folder.path().join("program")).unwrap()).unwrap();
    std::fs::write(folder.path().join("packed"), packed.finish().unwrap()).unwrap();
    tool("strip", &["program"], folder.path());
    tool("objcopy", &["--add-section", ".gnu_debugdata=packed", "program", "with"], folder.path());
    let debug_symbols = debug_symbols(&File::open(folder.path().join("with")).unwrap());
    let named = name(&Source::Bytes(&debug_symbols.debug_data.unwrap()), &[inner]);
    assert_eq!(named[0].as_ref().unwrap().name, b"inner");
}

#[test]
fn offsets_become_the_addresses_that_the_file_states() {
    let layout = Layout {
        segments: vec![
            Segment { offset: 0, bytes: 0x600, address: 0, is_executable: false },
            Segment { offset: 0x1040, bytes: 0x500, address: 0x40_2040, is_executable: true },
        ],
        ..Layout::default()
    };
    assert_eq!(layout.address_of(0x1040), Some(0x40_2040));
    assert_eq!(layout.address_of(0x1000), Some(0x40_2000), "the page begins before the segment");
    assert_eq!(layout.address_of(0x10), Some(0x10));
    assert_eq!(layout.address_of(0x9000), None);
}

#[test]
fn the_functions_that_a_file_calls_are_known_by_their_slots() {
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    let imports = imports(&file);
    assert!(
        imports.iter().any(|import| import.name == b"mmap" || import.name == b"mmap64"),
        "{}",
        imports.len()
    );
}

#[test]
fn broken_files_are_no_files() {
    let (folder, inner) = program();
    let whole = std::fs::read(folder.path().join("program")).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let path = folder.path().join("broken");
    for round in 0..300 {
        let mut bytes = whole.clone();
        // Headers locate everything else: most damage goes there.
        for _ in 0..1 + round % 8 {
            let reach = if round % 2 == 0 { 0x400 } else { bytes.len() };
            let at = random() % reach;
            bytes[at] = random() as u8;
        }
        if round % 5 == 0 {
            bytes.truncate(random() % bytes.len());
        }
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        let layout = Layout::read(&file);
        let functions = layout.map(|layout| layout.functions().len()).unwrap_or_default();
        assert!(functions <= bytes.len());
        let _ = (name_at(&file, inner), imports(&file).len(), debug_symbols(&file).debug_file);
    }
}
