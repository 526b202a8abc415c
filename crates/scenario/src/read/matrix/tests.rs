use std::time::Duration;

use throng_observation::Relief;

use crate::matrix::{Matrix, Measure, Places, ReadyWhen, SearchKeys, SetTo};

const CAMPUS: &str = include_str!("../../../../../fuzz/seeds/matrix/campus.toml");

fn campus() -> Matrix {
    Matrix::parse(CAMPUS).unwrap_or_else(|error| panic!("{error}"))
}

fn places() -> Places {
    Places { dir: "/runs/7".into(), base: "/study".into() }
}

#[test]
fn the_grid_is_the_product_of_all_levels_without_what_is_left_out() {
    let matrix = campus();
    assert_eq!((matrix.grid_size(), matrix.cells().len()), (16, 12));
    let first = matrix.cells().first().map(|cell| matrix.describe(cell));
    assert_eq!(first.as_deref(), Some("files=1 storage=disk codec=h264 quota=0.25"));
    let numbers: Vec<usize> = matrix.cells().iter().map(|cell| cell.number).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_seed_gives_one_order_in_which_every_round_has_every_cell_once() {
    let matrix = campus();
    let runs = matrix.runs();
    assert_eq!(runs, campus().runs(), "the same seed, the same order");
    assert_ne!(runs, Matrix { seed: 8, ..campus() }.runs());
    for (round, runs) in runs.chunks(12).enumerate() {
        let mut cells: Vec<usize> = runs.iter().map(|run| run.cell).collect();
        assert_ne!(cells, (0..12).collect::<Vec<_>>(), "not as written");
        cells.sort_unstable();
        assert_eq!(cells, (0..12).collect::<Vec<_>>());
        assert!(runs.iter().all(|run| run.repeat as usize == round + 1));
    }
}

#[test]
fn a_cell_has_the_changes_of_its_levels() {
    let matrix = campus();
    let cell = matrix.cells().into_iter().find(|cell| cell.levels == [1, 0, 1, 1]).unwrap();
    let config = matrix.cell(&cell, &places());
    assert_eq!(
        config.set,
        [
            ("target.url", "\"rtsp://127.0.0.1:8554/mpeg2-{stream}\""),
            ("crowd.arrival", "{ every = \"100ms\" }"),
            ("crowd.streams", "10"),
        ]
        .map(|(path, value)| (path.to_owned(), value.to_owned()))
    );
    let server = &config.server;
    assert_eq!(server.command.clone().unwrap(), ["server.py", "--folder", "/mnt/disk"]);
    assert_eq!((server.cpus.as_deref(), server.cpu_quota), (Some("0"), Some(1.0)));
    assert_eq!(server.ready.as_ref().unwrap().when, ReadyWhen::Port(8554));
    assert_eq!(server.files[0].path, "/runs/7/a.conf");
    assert_eq!(
        (config.setup[0].run.join(" "), config.setup[0].undo.join(" ")),
        ("up /study".into(), "down".into())
    );
}

#[test]
fn what_a_level_relieves_is_seen_against_levels_that_do_not() {
    let matrix = campus();
    let of = Relief::of_resource;
    assert_eq!(matrix.relieved(1, 0, 1), Some(&of("disk")));
    assert_eq!(matrix.relieved(1, 1, 0), None, "from tmpfs to the disk relieves nothing");
    assert_eq!((matrix.relieved(3, 0, 1), matrix.relieved(3, 1, 0)), (Some(&of("cpu")), None));
    assert_eq!(matrix.relieved(0, 0, 1), None);
}

#[test]
fn a_search_is_the_other_measure() {
    let text = "scenario = \"a\"\n[find]\nbudget = \"1m\"\nceiling = 60\n[[factor]]\nname = \"a\"\nlevels = [1]\n";
    let matrix = Matrix::parse(text).unwrap();
    let budget = Duration::from_secs(60);
    assert_eq!(
        matrix.measure,
        Measure::Find(SearchKeys { budget, start: None, ceiling: Some(60) })
    );
}

#[test]
fn values_keep_their_type() {
    let text = "scenario = \"a\"\nhold = \"20s\"\n[[factor]]\nname = \"a\"\nset = \"x\"\nlevels = [1, true, \"t\", 0.5]\n";
    let matrix = Matrix::parse(text).unwrap();
    let values: Vec<bool> = matrix.factors[0]
        .levels
        .iter()
        .map(|level| matches!(level.set[0].value, SetTo::Text(_)))
        .collect();
    assert_eq!(values, [false, false, true, false]);
}

/// Each wrong line, what is said about it, and where.
#[test]
fn errors_name_the_line_and_the_fix() {
    let head = "scenario = \"a.toml\"\nhold = \"20s\"\n";
    let factor = "[[factor]]\nname = \"files\"\nlevels = [1, 10]\n";
    for (text, expect) in [
        (format!("hold = \"20s\"\n{factor}"), "`scenario` is missing"),
        (format!("scenario = \"a\"\n{factor}"), "`hold` is missing"),
        (head.to_owned(), "there is no factor"),
        (format!("{head}hold2 = 1\n{factor}"), "unknown key `hold2`"),
        (format!("scenario = \"a\"\nhold = \"1s\"\n{factor}"), "`hold` must be from 2 s to 24 h"),
        (format!("{head}{factor}[find]\nbudget = \"1m\"\n"), "either held or searched"),
        (format!("{head}[[factor]]\nlevels = [1]\n"), "`factor.0` has no name"),
        (format!("{head}[[factor]]\nname = \"dir\"\nlevels = [1]\n"), "must be unique"),
        (format!("{head}[[factor]]\nname = \"a\"\n"), "has no levels"),
        (format!("{head}[[factor]]\nname = \"a\"\nlevels = []\n"), "is not a list"),
        (format!("{head}[[factor]]\nname = \"a\"\nlevels = [1, 1]\n"), "must be unique and short"),
        (format!("{head}[[factor]]\nname = \"a\"\nlevels = [{{}}]\n"), "has no name"),
        (format!("{head}{factor}relieves = \"disc\"\n"), "did you mean \"disk\"?"),
        (
            format!("{head}{factor}[server]\ncommand = [\"a\", \"{{{{flies}}}}\"]\n"),
            "did you mean `{{files}}`?",
        ),
        (format!("{head}{factor}[server]\ncommand = [\"a\", \"{{files}}\"]\n"), "write {{files}}"),
        (format!("{head}{factor}[server]\ncommand = []\n"), "must have a program"),
        (format!("{head}{factor}[server]\nready = {{ }}\n"), "exactly one of port, url, log"),
        (
            format!("{head}{factor}[server]\nready = {{ url = \"https://h/\" }}\n"),
            "is no http:// URL",
        ),
        (format!("{head}{factor}[server]\nmemory = \"200\"\n"), "is not a size"),
        (
            format!("{head}{factor}[server]\nstop = {{ signal = \"SIGKIL\" }}\n"),
            "is not one of \"SIGTERM\"",
        ),
        (
            format!("{head}{factor}[server]\ndisk = {{ path = \"/\" }}\n"),
            "`server.disk.read` is missing",
        ),
        (format!("{head}setup = [{{ undo = [\"a\"] }}]\n{factor}"), "has no `run`"),
        (format!("{head}{factor}[[only]]\nflies = 1\n"), "did you mean `files`?"),
        (format!("{head}{factor}[[only]]\nfiles = 2\n"), "its levels are 1, 10"),
        (format!("{head}{factor}[[except]]\nfiles = [1, 10]\n"), "no cell is left"),
        (
            format!(
                "{head}[[factor]]\nname = \"a\"\nlevels = [{{ name = \"x\", variables = {{ f = 1 }} }}, 2]\n"
            ),
            "level `2` of factor `a` has no variable `f`",
        ),
        (
            format!("{head}[[factor]]\nname = \"a\"\nserver = \"cpu_quote\"\nlevels = [1]\n"),
            "did you mean `cpu_quota`?",
        ),
    ] {
        let error = match Matrix::parse(&text) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("no error in\n{text}"),
        };
        assert!(error.contains(expect), "{expect}\n--- is not in\n{error}\n--- of\n{text}");
    }
    let error =
        Matrix::parse(&format!("{head}{factor}[server]\ncwd = \"{{{{flies}}}}\"\n")).unwrap_err();
    assert!(error.to_string().contains("line 7, column 8"), "{error}");
}

#[test]
fn a_grid_that_is_too_large_is_refused_before_it_is_made() {
    let levels: Vec<String> = (0..64).map(|level| level.to_string()).collect();
    let factor =
        |name: &str| format!("[[factor]]\nname = \"{name}\"\nlevels = [{}]\n", levels.join(", "));
    let text =
        format!("scenario = \"a\"\nhold = \"20s\"\n{}{}{}", factor("a"), factor("b"), factor("c"));
    assert!(Matrix::parse(&text).unwrap_err().to_string().contains("the grid has 262144 cells"));
}
