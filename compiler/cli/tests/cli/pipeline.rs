//! The example pipeline: `docs/examples/pipeline` with the steps of the GitHub action.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::artefact::changed;
use super::support::{Ran, Scratch, TPC, tpc};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The example project in a folder of its own, with a model and an artefact.
struct Project(Scratch);

impl Project {
    fn new() -> Project {
        let project = Project(Scratch::new());
        let example = root().join("docs/examples/pipeline");
        for name in ["tpc.toml", "Makefile", "CMakeLists.txt", "check"] {
            fs::copy(example.join(name), project.0.path(name)).unwrap();
        }
        fs::create_dir(project.0.path("models")).unwrap();
        fs::create_dir(project.0.path("bin")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(TPC, project.0.path("bin/tpc")).unwrap();
        project.synth("llama-tiny");
        project.compile();
        project
    }

    fn synth(&self, spec: &str) {
        let model = self.0.path("models/model.gguf");
        let ran = tpc(["synth", spec, "-o", model.to_str().unwrap()]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }

    fn compile(&self) {
        let [model, artefact] = ["models/model.gguf", "models/model.tpc"].map(|p| self.0.path(p));
        let words = ["compile", model.to_str().unwrap()];
        let more = ["-o", artefact.to_str().unwrap(), "--devices", "cpu,cpu"];
        let ran = tpc([&words[..], &more, &["-sm", "tensor", "-c", "128"]].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }

    fn command(&self, program: &str, words: &[&str], variables: &[(&str, &str)]) -> Ran {
        let path = std::env::var("PATH").unwrap();
        let rules = root().join("release/pipeline");
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.0.0);
        command.env("PATH", format!("{}/bin:{path}", self.0.0.display()));
        command
            .env("TPC_STEPS", rules.join("steps"))
            .env("TPC_RULES", &rules);
        command.env_remove("GITHUB_STEP_SUMMARY");
        command.envs(variables.iter().copied());
        command.output().unwrap().into()
    }

    /// Runs `check`, and returns the steps that failed.
    fn failed(&self, variables: &[(&str, &str)]) -> String {
        let ran = self.command("./check", &[], variables);
        let last = ran.stderr.lines().last().unwrap_or_default().to_owned();
        assert_eq!(
            ran.status == 0,
            !last.starts_with("failed:"),
            "{}",
            ran.stderr
        );
        last.strip_prefix("failed:").unwrap_or_default().to_owned()
    }
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
}

#[test]
fn a_sound_project_passes_and_leaves_its_reports() {
    let project = Project::new();
    assert_eq!(project.failed(&[]), "");
    let out = |name: &str| fs::read_to_string(project.0.path(&format!("tpc-out/{name}"))).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&out("lint.sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(out("summary.md").starts_with("### models/model.gguf\n\n```text\n"));
    let plan: serde_json::Value =
        serde_json::from_str(&out("plans/models_model.gguf.json")).unwrap();
    assert_eq!(plan["verdict"], "ok");
    // Compare with the plan of an earlier model.
    fs::rename(project.0.path("tpc-out/plans"), project.0.path("before")).unwrap();
    project.synth("llama-tiny:layers=4");
    let steps = root().join("release/pipeline/steps");
    let words = ["diff", "before", "models/model.gguf", "models/new.gguf"];
    fs::copy(
        project.0.path("models/model.gguf"),
        project.0.path("models/new.gguf"),
    )
    .unwrap();
    let summary = project.0.path("summary");
    let ran = project.command(
        steps.to_str().unwrap(),
        &words,
        &[
            ("TPC_OPTIONS", "--devices 2 -sm tensor -c 128"),
            ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let comment = out("comment.md");
    assert!(
        comment.contains("another model") || comment.contains("layers"),
        "{comment}"
    );
    assert!(
        comment.contains("### models/new.gguf\n\nNew: "),
        "{comment}"
    );
}

#[test]
fn a_pipeline_fails_in_four_ways() {
    let project = Project::new();
    let with = |options| project.failed(&[("TPC_OPTIONS", options)]);
    assert_eq!(
        with("--devices 2 -sm tensor -c 128 -ot nothing=CPU"),
        " lint"
    );
    let full = with("--devices 2x3060 -c 1000000000");
    assert!(full.contains(" plan"), "{full}");
    // The programs compute another model: two weights of equal shape are swapped.
    let artefact = project.0.path("models/model.tpc");
    let norms = ["attn_norm", "ffn_norm"].map(|n| format!("tensor = \"blk.0.{n}.weight\""));
    for (from, to) in [
        (norms[0].as_str(), "tensor = \"x\""),
        (norms[1].as_str(), norms[0].as_str()),
        ("tensor = \"x\"", norms[1].as_str()),
    ] {
        changed(&artefact, 1, from, to);
    }
    assert_eq!(project.failed(&[]), " verify");
    project.compile();
    assert_eq!(project.failed(&[]), "");
    // The model changed after the artefact was compiled.
    project.synth("llama-tiny:layers=3");
    let stale = project.failed(&[]);
    assert!(stale.contains(" check"), "{stale}");
}

#[test]
fn build_systems_compile_an_artefact_once() {
    let project = Project::new();
    let artefact = project.0.path("models/model.tpc");
    fs::remove_file(&artefact).unwrap();
    let rules = format!("-DTPC_RULES={}", root().join("release/pipeline").display());
    for (program, words, again) in [
        ("make", &["-s"][..], &["-s", "-q"][..]),
        (
            "cmake",
            &["-B", "build", &rules, "."],
            &["--build", "build"],
        ),
    ] {
        if !has(program) {
            println!("skipped: {program} is missing");
            continue;
        }
        for words in [words, again] {
            let ran = project.command(program, words, &[]);
            assert_eq!(ran.status, 0, "{program}: {}{}", ran.stdout, ran.stderr);
        }
    }
    if has("make") {
        let made = fs::read(&artefact).unwrap();
        if has("cmake") {
            assert_eq!(made, fs::read(project.0.path("build/model.tpc")).unwrap());
        }
        // A changed model makes the artefact stale.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        project.synth("llama-tiny:layers=3");
        assert_ne!(project.command("make", &["-s", "-q"], &[]).status, 0);
    }
}

#[test]
fn unknown_steps_print_the_usage() {
    let ran = Command::new(root().join("release/pipeline/steps"))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("steps lint MODEL…") && said.contains("TPC_OUT"),
        "{said}"
    );
}
