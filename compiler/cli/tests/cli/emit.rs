//! `tpc plan --emit`: configurations of other programs, each read by its own tool or as its format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use super::support::{Ran, SMALL, Scratch, path, refuses, tpc, tpc_in};

const TARGETS: [&str; 5] = [
    "llama-server",
    "llama-swap",
    "compose",
    "systemd",
    "k8s-lws",
];

/// Folders and files with characters that a shell, YAML, systemd, Compose, Kubernetes or llama-swap reads as more than text.
const NAMES: [&str; 9] = [
    "model.gguf",
    "my models/a b.gguf",
    "it's \"quoted\".gguf",
    "50%i $HOME ${HOME} $(id) $$ `id`.gguf",
    "back\\slash \\n.gguf",
    "#note: x, - y & z*?[]{}|<>;!.gguf",
    "日本語 é.gguf",
    "-c.gguf",
    "a:b=c@d.gguf",
];
/// A name with characters that llama-swap cannot hold.
const LINES: &str = "two\nlines\tand \u{1b}[31m.gguf";

struct Models {
    scratch: Scratch,
}

impl Models {
    fn new() -> Models {
        let scratch = Scratch::new();
        Models { scratch }
    }

    /// Copies a header to a path with this name.
    fn model(&self, name: &str) -> PathBuf {
        let model = self.scratch.path(name);
        fs::create_dir_all(model.parent().unwrap()).unwrap();
        fs::copy(path(SMALL), &model).unwrap();
        model
    }
}

fn emitted(model: &Path, target: &str, options: &str) -> Ran {
    let mut words = vec!["plan", model.to_str().unwrap(), "--emit", target];
    words.extend(options.split_whitespace());
    tpc(words)
}

#[track_caller]
fn text(model: &Path, target: &str, options: &str) -> String {
    let ran = emitted(model, target, options);
    assert_eq!(ran.status, 0, "{target}: {}", ran.stderr);
    ran.stdout
}

/// Returns the words of the command that the plan prints after the program's name.
fn planned(model: &Path, options: &str) -> Vec<String> {
    let mut words = vec!["plan", model.to_str().unwrap(), "--format", "json"];
    words.extend(options.split_whitespace());
    let plan = super::support::json(&words);
    let command = plan["commands"]["llama.cpp"].as_str().unwrap();
    // A shell reads the quotes of the command.
    let script = format!("llama-server() {{ printf '%s\\0' \"$@\"; }}; {command}");
    split(
        &Command::new("bash")
            .args(["-c", &script])
            .output()
            .unwrap()
            .stdout,
    )
}

fn split(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let text = text.strip_suffix('\0').unwrap();
    text.split('\0').map(str::to_owned).collect()
}

const OPTIONS: &str = "--devices 2x3090 -sm layer -c 4096 -ot blk\\.(1|2)\\.ffn_up=CPU";

#[test]
fn a_script_starts_the_planned_command() {
    let models = Models::new();
    let bin = models.scratch.path("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("llama-server");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\0' \"$@\"\n").unwrap();
    let chmod = Command::new("chmod").arg("+x").arg(&program).status();
    assert!(chmod.unwrap().success());
    for name in NAMES.into_iter().chain([LINES]) {
        let model = models.model(name);
        let script = models
            .scratch
            .file("start.sh", text(&model, "llama-server", OPTIONS));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let ran = Command::new("sh")
            .arg(script)
            .args(["--port", "1"])
            .env("PATH", path)
            .output();
        let ran = ran.unwrap();
        assert!(
            ran.status.success() && ran.stderr.is_empty(),
            "{name}: {ran:?}"
        );
        let mut expected = planned(&model, OPTIONS);
        expected.extend(["--port", "1"].map(str::to_owned));
        assert_eq!(split(&ran.stdout), expected, "{name}");
    }
}

