//! Sessions of `tpc run`: several prompts, drafts, context shifts, files.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::{Ran, Scratch, TPC, refuses, tpc, words};

fn run(model: &Path, options: &[&str]) -> Ran {
    let model = model.to_str().unwrap();
    let first = ["run", model, "--temp", "0", "--ignore-eos", "-t", "1"];
    tpc(first.iter().chain(options))
}

fn small(scratch: &Scratch, architecture: &str) -> std::path::PathBuf {
    scratch.model(&format!("{architecture}:layers=1,type=q8_0"))
}

#[test]
fn prompts_side_by_side_have_the_answers_of_each_alone() {
    let scratch = Scratch::new();
    for spec in [
        "llama-tiny:layers=1,type=q8_0",
        "mamba2-tiny:layers=1,type=q8_0",
        "qwen35-tiny:layers=4,type=q8_0",
    ] {
        side_by_side(&scratch.model(spec), spec);
    }
}

fn side_by_side(model: &Path, spec: &str) {
    let prompts = ["1,2,3", "7", "5,4,3,2,1,9,8", "11,12", "3,3,3,3"];
    let alone: Vec<String> = prompts
        .iter()
        .map(|p| run(model, &["--tokens", p, "-n", "5"]).stdout)
        .collect();
    let wanted: Vec<String> = (1..)
        .zip(&alone)
        .map(|(i, a)| format!("[{i}]\n{a}"))
        .collect();
    let all: Vec<&str> = prompts.iter().flat_map(|p| ["--tokens", *p]).collect();
    for np in ["1", "2", "3", "5"] {
        let options = [&all[..], &["-n", "5", "-np", np, "-ub", "4", "-c", "640"]].concat();
        let ran = run(model, &options);
        assert_eq!(ran.status, 0, "{spec} -np {np}: {}", ran.stderr);
        assert_eq!(ran.stdout, wanted.concat(), "{spec} -np {np}");
    }
    let options = [&all[..], &["--save", "x"]].concat();
    refuses(&run(model, &options), 2, "TPC0400");
}

#[test]
fn drafts_do_not_change_the_answer() {
    let scratch = Scratch::new();
    for spec in [
        "glm4moe-tiny:drafts=1",
        "qwen35-tiny:drafts=1,layers=3,type=q8_0",
        "mimo2-tiny:drafts=3,window=5,type=q8_0,biases=1",
    ] {
        let model = scratch.model(spec);
        let options = ["--tokens", "1,2,3,4,5,6,7", "-n", "24"];
        let without = run(&model, &options);
        assert_eq!(without.status, 0, "{spec}: {}", without.stderr);
        assert!(!without.stderr.contains("drafted"), "{}", without.stderr);
        let with = run(
            &model,
            &[&options[..], &["--spec-type", "draft-mtp"]].concat(),
        );
        assert_eq!(with.stdout, without.stdout, "{spec}: {}", with.stderr);
        assert!(
            with.stderr.contains(" drafted tokens accepted"),
            "{}",
            with.stderr
        );
    }
}

#[test]
fn a_context_shift_goes_on_where_the_context_is_full() {
    let scratch = Scratch::new();
    let model = small(&scratch, "llama-tiny");
    let options = ["--tokens", "1,2,3,4,5", "-c", "16", "-n", "60"];
    let ends = run(&model, &options);
    assert!(ends.stderr.contains("TPC0425"), "{}", ends.stderr);
    for keep in ["0", "3", "-1"] {
        let more = ["--context-shift", "--keep", keep];
        let ran = run(&model, &[&options[..], &more].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout.trim_end().split(',').count(), 60);
        assert!(ran.stdout.starts_with(ends.stdout.trim_end()));
    }
    let recurrent = small(&scratch, "mamba2-tiny");
    let more = ["--context-shift"];
    let ran = run(&recurrent, &[&options[..], &more].concat());
    refuses(&ran, 1, "TPC0575");
    // The diagnostic must not recommend an impossible option.
    let ends = run(&recurrent, &options);
    let told = words(&ends.stderr);
    assert!(
        told.contains("TPC0425") && told.contains("--context-shift is not possible"),
        "{told}"
    );
}

#[test]
fn the_files_of_a_session_are_looked_at_before_the_model_is_loaded() {
    let scratch = Scratch::new();
    let model = small(&scratch, "llama-tiny");
    let cache = scratch.path("cache.session");
    let cache = cache.to_str().unwrap();
    let begin = ["--tokens", "1,2,3,4,5", "-n", "4"];
    for place in ["/no/such/folder/x", scratch.0.to_str().unwrap()] {
        for option in ["--save", "--prompt-cache"] {
            let ran = run(&model, &[&begin[..], &[option, place]].concat());
            refuses(&ran, 2, "TPC0402");
        }
    }
    let with = |tokens: &str, more: &[&str]| {
        let words = ["--tokens", tokens, "-n", "4", "--prompt-cache", cache];
        run(&model, &[&words[..], more].concat())
    };
    assert_eq!(with("1,2,3,4,5", &[]).status, 0);
    let before = std::fs::read(cache).unwrap();
    let ran = with("1,2,3,7,8,9", &["--prompt-cache-ro"]);
    assert!(ran.stderr.contains("prompt 3 tokens"), "{}", ran.stderr);
    assert_eq!(std::fs::read(cache).unwrap(), before, "it is only read");
    assert_eq!(with("1,2,3,7,8,9", &[]).status, 0);
    assert_ne!(std::fs::read(cache).unwrap(), before);
    let alone = run(&model, &[&begin[..], &["--prompt-cache-ro"]].concat());
    refuses(&alone, 2, "TPC0400");
}

