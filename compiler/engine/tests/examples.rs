//! Runs the programs in `docs/examples`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tpc_engine::artefact::STORAGE_FORMATS;
use tpc_runtime::quant;
use tpc_synth::{Model, Spec};

fn run(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples");
    let program = folder
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    let ran = Command::new(&program).args(arguments).output();
    let ran = ran.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{name}: {errors}");
    String::from_utf8(ran.stdout).unwrap()
}

fn model(folder: &Path) -> PathBuf {
    let quantise = |dtype, values: &[f32], out: &mut Vec<u8>| {
        quant::quantise(dtype, values, out).map_err(|e| e.to_string())
    };
    let spec = Spec::parse("llama:layers=2,embd=128,heads=4,kv_heads=2,ff=256,type=q8_0").unwrap();
    let path = folder.join("model.gguf");
    let file = std::fs::File::create(&path).unwrap();
    Model::new(spec, &quantise).unwrap().write(file).unwrap();
    path
}

#[test]
fn the_examples_plan_compile_and_generate() {
    let folder = std::env::temp_dir().join(format!("tpc-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let model = model(&folder);
    let model = model.to_str().unwrap();

    let plan = run("plan", &[model, "2"]);
    assert!(plan.contains("on 2 devices"), "{plan}");

    let artefact = folder.join("model.tpc");
    run("compile", &[model, "2", artefact.to_str().unwrap()]);
    let artefact =
        tpc_artefact::Artefact::read(&std::fs::read(&artefact).unwrap(), STORAGE_FORMATS).unwrap();
    assert_eq!(artefact.manifest().devices.len(), 2);

    let alone = run("generate", &[model, "1", "1,2,3", "12"]);
    assert_eq!(alone.trim().split(',').count(), 12, "{alone}");
    assert_eq!(run("generate", &[model, "2", "1,2,3", "12"]), alone);
    std::fs::remove_dir_all(&folder).unwrap();
}
