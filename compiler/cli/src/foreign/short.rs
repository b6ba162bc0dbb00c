//! llama.cpp's short options with several letters.

use std::ffi::OsString;

pub(super) const SHORT: &[(&str, &str)] = &[
    ("-sm", "--split-mode"),
    ("-ts", "--tensor-split"),
    ("-mg", "--main-gpu"),
    ("-ot", "--override-tensor"),
    ("-ncmoe", "--n-cpu-moe"),
    ("-cmoe", "--cpu-moe"),
    ("-nkvo", "--no-kv-offload"),
    ("-ngl", "--n-gpu-layers"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-ub", "--ubatch-size"),
    ("-np", "--parallel"),
    ("-fa", "--flash-attn"),
    ("-md", "--model-draft"),
    ("-ctkd", "--cache-type-k-draft"),
    ("-ctvd", "--cache-type-v-draft"),
    ("-ngld", "--gpu-layers-draft"),
    ("-cd", "--ctx-size-draft"),
    ("-devd", "--device-draft"),
    ("-mm", "--mmproj"),
    ("-mmdev", "--mmproj-device"),
    ("-kvu", "--kv-unified"),
    ("-swa-full", "--swa-full"),
    ("--gpu-layers", "--n-gpu-layers"),
    ("-pg", "--pg"),
    ("-sys", "--system-prompt"),
    ("-no-cnv", "--no-conversation"),
];

/// Replaces short options by long ones, up to `--`.
pub fn normalise(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut literal = false;
    arguments
        .into_iter()
        .map(|a| {
            literal |= a == "--";
            let long = a.to_str().filter(|_| !literal).and_then(|a| {
                let (name, value) = a.split_once('=').map_or((a, None), |(n, v)| (n, Some(v)));
                let (_, long) = SHORT.iter().find(|(s, _)| *s == name)?;
                Some(value.map_or_else(|| (*long).to_owned(), |v| format!("{long}={v}")))
            });
            long.map_or(a, OsString::from)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_of_several_letters() {
        let given = [
            "tpc", "plan", "-ctk", "q8_0", "-ts=3,1", "-c", "7", "--", "-ts",
        ]
        .map(OsString::from);
        let long = normalise(given);
        let expected = [
            "tpc",
            "plan",
            "--cache-type-k",
            "q8_0",
            "--tensor-split=3,1",
            "-c",
            "7",
            "--",
            "-ts",
        ];
        assert_eq!(long, expected.map(OsString::from));
    }
}
