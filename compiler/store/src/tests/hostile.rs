//! Caches that try to lead tpc astray.

use std::path::Path;

use super::{Scratch, symlink};
use crate::{State, Wanted, find, find_name, list};

#[test]
fn cycles_and_odd_names_end() {
    let s = Scratch::new();
    s.hub("u/n", &"a".repeat(40), "n-Q4_K_M.gguf");
    let folder = s.path("hub/models--u--n");
    let snapshot = folder.join("snapshots").join("a".repeat(40));
    symlink(Path::new("."), &snapshot.join("self"));
    symlink(Path::new("../../.."), &snapshot.join("up"));
    symlink(Path::new("loop.gguf"), &snapshot.join("loop.gguf"));
    symlink(Path::new("."), &folder.join("snapshots/cycle"));
    symlink(Path::new("."), &s.path("hub/models--v--cycle"));
    s.write("hub/models--..--..--etc/refs/main", "x");
    s.write("hub/models--/refs/main", "x");
    s.write(
        &format!("hub/models--{}--n/refs/main", "u".repeat(200)),
        "x",
    );
    // A reference to a folder elsewhere.
    s.write("hub/models--w--n/refs/main", "../../../../../etc");
    let deep: Vec<&str> = vec!["d"; 60];
    s.write(
        &format!("hub/models--w--n/snapshots/{}/n.gguf", deep.join("/")),
        "x",
    );
    s.write("home/.lmstudio/models/..hidden/n/x.gguf", "x");
    symlink(Path::new("."), &s.path("home/.lmstudio/models/cycle"));
    let stores = s.stores();
    let all = list(&stores);
    let ready: Vec<&str> = (all.iter())
        .filter(|e| e.state == State::Ready)
        .map(|e| e.name.as_str())
        .collect();
    assert_eq!(ready, ["u/n:Q4_K_M"]);
    let broken = |name: &str| {
        all.iter()
            .any(|e| e.name == name && matches!(e.state, State::Broken(_)))
    };
    assert!(
        broken("../..--etc") && broken("hf://u/n/loop.gguf"),
        "{all:?}"
    );
    for word in [
        "../..--etc",
        "w/n",
        "v/cycle",
        "n/../n",
        "u/n:../x",
        "\u{7}",
        "a\\b",
    ] {
        assert!(!matches!(find_name(&stores, word), Ok(Some(_))), "{word}");
    }
    assert!(find(&stores, &Wanted::parse("u/n:Q4_K_M").unwrap()).is_some());
}

#[test]
fn manifests_are_not_trusted() {
    let s = Scratch::new();
    let layer = |digest: &str| {
        format!(
            r#"{{"layers":[{{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":1}}]}}"#
        )
    };
    let library = "ollama/manifests/registry.ollama.ai/library";
    s.write(&format!("{library}/huge/latest"), vec![b' '; 5 << 20]);
    s.write(&format!("{library}/deep/latest"), "[".repeat(100_000));
    s.write(
        &format!("{library}/up/latest"),
        layer("sha256:../../../../etc/passwd"),
    );
    s.write(&format!("{library}/none/latest"), r#"{"layers":7}"#);
    s.write(&format!("{library}/bytes/latest"), [0xff, 0xfe]);
    s.write(&format!("{library}/.DS_Store"), "x");
    s.write("ollama/manifests/stray", "x");
    symlink(
        Path::new("/dev/zero"),
        &s.path(&format!("{library}/huge/endless")),
    );
    symlink(Path::new("."), &s.path(&format!("{library}/cycle")));
    s.write(
        "llama/manifest=u=n=latest.json",
        r#"{"ggufFile":{"rfilename":"../../x.gguf"}}"#,
    );
    let stores = s.stores();
    let all = list(&stores);
    assert!(all.len() >= 6, "{all:?}");
    assert!(
        all.iter().all(|e| matches!(e.state, State::Broken(_))),
        "{all:?}"
    );
    for word in [
        "huge",
        "deep",
        "up",
        "none",
        "bytes",
        "huge:endless",
        "u/n",
        "cycle",
    ] {
        assert_eq!(find_name(&stores, word), Ok(None), "{word}");
    }
}

#[test]
fn absent_folders_are_empty() {
    let s = Scratch::new();
    assert_eq!(list(&s.stores()), []);
    assert_eq!(find_name(&s.stores(), "u/n"), Ok(None));
    s.write("hub", "a file in place of the folder");
    assert_eq!(list(&s.stores()), []);
}
