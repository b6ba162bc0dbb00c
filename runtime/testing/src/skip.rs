//! Skips tests that need a compiler, a card or a model.

use std::fmt::Display;
use std::io::Write;

/// The variable that forbids skipped tests. `.ci/run` sets it if everything could be installed.
const REQUIRE_ALL: &str = "TPC_REQUIRE_ALL";
/// The variable with the path of the list of skipped tests.
const LIST: &str = "TPC_SKIPPED";

/// Reports that the rest of a test is skipped, in the file `TPC_SKIPPED` and on standard error. The test harness does
/// not capture this output.
///
/// # Panics
/// Panics if `TPC_REQUIRE_ALL` is 1.
pub fn skip(why: impl Display) {
    let line = line(why);
    if std::env::var_os(REQUIRE_ALL).is_some_and(|v| v == "1") {
        panic!("{line}; {REQUIRE_ALL}=1 forbids skipped tests");
    }
    report(&line);
}

/// Reports a skipped test if no suitable card exists. `TPC_REQUIRE_ALL` permits this, because no script can install a
/// card.
pub fn skip_without_card(why: impl Display) {
    report(&line(why));
}

/// Reports a skipped test that needs a tool which `.ci/run` does not install. `TPC_REQUIRE_ALL` permits this.
pub fn skip_optional(why: impl Display) {
    report(&line(why));
}

fn line(why: impl Display) -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    format!("skipped: {test}: {why}")
}

fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
    let Some(list) = std::env::var_os(LIST) else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(list);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}