#[test]
fn relative_paths_become_absolute() {
    let models = Models::new();
    models.model("-c.gguf");
    let ran = tpc_in(
        &models.scratch.0,
        ["plan", "./-c.gguf", "--emit", "llama-server", "-c", "512"],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let expected = format!("-m {}", models.scratch.path("-c.gguf").display());
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
}

fn yaml(text: &str) -> Vec<Yaml> {
    YamlLoader::load_from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn strings(list: &Yaml) -> Vec<String> {
    let each = list.as_vec().unwrap_or_else(|| panic!("{list:?}")).iter();
    each.map(|y| y.as_str().unwrap().to_owned()).collect()
}

fn keys(of: &Yaml) -> Vec<&str> {
    of.as_hash()
        .unwrap()
        .keys()
        .map(|k| k.as_str().unwrap())
        .collect()
}

#[test]
fn llama_swap_reads_its_configuration() {
    let models = Models::new();
    for name in NAMES {
        let model = models.model(name);
        let config = text(&model, "llama-swap", OPTIONS);
        let all = yaml(&config);
        assert_eq!(keys(&all[0]), ["healthCheckTimeout", "models"], "{config}");
        assert!(
            all[0]["healthCheckTimeout"]
                .as_i64()
                .is_some_and(|n| n >= 15)
        );
        let ids = keys(&all[0]["models"]);
        let one = &all[0]["models"][ids[0]];
        assert_eq!((ids.len(), keys(one)), (1, vec!["cmd"]), "{config}");
        // llama-swap replaces macros in the text, and then splits the text as a shell does.
        let command = one["cmd"].as_str().unwrap().replace("${PORT}", "5800");
        let macros = macros_in(&command);
        assert!(macros.is_empty(), "{name}: {macros:?} in {command}");
        for line in command.lines() {
            assert!(
                !line.trim().starts_with('#') && !line.trim().ends_with('\\'),
                "{line}"
            );
        }
        let script = format!(
            "llama-server() {{ printf '%s\\0' \"$@\"; }}; set -f; {}",
            command.trim().replace('\n', " ")
        );
        let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
        let mut expected = vec!["--port".to_owned(), "5800".to_owned()];
        expected.extend(planned(&model, OPTIONS));
        assert_eq!(split(&ran.stdout), expected, "{name}");
    }
    let model = models.model(LINES);
    refuses(&emitted(&model, "llama-swap", OPTIONS), 1, "TPC0416");
}

/// Returns the parts of a text that llama-swap reads as macros: `${NAME}` and `${env.NAME}`.
fn macros_in(text: &str) -> Vec<&str> {
    let starts = text.match_indices("${").map(|(at, _)| &text[at..]);
    let named = starts.filter_map(|t| {
        let end = t.find('}')?;
        let name = &t[2..end];
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        (!name.is_empty() && name.chars().all(plain)).then_some(&t[..=end])
    });
    named.collect()
}

/// Returns the folder's file that a container's path names.
fn outside(path: &str, mounts: &[(String, String)]) -> String {
    for (source, target) in mounts {
        if let Some(rest) = path.strip_prefix(&format!("{target}/")) {
            return format!("{source}/{rest}");
        }
    }
    path.to_owned()
}

#[test]
fn compose_reads_its_file() {
    let models = Models::new();
    let has_compose = Command::new("docker").args(["compose", "version"]).output();
    let has_compose = has_compose.is_ok_and(|o| o.status.success());
    if !has_compose {
        tpc_op_cases::skip_optional("docker compose is missing: the files are only read as YAML");
    }
    for name in NAMES.into_iter().chain([LINES]) {
        let model = models.model(name);
        let file = text(&model, "compose", OPTIONS);
        let all = yaml(&file);
        assert_eq!(keys(&all[0]), ["services"]);
        let ids = keys(&all[0]["services"]);
        let service = &all[0]["services"][ids[0]];
        assert_eq!(
            keys(service),
            ["image", "command", "ports", "volumes", "deploy", "restart"],
            "{file}"
        );
        assert_eq!(
            service["image"].as_str(),
            Some("ghcr.io/ggml-org/llama.cpp:server-cuda")
        );
        // Compose reads `$$` as `$`.
        let literal = |text: &str| {
            assert!(!text.replace("$$", "").contains('$'), "{text}");
            text.replace("$$", "$")
        };
        let mounts: Vec<(String, String)> = (service["volumes"].as_vec().unwrap().iter())
            .map(|m| {
                assert_eq!(keys(m), ["type", "source", "target", "read_only"]);
                let of = |key: &str| literal(m[key].as_str().unwrap());
                (of("source"), of("target"))
            })
            .collect();
        let words = strings(&service["command"]);
        let words: Vec<String> = words
            .iter()
            .map(|w| outside(&literal(w), &mounts))
            .collect();
        let mut expected = planned(&model, OPTIONS);
        expected.extend(["--host", "0.0.0.0", "--port", "8080"].map(str::to_owned));
        assert_eq!(words, expected, "{name}");
        let devices = &service["deploy"]["resources"]["reservations"]["devices"][0];
        assert_eq!(devices["count"].as_i64(), Some(2), "{file}");
        if has_compose {
            let file = models.scratch.file("compose.yaml", &file);
            let ran = Command::new("docker")
                .args(["compose", "-f"])
                .arg(file)
                .args(["config", "-q"])
                .output();
            let ran = ran.unwrap();
            assert!(
                ran.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
        }
    }
}

/// Returns the words that systemd reads from `ExecStart=`, by the rules of systemd.syntax(7) and systemd.service(5).
fn exec_start(unit: &str) -> Vec<String> {
    let joined = unit.replace("\\\n", " ");
    let line = joined.lines().find_map(|l| l.strip_prefix("ExecStart="));
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut chars = line.unwrap().chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (' ', None) => words.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(q)) if c == q => quote = None,
            ('\\', _) => {
                let escape = chars.next().unwrap();
                let read = match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'x' => {
                        let digits: String = chars.by_ref().take(2).collect();
                        char::from(u8::from_str_radix(&digits, 16).unwrap())
                    }
                    '"' | '\'' | '\\' => escape,
                    other => panic!("unknown escape {other}"),
                };
                word.get_or_insert_default().push(read);
            }
            ('%' | '$', _) => {
                assert_eq!(chars.next(), Some(c), "an expansion in {unit}");
                word.get_or_insert_default().push(c);
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn systemd_reads_its_unit() {
    let models = Models::new();
    let has_systemd = Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_ok();
    if !has_systemd {
        tpc_op_cases::skip_optional(
            "systemd-analyze is missing: the units are only read by the test",
        );
    }
    for name in NAMES.into_iter().chain([LINES]) {
        let model = models.model(name);
        let unit = text(&model, "systemd", OPTIONS);
        let mut expected = vec!["/usr/bin/env".to_owned(), "llama-server".to_owned()];
        expected.extend(planned(&model, OPTIONS));
        assert_eq!(exec_start(&unit), expected, "{name}");
        let sections: Vec<&str> = unit.lines().filter(|l| l.starts_with('[')).collect();
        assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"]);
        if has_systemd {
            let file = models.scratch.file("tpc-test.service", &unit);
            let ran = Command::new("systemd-analyze")
                .arg("verify")
                .arg(&file)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            let about: Vec<&str> = said.lines().filter(|l| l.contains("tpc-test")).collect();
            assert!(about.is_empty(), "{name}: {said}");
        }
    }
}

#[test]
fn kubernetes_reads_its_objects() {
    let models = Models::new();
    let options =
        "--devices 3x3090 --rpc 10.0.0.2:1,10.0.0.3:1 -sm layer -c 4096 --emit-image me/llama:rpc";
    let has_kubectl = Command::new("kubectl")
        .args(["kustomize", "--help"])
        .output();
    let has_kubectl = has_kubectl.is_ok_and(|o| o.status.success());
    if !has_kubectl {
        tpc_op_cases::skip_optional("kubectl is missing: the objects are only read as YAML");
    }
    for name in NAMES.into_iter().chain([LINES]) {
        let model = models.model(name);
        let file = text(&model, "k8s-lws", options);
        let all = yaml(&file);
        assert_eq!(all.len(), 2, "{file}");
        let kinds: Vec<_> = all
            .iter()
            .map(|o| (o["apiVersion"].as_str(), o["kind"].as_str()))
            .collect();
        assert_eq!(
            kinds,
            [
                (Some("leaderworkerset.x-k8s.io/v1"), Some("LeaderWorkerSet")),
                (Some("v1"), Some("Service"))
            ]
        );
        let template = &all[0]["spec"]["leaderWorkerTemplate"];
        assert_eq!(
            keys(template),
            ["size", "restartPolicy", "leaderTemplate", "workerTemplate"]
        );
        assert_eq!(template["size"].as_i64(), Some(3));
        let labels = &template["leaderTemplate"]["metadata"]["labels"];
        assert_eq!(&all[1]["spec"]["selector"], labels);
        let worker = &template["workerTemplate"]["spec"]["containers"][0];
        let command = strings(&worker["command"]);
        assert_eq!(command, ["ggml-rpc-server", "-H", "0.0.0.0", "-p", "50052"]);
        let words = leader_words(&template["leaderTemplate"]["spec"]);
        let mut expected =
            without_servers(&planned(&model, options.split(" --emit").next().unwrap()));
        expected.extend(["--host", "0.0.0.0", "--port", "8080", "--rpc"].map(str::to_owned));
        expected.push("lws-0-1.lws.space:50052,lws-0-2.lws.space:50052".to_owned());
        assert_eq!(words, expected, "{name}");
        if has_kubectl {
            let folder = models.scratch.path("kustomize");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("plan.yaml"), &file).unwrap();
            fs::write(
                folder.join("kustomization.yaml"),
                "resources: [plan.yaml]\n",
            )
            .unwrap();
            let ran = Command::new("kubectl")
                .arg("kustomize")
                .arg(&folder)
                .output()
                .unwrap();
            assert!(
                ran.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
        }
    }
}

/// Runs the leader's command as Kubernetes would, with a program that prints its words. Paths become paths of the host.
fn leader_words(spec: &Yaml) -> Vec<String> {
    let container = &spec["containers"][0];
    // Kubernetes reads `$$` as `$`, and expands `$(…)`.
    let literal = |w: &String| {
        assert!(!w.replace("$$", "").contains("$("), "{w}");
        w.replace("$$", "$")
    };
    let command: Vec<String> = strings(&container["command"]).iter().map(literal).collect();
    let args: Vec<String> = strings(&container["args"]).iter().map(literal).collect();
    let mounts: Vec<(String, String)> = (container["volumeMounts"].as_vec().unwrap().iter())
        .map(|m| {
            let volumes = spec["volumes"].as_vec().unwrap();
            let volume = volumes.iter().find(|v| v["name"] == m["name"]).unwrap();
            let of = |y: &Yaml| y.as_str().unwrap().to_owned();
            (of(&volume["hostPath"]["path"]), of(&m["mountPath"]))
        })
        .collect();
    let [shell, option, script] = command.as_slice() else {
        panic!("{command:?}")
    };
    let script = script.replace("exec llama-server", "printf '%s\\0'");
    let ran = Command::new(shell)
        .args([option, &script])
        .args(&args)
        .env("LWS_LEADER_ADDRESS", "lws-0.lws.space")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    split(&ran.stdout)
        .iter()
        .map(|w| outside(w, &mounts))
        .collect()
}

fn without_servers(words: &[String]) -> Vec<String> {
    let at = words.iter().position(|w| w == "--rpc").unwrap();
    [&words[..at], &words[at + 2..]].concat()
}

#[test]
fn the_container_fits_the_devices() {
    let models = Models::new();
    let model = models.model("model.gguf");
    let image = |options: &str| {
        let file = yaml(&text(&model, "compose", &format!("{options} -c 4096")));
        file[0]["services"]["model"]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(image("--devices cpu").ends_with(":server"));
    assert!(image("--devices 7900XTX").ends_with(":server-rocm"));
    assert!(image("--devices 3090 --backend vulkan").ends_with(":server-vulkan"));
    assert_eq!(image("--devices 3090 --emit-image own:1"), "own:1");
    let named = text(&model, "compose", "--devices cuda:1,cuda:0 -c 4096");
    assert!(named.contains("count: all"), "{named}");
}

#[test]
fn a_plan_that_no_engine_runs_gives_no_file() {
    let models = Models::new();
    let model = models.model("model.gguf");
    let refused = |target: &str, options: &str, cure: &str| {
        let ran = emitted(&model, target, options);
        refuses(&ran, 1, "TPC0416");
        let said = super::support::words(&ran.stderr);
        assert!(said.contains(cure), "{cure}: {}", ran.stderr);
    };
    for target in TARGETS {
        refused(
            target,
            "--devices cuda:0,cuda:0 -sm tensor -c 4096",
            "change the file or option",
        );
    }
    refused("k8s-lws", "--devices 2x3090 -c 4096", "--rpc");
    refused(
        "k8s-lws",
        "--devices 2x3090 --rpc a:1 -c 4096",
        "--emit-image",
    );
    refused(
        "compose",
        "--devices 2x3090 --rpc a:1 -c 4096",
        "--emit-image",
    );
    refused(
        "compose",
        "--devices 3090,7900XTX -sm layer -c 4096",
        "--backend vulkan",
    );
    // A plan with errors does not run.
    let ran = emitted(&model, "compose", "--devices 2x3090 -c 99999999");
    refuses(&ran, 1, "TPC0300");
    refuses(&emitted(&model, "nomad", ""), 2, "TPC0400");
    refuses(&emitted(&model, "compose", "--format json"), 2, "TPC0400");
    refuses(&emitted(&model, "compose", "-c 4096,8192"), 2, "TPC0400");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scratch = Scratch::new();
    let model = scratch.0.join(OsStr::from_bytes(b"m\xff.gguf"));
    fs::copy(path(SMALL), &model).unwrap();
    for target in TARGETS {
        let words = [
            OsStr::new("plan"),
            model.as_os_str(),
            OsStr::new("--emit"),
            OsStr::new(target),
        ];
        let ran = tpc(words
            .into_iter()
            .chain([OsStr::new("-c"), OsStr::new("512")]));
        refuses(&ran, 1, "TPC0416");
        let said = super::support::words(&ran.stderr);
        assert!(said.contains("rename the file"), "{}", ran.stderr);
    }
}
