//! Outcomes of tests that neither pass nor fail. `make test` counts and lists both kinds in its
//! last lines (`scripts/test-report.py` looks for these words).

/// Prints that this test, or a part of it, is skipped because this machine lacks something; the
/// test then returns.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must be reported where the test runner shows it"
)]
pub fn skipped(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}

/// Ends a test whose measurement was spoiled by the machine, not by the program under test.
///
/// # Panics
/// Always: no test runner knows a third outcome, and a test that showed nothing must not be taken
/// for one that passed.
pub fn not_tested(reason: &str) -> ! {
    panic!("NOT TESTED: {reason}");
}

/// Whether this test may make network namespaces; otherwise it is skipped.
#[must_use]
pub fn requires_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skipped("it makes network namespaces, which needs root");
    }
    root
}
