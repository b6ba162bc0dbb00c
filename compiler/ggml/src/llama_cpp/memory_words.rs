//! The options that affect llama.cpp's memory. tpc accepts them only with `--engine llama.cpp`.

use super::command::CommandLine;
use super::option_spec::Setting;

/// Options with the same values in tpc, and their spellings.
const VALUES: [(&str, &[&str]); 4] = [
    (
        "--cache-type-k-draft",
        &["-ctkd", "--cache-type-k-draft", "--spec-draft-type-k"],
    ),
    (
        "--cache-type-v-draft",
        &["-ctvd", "--cache-type-v-draft", "--spec-draft-type-v"],
    ),
    (
        "--spec-draft-n-max",
        &["--spec-draft-n-max", "--draft", "--draft-n", "--draft-max"],
    ),
    ("--moe-cache-mib", &["--moe-cache-mib"]),
];

/// Returns the words that make tpc plan with llama.cpp's memory.
pub(super) fn memory_words(line: &CommandLine) -> Vec<String> {
    let mut out: Vec<String> = vec!["--engine".to_owned(), "llama.cpp".to_owned()];
    let mut put = |words: &[&str]| out.extend(words.iter().map(|&w| w.to_owned()));
    let name = line.program.rsplit(['/', '\\']).next();
    if name.is_some_and(|n| n.contains("server")) {
        put(&["--server"]);
    }
    if line.last(Setting::FullWindow).is_some() && !line.is_off(Setting::FullWindow) {
        put(&["--swa-full"]);
    }
    let spelled = |names: &[&str]| {
        let mut given = line.options.iter().rev();
        given.find(|o| names.contains(&o.spelling.as_str()))
    };
    let unified = spelled(&["-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"]);
    if unified.is_some_and(|o| !o.spelling.contains("no-")) {
        put(&["--kv-unified"]);
    }
    for (option, names) in VALUES {
        if let Some(given) = spelled(names) {
            put(&[option, &given.value]);
        }
    }
    out
}
