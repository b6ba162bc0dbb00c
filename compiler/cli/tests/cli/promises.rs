//! The promise about JSON outputs: keys and words do not disappear, and keys keep their types.
//!
//! `promised-keys.txt` has a line per key, per required key and per word. `TPC_BLESS=1` adds new lines, but never removes one.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use super::validation::{commands, schema};

/// Describes the type of a key: `string`, `array of integer`, `PlanReport or null`.
fn kind(of: &Json) -> String {
    let list = |all: &Json| -> Vec<String> { all.as_array().unwrap().iter().map(kind).collect() };
    if let Some(name) = of["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(all) = ["anyOf", "oneOf", "allOf", "prefixItems"]
        .iter()
        .find_map(|k| of.get(k))
    {
        return list(all).join(" or ");
    }
    let of_items = |kind: &str| match (kind, of.get("items"), of.get("additionalProperties")) {
        ("array", Some(items), _) => format!("array of {}", self::kind(items)),
        ("object", _, Some(values)) => format!("map of {}", self::kind(values)),
        _ => kind.to_owned(),
    };
    match &of["type"] {
        Json::String(one) => of_items(one),
        Json::Array(all) => {
            let names = all.iter().map(|k| of_items(k.as_str().unwrap()));
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Adds the lines of a type with keys, and of the types inside.
fn lines(place: &str, schema: &Json, out: &mut BTreeSet<String>) {
    for list in ["enum", "x-extensible-enum"] {
        let words = schema[list].as_array().into_iter().flatten();
        out.extend(words.map(|w| format!("{place} = {w}")));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    if schema.get("properties").is_some() {
        out.extend(required.map(|key| format!("{place}.{} required", key.as_str().unwrap())));
    }
    for (key, of) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{key}");
        out.insert(format!("{place}: {}", kind(of)));
        lines(&place, of, out);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(of) = schema.get(inner) {
            lines(&format!("{place}[]"), of, out);
        }
    }
    for list in ["anyOf", "oneOf", "prefixItems"] {
        for of in schema[list].as_array().into_iter().flatten() {
            lines(place, of, out);
        }
    }
}

/// Returns the lines of a command's schema. Commands share types, and a type has one line per key.
fn promised_by(command: &str, schema: &Json) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    lines(command, schema, &mut out);
    out.insert(format!("{command}: {}", kind(schema)));
    for (name, of) in schema["$defs"].as_object().into_iter().flatten() {
        lines(name, of, &mut out);
    }
    out
}

#[test]
fn promised_keys_and_words_stay() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/promised-keys.txt");
    let stored = std::fs::read_to_string(&file).unwrap();
    let stored: BTreeSet<String> = stored.lines().map(str::to_owned).collect();
    let now: BTreeSet<String> = commands()
        .iter()
        .flat_map(|c| promised_by(c, &schema(c)))
        .collect();
    assert!(now.len() > 500, "{} lines", now.len());
    let lost: Vec<&String> = stored.difference(&now).collect();
    assert!(
        lost.is_empty(),
        "tpc promises these keys and words, but lacks them: {lost:#?}"
    );
    if now == stored {
        return;
    }
    if std::env::var_os("TPC_BLESS").is_some_and(|v| v == "1") {
        let text: String = now.iter().map(|l| format!("{l}\n")).collect();
        std::fs::write(&file, text).unwrap();
        return;
    }
    let new: Vec<&String> = now.difference(&stored).collect();
    panic!("these keys and words are new: promise them with TPC_BLESS=1: {new:#?}");
}

#[test]
fn a_broken_promise_is_found() {
    let plan = schema("plan");
    let before = promised_by("plan", &plan);
    let lost = |change: &dyn Fn(&mut Json)| {
        let mut plan = plan.clone();
        change(&mut plan);
        let after = promised_by("plan", &plan);
        before.difference(&after).cloned().collect::<Vec<_>>()
    };
    let removed = lost(&|s| {
        s["$defs"]["ModelReport"]["properties"]
            .as_object_mut()
            .unwrap()
            .remove("n_layer");
    });
    assert_eq!(removed, ["ModelReport.n_layer: integer"]);
    let changed =
        lost(&|s| s["$defs"]["ModelReport"]["properties"]["path"]["type"] = "integer".into());
    assert_eq!(changed, ["ModelReport.path: string"]);
    let optional = lost(&|s| {
        let required = s["$defs"]["ModelReport"]["required"]
            .as_array_mut()
            .unwrap();
        required.retain(|key| key != "bytes");
    });
    assert_eq!(optional, ["ModelReport.bytes required"]);
    let word = lost(&|s| {
        let words = s["$defs"]["PlanReport"]["properties"]["split_mode"]["x-extensible-enum"]
            .as_array_mut();
        words.unwrap().retain(|w| w != "hybrid");
    });
    assert_eq!(word, ["PlanReport.split_mode = \"hybrid\""]);
}
