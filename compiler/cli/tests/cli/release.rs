//! The files of a release: what manifests, scripts and pages say of each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The text between the quotes of the line `key = "text"`.
fn value(manifest: &str, key: &str) -> String {
    let start = format!("{key} = \"");
    let line = manifest.lines().find_map(|l| l.strip_prefix(&start));
    let line = line.unwrap_or_else(|| panic!("no {key}"));
    line.trim_end_matches('"').to_owned()
}

#[test]
fn the_oldest_rust_is_the_documented_one_and_every_crate_names_it() {
    let workspace = text("Cargo.toml");
    let oldest = value(&workspace, "rust-version");
    for page in ["README.md", "docs/src/installation.md"] {
        let named = format!("Rust {oldest}");
        assert!(text(page).contains(&named), "{page} does not name {named}");
    }
    // Clippy's `incompatible_msrv` reads the version from each crate.
    let members = workspace.lines().find(|l| l.starts_with("members = "));
    for member in members.unwrap().split('"').skip(1).step_by(2) {
        let path = format!("{member}/Cargo.toml");
        assert!(
            text(&path).contains("\nrust-version.workspace = true\n"),
            "{path} does not inherit `rust-version`"
        );
    }
}

#[test]
fn binstall_downloads_the_archives_that_a_release_has() {
    let manifest = text("compiler/cli/Cargo.toml");
    let folder = "tpc-{ version }-{ target-arch }-linux";
    let address = value(&manifest, "pkg-url");
    assert!(
        address.ends_with(&format!("/v{{ version }}/{folder}.tar.gz")),
        "{address}"
    );
    assert_eq!(
        value(&manifest, "bin-dir"),
        format!("{folder}/{{ bin }}{{ binary-ext }}")
    );
    // The script's name of the folder, which has the program at the top.
    let build = text("release/build");
    let name = folder
        .replace("{ version }", "$version")
        .replace("{ target-arch }", "$arch");
    assert!(build.contains(&format!("name={name}\n")), "{name}");
    assert!(build.contains("\"$stage/$name/tpc\""));
}

#[test]
fn the_scripts_of_a_release_parse() {
    for script in ["release/build", "release/check", "tests/aarch64/run"] {
        let ran = Command::new("bash")
            .arg("-n")
            .arg(root().join(script))
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}
