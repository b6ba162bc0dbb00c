//! The commands that `tpc plan` prints.

use super::support::{SMALL, Scratch, json, path, tpc};

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
