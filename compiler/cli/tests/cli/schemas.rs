//! `tpc schema`: a schema per JSON output, and the promise about keys.
//!
//! `validation` validates the outputs of all other tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::support::{SMALL, Scratch, json, path, refuses, tpc};
use super::validation::{STORE, Validator, commands, schema};
use super::worded::worded;

#[test]
fn every_json_output_has_a_schema() {
    let listed: BTreeSet<String> = commands().into_iter().collect();
    let printing: BTreeSet<String> = ::tpc::catalogue::json_commands().into_iter().collect();
    assert!(printing.len() >= 10, "{printing:?}");
    assert_eq!(listed, printing);
    for command in &listed {
        let schema = schema(command);
        let draft = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(schema["$schema"], draft, "{command}");
        assert_eq!(schema["title"], format!("tpc {command}"));
        let text = schema.to_string();
        assert!(
            !text.contains("\"additionalProperties\":false"),
            "{command}: {text}"
        );
        assert!(!text.contains("x-closed"), "{command}: {text}");
    }
    refuses(&tpc(["schema", "synth"]), 2, "TPC0400");
}

#[test]
fn every_key_is_described() {
    let mut keys = 0;
    for command in commands() {
        each_object(&schema(&command), &mut |name, key, of| {
            keys += 1;
            let described = of.get("description").is_some() || of.get("$ref").is_some();
            assert!(described, "{command}: {name}.{key} has no description");
        });
    }
    assert!(keys > 300, "{keys} keys");
}

#[test]
fn a_type_has_one_name_and_a_name_one_type() {
    let mut types: BTreeMap<String, Json> = BTreeMap::new();
    for command in commands() {
        for (name, of) in schema(&command)["$defs"].as_object().into_iter().flatten() {
            let known = types.entry(name.clone()).or_insert_with(|| of.clone());
            assert_eq!(known, of, "{command}: {name}");
            // schemars appends a number to the second type of a name.
            assert!(
                !name.ends_with(|c: char| c.is_ascii_digit()),
                "{command}: {name}"
            );
        }
    }
    assert!(types.len() > 50, "{} types", types.len());
}

/// Calls `f` with each key of a schema: the type's name, the key and the key's schema. The key of a described variant is
/// described with the variant.
fn each_object(schema: &Json, f: &mut dyn FnMut(&str, &str, &Json)) {
    fn walk(name: &str, schema: &Json, f: &mut dyn FnMut(&str, &str, &Json)) {
        match schema {
            Json::Object(map) => {
                if let Some(Json::Object(keys)) = map.get("properties") {
                    keys.iter().for_each(|(key, of)| f(name, key, of));
                }
                let variants = map.get("oneOf").and_then(Json::as_array);
                if variants.is_some_and(|all| all.iter().all(|v| v.get("description").is_some())) {
                    return;
                }
                for (key, inner) in map {
                    if key == "$defs" {
                        let types = inner.as_object().unwrap();
                        types.iter().for_each(|(name, inner)| walk(name, inner, f));
                    } else {
                        walk(name, inner, f);
                    }
                }
            }
            Json::Array(list) => list.iter().for_each(|inner| walk(name, inner, f)),
            _ => {}
        }
    }
    walk("output", schema, f);
}

