//! Completions and manual pages.

use std::fs;
use std::process::Command;

use super::support::{Scratch, refuses, tpc};

fn commands() -> Vec<String> {
    let help = tpc(["--help"]).stdout;
    let listed = help
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1);
    let listed = listed.take_while(|l| l.starts_with("  "));
    let named = listed.filter(|l| !l.starts_with("   "));
    let commands: Vec<String> = named
        .filter_map(|l| l.split_whitespace().next())
        .filter(|c| *c != "help")
        .map(str::to_owned)
        .collect();
    assert!(commands.len() >= 10, "{help}");
    commands
}

#[test]
fn completions_know_every_command_and_its_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = tpc(["completions", shell]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{shell}");
        for command in commands() {
            assert!(ran.stdout.contains(&command), "{shell}: {command}");
        }
        for option in ["tensor-split", "split-mode", "allow-unproved", "tolerance"] {
            assert!(ran.stdout.contains(option), "{shell}: {option}");
        }
        if ["bash", "fish", "zsh"].contains(&shell) {
            assert!(ran.stdout.contains("iq4_nl"), "{shell}");
        }
    }
    refuses(&tpc(["completions", "tcsh"]), 2, "TPC0400");
    refuses(&tpc(["completions"]), 2, "TPC0400");
}

#[test]
fn bash_takes_its_completions() {
    let scratch = Scratch::new();
    let file = scratch.file("tpc.bash", tpc(["completions", "bash"]).stdout);
    let Ok(checked) = Command::new("bash").arg("-n").arg(file).output() else {
        return;
    };
    assert!(checked.status.success() && checked.stderr.is_empty());
}

#[test]
fn there_is_a_manual_page_per_command() {
    let scratch = Scratch::new();
    let folder = scratch.path("man");
    let ran = tpc(["man", "-o", folder.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let mut found: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected: Vec<String> = commands().iter().map(|c| format!("tpc-{c}.1")).collect();
    expected.push("tpc.1".to_owned());
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    for page in found {
        let text = fs::read_to_string(folder.join(&page)).unwrap();
        let name = page.trim_end_matches(".1");
        assert!(text.contains(&format!(".TH {name} 1")), "{page}: {text}");
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    let plan = fs::read_to_string(folder.join("tpc-plan.1")).unwrap();
    for option in ["tensor\\-split", "n\\-cpu\\-moe", "why"] {
        assert!(plan.contains(option), "{option}: {plan}");
    }
}

#[test]
fn the_page_of_the_program_is_printed() {
    let ran = tpc(["man"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains(".TH tpc 1") && ran.stdout.contains("tpc\\-plan(1)"));
    let scratch = Scratch::new();
    let file = scratch.file("taken", "");
    refuses(&tpc(["man", "-o", file.to_str().unwrap()]), 2, "TPC0402");
}
