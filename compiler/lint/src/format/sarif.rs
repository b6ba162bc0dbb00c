//! SARIF 2.1.0, the format of code scanners.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use tpc_ir::Code;

use crate::{Accepted, Finding, lints};
use tpc_diag::Severity;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns the findings about each file, by path, as a log with one run.
///
/// Fingerprints are hashes of code, entity and message without layers and numbers, so they are stable across runs and
/// paths. `absent` are accepted findings that no longer occur.
pub fn sarif(files: &[(&str, &[Finding])], absent: &[Accepted]) -> Json {
    let all = || files.iter().flat_map(|(_, findings)| findings.iter());
    let lints = lints().map(|l| &l.code);
    let rules: BTreeSet<&Code> = lints.chain(all().map(|f| f.diagnostic.code)).collect();
    let place: BTreeMap<&Code, usize> = rules.iter().enumerate().map(|(i, c)| (*c, i)).collect();
    let results = files
        .iter()
        .enumerate()
        .flat_map(|(index, (path, findings))| {
            let place = &place;
            findings
                .iter()
                .map(move |f| result((path, index), f, place))
        });
    let absent = absent.iter().map(gone);
    let results: Vec<Json> = results.chain(absent).collect();
    let artifacts: Vec<Json> = files
        .iter()
        .map(|(path, _)| json!({ "location": { "uri": uri(path) } }))
        .collect();
    let error = |f: &&Finding| f.diagnostic.severity == Severity::Error;
    let usable = !all()
        .filter(error)
        .any(|f| tpc_diag::unusable(f.diagnostic.code));
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tpc",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|c| rule(c)).collect::<Vec<_>>(),
            }},
            "invocations": [{ "executionSuccessful": usable }],
            "artifacts": artifacts,
            "results": results,
        }],
    })
}

fn rule(code: &Code) -> Json {
    json!({
        "id": code.id,
        "shortDescription": { "text": code.title },
        "fullDescription": { "text": code.doc },
        "help": { "text": code.paragraphs().join(" ") },
    })
}

fn result((path, index): (&str, usize), f: &Finding, place: &BTreeMap<&Code, usize>) -> Json {
    let d = &f.diagnostic;
    let level = match d.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let text = match &d.help {
        Some(help) => format!("{}\n{help}", f.message()),
        None => f.message(),
    };
    let mut physical = json!({ "artifactLocation": { "uri": uri(path), "index": index } });
    if let Some(line) = d.line {
        physical["region"] = json!({ "startLine": line });
    }
    let named = f.entities.iter().map(|e| (e.kind.word(), e.to_string()));
    let entities: Vec<(&str, String)> = named.filter(|(_, name)| !name.is_empty()).collect();
    let logical = entities.iter().map(
        |(kind, e)| json!({ "name": e, "fullyQualifiedName": format!("{kind}/{e}"), "kind": kind }),
    );
    let mut location = json!({ "physicalLocation": physical });
    let captured = f.origin.as_ref().map(|origin| {
        let source = json!({
            "artifactLocation": { "uri": uri(&origin.file) },
            "region": { "startLine": origin.line },
        });
        std::mem::replace(&mut location, json!({ "physicalLocation": source }))
    });
    if !entities.is_empty() {
        location["logicalLocations"] = logical.collect();
    }
    let mut properties = json!({ "layers": f.layers, "devices": f.devices });
    if f.denied {
        properties["denied"] = true.into();
    }
    let mut out = json!({
        "ruleId": d.code.id,
        "level": level,
        "message": { "text": text },
        "locations": [location],
        "occurrenceCount": f.count,
        "partialFingerprints": { "tpcFinding/v1": f.fingerprint() },
        "properties": properties,
    });
    if let Some(captured) = captured {
        out["relatedLocations"] = json!([captured]);
    }
    if let Some(state) = f.baseline {
        out["baselineState"] = state.word().into();
    }
    if let Some(index) = place.get(d.code) {
        out["ruleIndex"] = (*index).into();
    }
    out
}

/// Returns the result of an accepted finding that no longer occurs.
fn gone(accepted: &Accepted) -> Json {
    let Accepted {
        file,
        code,
        entity,
        fingerprint,
        count,
    } = accepted;
    json!({
        "ruleId": code,
        "level": "none",
        "message": { "text": format!("{entity}: the accepted finding no longer occurs") },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(file) } } }],
        "occurrenceCount": count,
        "partialFingerprints": { "tpcFinding/v1": fingerprint },
        "baselineState": "absent",
    })
}

/// Converts a path to a URI. Absolute paths get a scheme; others are relative to the working directory.
fn uri(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    if path.starts_with("https://") || path.starts_with("http://") {
        return path.to_owned();
    }
    let path = path.replace('\\', "/");
    let mut out = String::new();
    if path.starts_with('/') {
        out.push_str("file://");
    }
    for b in path.bytes() {
        if plain(b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge;
    use crate::view::layer_name;
    use tpc_diag::{Diagnostic, Message, message};

    static SAMPLE: Code = Code::warning("TPC0301", "a sample", "A sample.");

    fn fingerprints(path: &str, entities: &[&str], message: &Message) -> Vec<String> {
        let found = entities
            .iter()
            .map(|e| Diagnostic::new(&SAMPLE, layer_name(e), message.clone()));
        let log = sarif(&[(path, &merge(found.collect()))], &[]);
        let results = log["runs"][0]["results"].as_array().expect("results");
        let of = |r: &Json| r["partialFingerprints"]["tpcFinding/v1"].to_string();
        results.iter().map(of).collect()
    }

    #[test]
    fn fingerprints_do_not_depend_on_paths_layers_and_numbers() {
        let blocks = |n: u64| message!("{} blocks", n);
        let one = fingerprints("a.gguf", &["blk.0.x"], &blocks(4));
        assert_eq!(
            one,
            fingerprints("/b/c.gguf", &["blk.3.x", "blk.4.x"], &blocks(5))
        );
        assert_ne!(one, fingerprints("a.gguf", &["blk.0.y"], &blocks(4)));
        let rows = message!("{} rows", 4_u64);
        assert_ne!(one, fingerprints("a.gguf", &["blk.0.x"], &rows));
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a b/c%.gguf"), "a%20b/c%25.gguf");
        assert_eq!(uri("/m/x#1.gguf"), "file:///m/x%231.gguf");
        assert_eq!(uri("https://h.org/x.gguf"), "https://h.org/x.gguf");
    }
}