#[test]
fn an_output_that_differs_from_its_schema_is_found() {
    let model = path(SMALL);
    let plan = json(&["plan", &model, "--devices", "2", "--format", "json"]);
    let validator = Validator::new(schema("plan"));
    let errors = |change: &dyn Fn(&mut Json)| {
        let mut plan = plan.clone();
        change(&mut plan);
        validator.errors(&plan).err()
    };
    assert_eq!(errors(&|_| {}), None);
    type Change<'a> = &'a dyn Fn(&mut Json);
    let changes: [(&str, Change<'_>); 8] = [
        ("version", &|p| p["tpc"] = 2.into()),
        ("lost key", &|p| {
            p.as_object_mut().unwrap().remove("estimate");
        }),
        ("other type", &|p| p["devices"] = "two".into()),
        ("other type inside", &|p| {
            p["devices"][0]["kv_bytes"] = "many".into();
        }),
        ("unknown key", &|p| p["devices"][0]["new"] = 1.into()),
        ("unknown word", &|p| p["split_mode"] = "new".into()),
        ("unknown verdict", &|p| p["verdict"] = "new".into()),
        ("negative", &|p| p["mirrored_bytes"] = (-1).into()),
    ];
    for (what, change) in changes {
        assert!(errors(change).is_some(), "{what}");
    }
}

/// Runs every command that prints JSON. Returns the commands and the outputs.
fn outputs() -> Vec<(String, Json)> {
    let scratch = Scratch::new();
    let text = |p: &Path| p.to_str().unwrap().to_owned();
    let header = path(SMALL);
    let tiny = text(&scratch.model("llama-tiny"));
    let bert = text(&scratch.path("bert.gguf"));
    let spec = "bert-tiny:type=f32,vocab=64,embd=64,head_dim=8,ff=96,biases=1";
    assert_eq!(tpc(["synth", spec, "-o", &bert]).status, 0);
    let spec =
        "llama:layers=1,embd=64,heads=2,kv_heads=2,head_dim=32,ff=96,vocab=286,ctx=256,type=f32";
    let reader = text(&worded(&scratch, "worded.gguf", spec));
    let letters = text(&scratch.file("text.txt", "some words of letters ".repeat(9)));
    let artefact = text(&scratch.path("m.tpc"));
    let compiled = tpc(["compile", &tiny, "-o", &artefact, "-c", "64"]);
    assert_eq!(compiled.status, 0, "{}", compiled.stderr);
    let data = |name: &str| format!("{}/../../tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let capture = data("graphs/bloom-dense.jsonl");
    let changed = data("graphs/cohere2-dense.jsonl");
    let earlier = tpc(["plan", &header, "--devices", "2", "--format", "json"]).stdout;
    let earlier = text(&scratch.file("old.json", earlier));
    let lines = [
        format!("plan {header} --devices 2x3090 -sm tensor --why token_embd.weight --format json"),
        format!("plan {header} --devices 4xH100-SXM --engine llama.cpp --format json"),
        "plan nowhere.gguf --format json".to_owned(),
        format!("plan {header} {tiny} nowhere.gguf --devices 2 --format json"),
        format!("plan {header} --devices 4 --diff {earlier} --format json"),
        format!("lint {header} --devices 2..4 --format json"),
        format!("lint {header} {tiny} --format json"),
        format!("lint --format json -- llama-server -m {header} -sm tensor -c 4096"),
        format!("inspect {tiny} --format json"),
        format!("inspect {artefact} --format json"),
        format!("verify {tiny} --devices 2 --numeric --format json"),
        format!("verify {artefact} {tiny} --format json"),
        format!("bisect {capture} {capture} --format json"),
        format!("bisect {capture} {changed} --format json"),
        "models --format json".to_owned(),
        "devices --format json".to_owned(),
        "devices 3090 --format json".to_owned(),
        "doctor --quick --executor cuda --format json".to_owned(),
        format!("check {artefact} {tiny} --format json"),
        format!("check {artefact} {tiny} --devices cpu,cpu --format json"),
        format!("run {bert} --embeddings --tokens 1,2,3 --tokens 4,5 --embd-output-format json+"),
        format!("run {bert} --embeddings --tokens 1,2,3 --embd-output-format array"),
        format!("bench {tiny} -p 4 -n 2 -r 1 -t 1 --format json"),
        format!("bench {tiny} -p 4 -n 2 -r 1 -t 1 --profile --format json"),
        format!("perplexity {reader} -f {letters} -c 32 --chunks 1 --format json"),
        format!(
            "perplexity {reader} -f {letters} -c 32 --chunks 1 --compare=-ctk=f32 --format json"
        ),
    ];
    let output = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = tpc(&words);
        let output = serde_json::from_str(&ran.stdout);
        let output = output.unwrap_or_else(|e| panic!("tpc {line}: {e}: {}", ran.stderr));
        (words[0].to_owned(), output)
    };
    lines.iter().map(output).collect()
}

/// Validates `<command>-….json` files in a folder against `<command>.schema` files, and prints the number of valid files.
const PYTHON: &str = r#"
import json, pathlib, sys
from jsonschema import Draft202012Validator
schemas, outputs = map(pathlib.Path, sys.argv[1:])
validators = {}
for path in schemas.glob("*.schema"):
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    validators[path.stem] = Draft202012Validator(schema)
valid = 0
for path in sorted(outputs.glob("*.json")):
    validator = validators[path.name.split("-")[0]]
    errors = [f"{path.name}: {e.json_path}: {e.message:.200}" for e in validator.iter_errors(json.loads(path.read_text()))]
    print(*errors, sep="\n", end="\n" if errors else "", file=sys.stderr)
    valid += not errors
print(valid)
"#;

/// Validates a folder's outputs with Python. Returns the number of valid outputs and the errors.
fn with_python(schemas: &Path, outputs: &Path) -> (usize, String) {
    let ran = Command::new("python3")
        .args(["-c", PYTHON])
        .args([schemas, outputs])
        .output();
    let ran = ran.unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{errors}");
    let valid = String::from_utf8_lossy(&ran.stdout);
    (valid.trim().parse().unwrap(), errors)
}

#[test]
fn python_finds_the_outputs_valid() {
    let has = Command::new("python3")
        .args(["-c", "import jsonschema"])
        .output();
    if !has.is_ok_and(|ran| ran.status.success()) {
        return tpc_op_cases::skip_optional("python3 has no jsonschema");
    }
    let scratch = Scratch::new();
    let folder = |name: &str| {
        let folder = scratch.path(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    let (schemas, good, bad) = (folder("schemas"), folder("good"), folder("bad"));
    let listed = commands();
    for command in &listed {
        let file = schemas.join(format!("{command}.schema"));
        fs::write(file, schema(command).to_string()).unwrap();
    }
    let outputs = outputs();
    // `tpc rpc` prints the same objects as `tpc lint`.
    for command in listed.iter().filter(|c| *c != "rpc") {
        let mut own = outputs.iter().filter(|(of, _)| of == command);
        assert!(own.any(|_| true), "no output of tpc {command}");
    }
    for (i, (command, output)) in outputs.iter().enumerate() {
        let name = format!("{command}-{i}.json");
        fs::write(good.join(&name), output.to_string()).unwrap();
        let wrong = match output.clone() {
            Json::Object(mut map) => {
                map.insert("tpc".to_owned(), "one".into());
                Json::Object(map)
            }
            Json::Array(_) => Json::Array(vec![1.into()]),
            other => panic!("{other}"),
        };
        fs::write(bad.join(&name), wrong.to_string()).unwrap();
    }
    assert_eq!(with_python(&schemas, &good), (outputs.len(), String::new()));
    assert_eq!(with_python(&schemas, &bad).0, 0);
    let mut all = outputs.len();
    if let Some(stored) = std::env::var_os(STORE) {
        let (valid, errors) = with_python(&schemas, Path::new(&stored));
        assert_eq!(errors, "");
        all += valid;
    }
    println!("{all} outputs are valid in Python's jsonschema");
}
