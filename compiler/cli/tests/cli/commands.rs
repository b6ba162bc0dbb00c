//! The commands that `tpc plan` prints.

use super::support::{Ran, SMALL, Scratch, TPC, json, path, tpc};

fn commands(model: &str, options: &[&str]) -> serde_json::Value {
    let words = [&["plan", model, "--format", "json"][..], options].concat();
    json(&words)["commands"].clone()
}

#[test]
fn commands_name_devices_as_their_makers_builds_do() {
    let model = path(SMALL);
    let of = |devices: &str| {
        let options = ["--devices", devices, "-ot", r"blk\.2.*=dev1"];
        let all = commands(&model, &options);
        all["llama.cpp"].as_str().unwrap().to_owned()
    };
    assert!(of("2x7900XTX").contains("=ROCm1"), "{}", of("2x7900XTX"));
    assert!(of("2x3090").contains("=CUDA1"), "{}", of("2x3090"));
}

#[test]
fn the_order_of_unlike_cards_is_said() {
    let model = path(SMALL);
    let order = |devices: &str| {
        let all = commands(&model, &["--devices", devices, "-sm", "layer"]);
        all["llama.cpp_order"].as_str().map(str::to_owned)
    };
    assert!(order("4090,3090").is_some_and(|o| o.contains("4090") && o.contains("-dev")));
    assert_eq!(order("2x3090"), None);
}

#[test]
fn the_command_for_a_folder_names_its_file() {
    let scratch = Scratch::new();
    std::fs::copy(path(SMALL), scratch.path("model.gguf")).unwrap();
    let all = commands(scratch.0.to_str().unwrap(), &[]);
    let command = all["llama.cpp"].as_str().unwrap();
    assert!(command.contains("/model.gguf "), "{command}");
}

#[cfg(target_os = "linux")]
#[test]
fn no_command_has_a_name_that_is_not_the_files() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scratch = Scratch::new();
    let model = scratch.0.join(OsStr::from_bytes(b"m\xff.gguf"));
    std::fs::copy(path(SMALL), &model).unwrap();
    let ran = tpc([
        OsStr::new("plan"),
        model.as_os_str(),
        OsStr::new("-c"),
        OsStr::new("512"),
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("not valid UTF-8") && !ran.stdout.contains("tpc run"),
        "{}",
        ran.stdout
    );
}

/// Returns the lines of the command that `plan` prints after `run it:`, without their indentation.
fn printed(plan: &str) -> String {
    let lines = plan.lines().skip_while(|l| *l != "run it:").skip(1);
    let mut command = Vec::new();
    for line in lines {
        command.push(line.trim_start());
        if !line.ends_with('\\') {
            break;
        }
    }
    command.join("\n")
}

#[cfg(target_os = "linux")]
#[test]
fn printed_commands_run_as_printed() {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    let scratch = Scratch::new();
    let model = scratch.model("llama:layers=3,embd=64,heads=4,kv_heads=2,ff=128,vocab=64,ctx=256");
    symlink(TPC, scratch.path("tpc")).unwrap();
    let machines = [
        "",
        "--devices 1",
        "--devices cpu",
        "--devices cpu,cpu",
        "--devices cpu,cpu -sm tensor",
        "--devices cpu,cpu,cpu -sm layer",
        "--devices cpu,cpu -sm tensor -ts 3,1 -ctk f32 -fa on",
        "--devices 2",
        "--devices 3 -sm layer",
        "--devices 2x3090",
        "--devices 4xH100-SXM -sm tensor",
        "--devices cuda:0,cuda:1 -sm layer",
    ];
    for machine in machines {
        let words = ["plan", model.to_str().unwrap()];
        let plan = tpc(words.into_iter().chain(machine.split_whitespace()));
        assert_eq!(plan.status, 0, "{machine}: {}", plan.stderr);
        let line = printed(&plan.stdout);
        assert!(line.starts_with("tpc run "), "{machine}: {}", plan.stdout);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{line} --tokens 1,2 -n 2")]);
        shell.stdin(std::process::Stdio::null());
        shell.env("PATH", format!("{}:/usr/bin:/bin", scratch.0.display()));
        let ran: Ran = shell.output().unwrap().into();
        let runs = ran.status == 0 && ran.stdout.trim().contains(',');
        // A machine without cards lacks the driver or the cards, but the command is understood.
        let lacks_cards = ran.stderr.contains("TPC054");
        let on_cards = ["3090", "H100", "cuda", "2", "3 "]
            .iter()
            .any(|c| machine.contains(c));
        assert!(
            runs || on_cards && lacks_cards,
            "{machine}\n{line}\n{} {}{}",
            ran.status,
            ran.stdout,
            ran.stderr
        );
    }
}
