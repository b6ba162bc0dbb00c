//! Validates the JSON outputs of all tests against the schemas of `tpc schema`.
//!
//! A schema permits unknown keys and words, because later versions may add some. The tests also validate against a strict form, which
//! permits only the keys and words that the schema lists.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

use super::support::TPC;

/// The number of outputs that were validated in this process.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The variable with a folder that receives every validated output.
pub(crate) const STORE: &str = "TPC_STORE_JSON";
/// The outputs between two reports of the count.
const STEP: usize = 100;

/// Returns the schema of a command's output.
pub(crate) fn schema(command: &str) -> Json {
    let out = Command::new(TPC).args(["schema", command]).output();
    let out = out.unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "no schema of `tpc {command}`: {text}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Returns the commands that `tpc schema` lists.
pub(crate) fn commands() -> Vec<String> {
    let out = Command::new(TPC).arg("schema").output().unwrap();
    assert!(out.status.success());
    let name = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(name)
        .collect()
}

/// Forbids keys and words that a schema does not list.
pub(crate) fn strict(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), false.into());
            }
            if let Some(mut words) = map.remove("x-extensible-enum") {
                let kinds = map.get("type").and_then(Json::as_array);
                if let (Some(kinds), Json::Array(words)) = (kinds, &mut words)
                    && kinds.iter().any(|k| k == "null")
                {
                    words.push(Json::Null);
                }
                map.insert("enum".to_owned(), words);
            }
            map.values_mut().for_each(strict);
        }
        Json::Array(list) => list.iter_mut().for_each(strict),
        _ => {}
    }
}

/// A command's schema: as printed, and in strict form.
pub(crate) struct Validator {
    schemas: boon::Schemas,
    forms: [boon::SchemaIndex; 2],
}

impl Validator {
    pub(crate) fn new(open: Json) -> Validator {
        let mut closed = open.clone();
        strict(&mut closed);
        let mut schemas = boon::Schemas::new();
        let mut compile = |name: &str, schema: Json| {
            let mut compiler = boon::Compiler::new();
            compiler.add_resource(name, schema).unwrap();
            compiler.compile(name, &mut schemas).unwrap()
        };
        let forms = [compile("open.json", open), compile("strict.json", closed)];
        Validator { schemas, forms }
    }

    /// Returns the errors by the printed schema, or else by its strict form.
    pub(crate) fn errors(&self, output: &Json) -> Result<(), String> {
        for form in self.forms {
            let valid = self.schemas.validate(output, form);
            valid.map_err(|e| format!("{e:#}"))?;
        }
        Ok(())
    }
}

/// Returns the validator of a command. Each is made once per process.
fn validator(command: &str) -> Arc<Validator> {
    static ALL: Mutex<Option<HashMap<String, Arc<Validator>>>> = Mutex::new(None);
    let mut all = ALL.lock().unwrap();
    let all = all.get_or_insert_default();
    if let Some(known) = all.get(command) {
        return known.clone();
    }
    let new = Arc::new(Validator::new(schema(command)));
    all.insert(command.to_owned(), new.clone());
    new
}

/// Returns the format that a command line asks for.
fn format<'w>(words: &[&'w str]) -> Option<&'w str> {
    let own = words.split(|w| *w == "--").next().unwrap_or_default();
    let names = ["--format", "--embd-output-format", "-o", "--output"];
    let joined = |w: &&'w str| {
        let (name, value) = w.split_once('=')?;
        names.contains(&name).then_some(value)
    };
    let pair = own.windows(2).rev().find(|p| names.contains(&p[0]));
    pair.map(|p| p[1])
        .or_else(|| own.iter().rev().find_map(joined))
}

/// Validates the output of a command line of tpc, if it asks for JSON. An output may be absent, because the command failed.
pub(crate) fn check(words: &[&str], stdout: &str) {
    let Some((command, format)) = words.first().zip(format(words)) else {
        return;
    };
    if stdout.is_empty() {
        return;
    }
    let parsed = |text: &str| -> Json {
        let read = serde_json::from_str(text);
        read.unwrap_or_else(|e| panic!("`tpc {}` prints no JSON: {e}", words.join(" ")))
    };
    let output = match format {
        "json" | "json+" | "array" => parsed(stdout),
        "jsonl" => stdout.lines().map(parsed).collect(),
        _ => return,
    };
    if let Err(errors) = validator(command).errors(&output) {
        let line = words.join(" ");
        panic!("`tpc {line}` does not match `tpc schema {command}`:\n{errors:.4000}");
    }
    count(command, &output);
}

/// Counts an output, and stores it in the folder of `TPC_STORE_JSON`. Prints the count past the test harness.
fn count(command: &str, output: &Json) {
    let n = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    if n.is_multiple_of(STEP) {
        let _ = writeln!(std::io::stderr(), "{n} JSON outputs match their schemas");
    }
    if let Some(folder) = std::env::var_os(STORE) {
        let name = format!("{command}-{}-{n}.json", std::process::id());
        fs::write(PathBuf::from(folder).join(name), output.to_string()).unwrap();
    }
}
