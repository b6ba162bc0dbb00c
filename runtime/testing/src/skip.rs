//! Tests that need what this machine lacks: a compiler, a card, a model.

use std::fmt::Display;
use std::io::Write;

/// The variable under which a skipped test fails. `.ci/run` sets it if it could install everything.
const REQUIRE_ALL: &str = "TPC_REQUIRE_ALL";
/// The variable with the file that gets a line per skipped test.
const LIST: &str = "TPC_SKIPPED";

/// Reports that the rest of a test is skipped, and why. The line goes to standard error past the capture of the test harness, and to
/// the file of `TPC_SKIPPED`.
///
/// # Panics
/// Panics if `TPC_REQUIRE_ALL` is 1: nothing may be skipped then.
pub fn skip(why: impl Display) {
    let line = line(why);
    if std::env::var_os(REQUIRE_ALL).is_some_and(|v| v == "1") {
        panic!("{line}; {REQUIRE_ALL}=1 allows no skipped test");
    }
    report(&line);
}

/// Reports that the rest of a test is skipped for want of a card. No script installs one, so `TPC_REQUIRE_ALL` does not ask for it.
pub fn skip_without_card(why: impl Display) {
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