#[test]
fn a_saved_session_goes_on() {
    let scratch = Scratch::new();
    let model = small(&scratch, "llama-tiny");
    let file = scratch.path("kept.session");
    let file = file.to_str().unwrap();
    let begin = ["--tokens", "1,2,3,4,5", "-n", "6"];
    let first = run(&model, &[&begin[..], &["--save", file]].concat());
    assert_eq!(first.status, 0, "{}", first.stderr);
    let text = format!("1,2,3,4,5,{},9", first.stdout.trim_end());
    let options = ["--tokens", &text, "-n", "6"];
    let wanted = run(&model, &options);
    let more = ["--load", file, "--devices", "cpu,cpu", "-sm", "tensor"];
    for n in [2, 6] {
        let ran = run(&model, &[&options[..], &more[..n]].concat());
        assert_eq!(ran.stdout, wanted.stdout, "{}", ran.stderr);
        // The answer's last token is not in the cache yet, and 9 is new.
        assert!(ran.stderr.contains("prompt 2 tokens"), "{}", ran.stderr);
    }
    let cache = scratch.path("cache.session");
    let cache = ["--prompt-cache", cache.to_str().unwrap()];
    for read in ["prompt 12 tokens", "prompt 1 tokens"] {
        let ran = run(&model, &[&options[..], &cache].concat());
        assert_eq!(ran.stdout, wanted.stdout, "{}", ran.stderr);
        assert!(ran.stderr.contains(read), "{}", ran.stderr);
    }
    let other = small(&scratch, "qwen2-tiny");
    let ran = run(&other, &[&options[..], &["--load", file]].concat());
    refuses(&ran, 1, "TPC0574");
    let mut bytes = std::fs::read(file).unwrap();
    bytes.pop();
    let cut = scratch.file("cut.session", &bytes);
    let load = ["--load", cut.to_str().unwrap()];
    refuses(&run(&model, &[&options[..], &load].concat()), 1, "TPC0572");
    let load = ["--load", "/no/such/file"];
    let ran = run(&model, &[&options[..], &load].concat());
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    let exact = ["--save", file, "--executor", "reference"];
    refuses(&run(&model, &[&begin[..], &exact].concat()), 1, "TPC0576");
}

#[test]
fn an_empty_prompt_continues_the_saved_text() {
    let scratch = Scratch::new();
    for spec in ["llama-tiny", "mamba2-tiny", "gemma3-tiny"] {
        let model = small(&scratch, spec);
        let file = scratch.path("kept.session");
        let file = file.to_str().unwrap();
        let begin = ["--tokens", "1,2,3,4,5"];
        let wanted = run(&model, &[&begin[..], &["-n", "12"]].concat());
        assert_eq!(wanted.status, 0, "{}", wanted.stderr);
        let first = run(&model, &[&begin[..], &["-n", "5", "--save", file]].concat());
        let more = ["--tokens", "", "--load", file, "-n"];
        // The second run saves a session that the third continues.
        let second = run(&model, &[&more[..], &["4", "--save", file]].concat());
        assert!(
            second.stderr.contains("prompt 1 tokens"),
            "{}",
            second.stderr
        );
        let third = run(&model, &[&more[..], &["3"]].concat());
        let parts = [&first, &second, &third].map(|ran| ran.stdout.trim_end());
        assert_eq!(parts.join(","), wanted.stdout.trim_end(), "{spec}");
    }
    let none = ["--tokens", "", "-n", "1"];
    refuses(&run(&small(&scratch, "llama-tiny"), &none), 2, "TPC0400");
}

fn saving(model: &Path, options: &[&str]) -> Child {
    Command::new(TPC)
        .args(["run", model.to_str().unwrap(), "--temp", "0", "-t", "1"])
        .args(["--ignore-eos"])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_run_leaves_a_whole_file() {
    let scratch = Scratch::new();
    let model = small(&scratch, "llama-tiny");
    let file = scratch.path("kept.session");
    let file = file.to_str().unwrap();
    let options = [
        "--tokens", "1,2,3", "-n", "40", "-c", "4096", "--save", file,
    ];
    let begun = std::time::Instant::now();
    assert!(saving(&model, &options).wait().unwrap().success());
    let whole = begun.elapsed();
    let check = ["--tokens", "1,2,3,4", "-n", "2", "-c", "4096"];
    let wanted = run(&model, &check).stdout;
    for i in 1..=12 {
        let mut child = saving(&model, &options);
        std::thread::sleep(whole.mul_f64(0.7 + 0.05 * f64::from(i)));
        let _ = child.kill();
        child.wait().unwrap();
        let ran = run(&model, &[&check[..], &["--load", file]].concat());
        assert_eq!(ran.stdout, wanted, "{}", ran.stderr);
    }
}
