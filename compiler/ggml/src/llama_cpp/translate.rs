//! The same in tpc's options.

use super::command::CommandLine;
use super::flags::Meaning;

/// Options of tpc that ask for what a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The model's file.
    pub model: String,
    /// The options, without `--devices`.
    pub options: Vec<String>,
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// How many devices a line names, if it does: by its list, its servers or its proportions.
pub fn devices_named(line: &CommandLine) -> Option<usize> {
    let entries = |meaning, separators: &[char]| {
        let text = line.value(meaning)?;
        let n = text
            .split(separators)
            .filter(|t| !t.trim().is_empty())
            .count();
        (n > 0 && text != "none").then_some(n)
    };
    entries(Meaning::Devices, &[','])
        .or_else(|| entries(Meaning::TensorSplit, &[',', '/']))
        .or_else(|| entries(Meaning::Rpc, &[',']))
}

/// A buffer type of llama.cpp as a place of tpc: those of the CPU are the host, `Vulkan1` is the second device.
fn place(buffer: &str) -> String {
    let lower = buffer.to_ascii_lowercase();
    if lower.starts_with("cpu") || lower.ends_with("_host") || lower == "host" {
        return "CPU".to_owned();
    }
    let name = lower.split(['[', '_']).next().unwrap_or(&lower);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match (stem, &name[stem.len()..]) {
        ("metal" | "mtl", _) => "dev0".to_owned(),
        (_, "") => buffer.to_owned(),
        (_, number) => format!("dev{number}"),
    }
}

/// A list of overrides with tpc's places.
fn overrides(text: &str) -> String {
    let parts = text.split(',').map(|part| match part.rsplit_once('=') {
        Some((pattern, buffer)) => format!("{pattern}={}", place(buffer)),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(",")
}

impl Equivalent {
    /// Of a line, with the file `model` if one is given; `None` when neither names one.
    pub fn of(line: &CommandLine, model: Option<String>) -> Option<Equivalent> {
        let model = model.or_else(|| line.value(Meaning::Model).map(str::to_owned))?;
        let mut options: Vec<String> = Vec::new();
        let mut put = |option: &str, value: &str| {
            options.push(option.to_owned());
            if !value.is_empty() {
                options.push(value.to_owned());
            }
        };
        // Rows of single matrices are split as tensors are; layers are that engine's default.
        put("-sm", line.value(Meaning::SplitMode).unwrap_or("layer"));
        for (meaning, option) in [
            (Meaning::TensorSplit, "-ts"),
            (Meaning::NCpuMoe, "-ncmoe"),
            (Meaning::GpuLayers, "-ngl"),
            (Meaning::CacheK, "-ctk"),
            (Meaning::CacheV, "-ctv"),
            (Meaning::Ubatch, "-ub"),
        ] {
            if let Some(value) = line.value(meaning) {
                put(option, value);
            }
        }
        for g in line.all(Meaning::Override) {
            put("-ot", &overrides(&g.value));
        }
        if let Some(n) = line.count(Meaning::NCpuFfn).filter(|&n| n > 0) {
            let layers: Vec<String> = (0..n.min(1024)).map(|l| l.to_string()).collect();
            let pattern = format!(r"blk\.({})\.ffn_(up|down|gate)\.weight", layers.join("|"));
            put("-ot", &format!("{pattern}=CPU"));
        }
        if line.last(Meaning::CpuMoe).is_some() && !line.is_off(Meaning::CpuMoe) {
            put("-cmoe", "");
        }
        if line.is_off(Meaning::KvOffload) {
            put("-nkvo", "");
        }
        let drafts = line.value(Meaning::Speculation).unwrap_or_default();
        if drafts.split(',').any(|kind| kind == "draft-mtp") {
            put("--spec-type", "draft-mtp");
        }
        // 0 is the model's context, and so is no option; -1 slots are chosen by the server.
        if let Some(n) = line.count(Meaning::Context).filter(|&n| n > 0) {
            put("-c", &n.to_string());
        }
        if let Some(n) = line.count(Meaning::Parallel).filter(|&n| n > 0) {
            put("-np", &n.to_string());
        }
        Some(Equivalent { model, options })
    }

    /// The command that plans it on so many devices, as typed in a shell.
    pub fn command(&self, devices: &str) -> String {
        let mut words = vec!["tpc".to_owned(), "plan".to_owned(), quoted(&self.model)];
        words.extend(["--devices".to_owned(), quoted(devices)]);
        words.extend(self.options.iter().map(|o| quoted(o)));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_tpcs_words() {
        let words = [
            "llama-server",
            "-m",
            "my model.gguf",
            "-sm",
            "tensor",
            "-nkvo",
            "-ctk",
            "q8_0",
            "-c",
            "0",
            "-np",
            "-1",
            "-ot",
            r"blk\.(1|2)\.ffn=CPU,a=CUDA1,b=CUDA_Host",
            "-ts",
            "3,1",
        ];
        let words = words.map(str::to_owned);
        let line = CommandLine::parse(&words).expect("a line");
        assert_eq!(devices_named(&line), Some(2));
        let same = Equivalent::of(&line, None).expect("it names a file");
        assert_eq!(
            same.command("2"),
            r"tpc plan 'my model.gguf' --devices 2 -sm tensor -ts 3,1 -ctk q8_0 -ot 'blk\.(1|2)\.ffn=CPU,a=dev1,b=CPU' -nkvo"
        );
    }
}
