use super::command::CommandLine;
use super::devices::{Buffer, buffer, position};
use super::memory_words::memory_words;
use super::option_spec::Setting;
use super::programs::Maker;

/// The equivalent tpc command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpcCommand {
    /// The model's file.
    pub model: String,
    /// The options, without `--devices`.
    pub options: Vec<String>,
}

/// Quotes a word for a shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns tpc's name for a llama.cpp buffer: `CPU` for host buffers, `dev1` for `Vulkan1`.
fn place(line: &CommandLine, name: &str) -> String {
    match buffer(name) {
        Some(Buffer::Host) => "CPU".to_owned(),
        Some(Buffer::Device(n)) => {
            let n = position(line, name, n).unwrap_or(n);
            format!("dev{n}")
        }
        None => name.to_owned(),
    }
}

fn overrides(line: &CommandLine, text: &str) -> String {
    let parts = text.split(',').map(|part| match part.rsplit_once('=') {
        Some((pattern, buffer)) => format!("{pattern}={}", place(line, buffer)),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(",")
}

/// Returns the tokens per physical batch, at most the logical batch; 0 means the logical batch. `None` is the
/// default.
fn physical_batch(line: &CommandLine) -> Option<u64> {
    let (logical, physical) = (line.count(Setting::Batch), line.count(Setting::Ubatch));
    let most = logical.filter(|&n| n > 0).unwrap_or(BATCH);
    match physical {
        Some(0) => Some(most),
        Some(n) => Some(n.min(most)),
        None => (most < UBATCH).then_some(most),
    }
}

/// The default logical batch, in tokens.
const BATCH: u64 = 2048;
const UBATCH: u64 = 512;

/// The settings with the same option and values in tpc.
const SAME: [(Setting, &str); 5] = [
    (Setting::TensorSplit, "-ts"),
    (Setting::NCpuMoe, "-ncmoe"),
    (Setting::GpuLayers, "-ngl"),
    (Setting::CacheK, "-ctk"),
    (Setting::CacheV, "-ctv"),
];

/// Returns the overrides that put the feed-forward weights of the first `n` layers on the host.
pub fn ffn_on_host(n: u64) -> String {
    let layers: Vec<String> = (0..n.min(1024)).map(|l| l.to_string()).collect();
    let layers = layers.join("|");
    format!(r"blk\.({layers})\.ffn_(up|down|gate)\.weight=CPU")
}

impl TpcCommand {
    /// Translates a line for the file `model`, or for the line's own model. Returns `None` if neither names a model.
    pub fn from_line(line: &CommandLine, model: Option<String>) -> Option<TpcCommand> {
        let model = model.or_else(|| line.value(Setting::Model).map(str::to_owned))?;
        let mut options: Vec<String> = Vec::new();
        let mut put = |words: &[&str]| options.extend(words.iter().map(|&w| w.to_owned()));
        let mode = match line.value(Setting::SplitMode).unwrap_or("layer") {
            // tpc has no row split.
            "row" => "layer",
            mode => mode,
        };
        put(&["-sm", mode]);
        if let Some(n) = line.count(Setting::MainGpu).filter(|_| mode == "none") {
            put(&["-mg", &n.to_string()]);
        }
        for (setting, option) in SAME {
            if let Some(value) = line.value(setting) {
                put(&[option, value]);
            }
        }
        if let Some(n) = physical_batch(line) {
            put(&["-ub", &n.to_string()]);
        }
        for o in line.all(Setting::Override) {
            put(&["-ot", &overrides(line, &o.value)]);
        }
        if let Some(n) = line.count(Setting::NCpuFfn).filter(|&n| n > 0) {
            put(&["-ot", &ffn_on_host(n)]);
        }
        if line.last(Setting::CpuMoe).is_some() && !line.is_off(Setting::CpuMoe) {
            put(&["-cmoe"]);
        }
        if line.is_off(Setting::KvOffload) {
            put(&["-nkvo"]);
        }
        if line.is_off(Setting::FlashAttention) {
            put(&["-fa", "off"]);
        }
        // A draft file replaces the model's own draft blocks.
        if line.drafts_by_own_blocks() {
            put(&["--spec-type", "draft-mtp"]);
        }
        if let Some(servers) = line.servers() {
            put(&["--rpc", &servers.join(",")]);
        }
        // `None` leaves tpc's default.
        let context = line.context();
        for (n, option) in [(context.ctx_size, "-c"), (context.sequences, "-np")] {
            if let Some(n) = n {
                put(&[option, &n.to_string()]);
            }
        }
        match line.maker {
            Maker::IkLlamaCpp => put(&["--engine", "ik_llama.cpp"]),
            Maker::LlamaCpp => options.extend(memory_words(line)),
        }
        Some(TpcCommand { model, options })
    }

    /// Returns the equivalent command for tpc's own engine.
    #[must_use]
    pub fn for_tpc(&self) -> TpcCommand {
        let of_engine = self.options.iter().position(|o| o == "--engine");
        let own = of_engine.unwrap_or(self.options.len());
        TpcCommand {
            model: self.model.clone(),
            options: self.options[..own].to_vec(),
        }
    }

    /// Returns the shell command that plans the model with the options `machine`.
    pub fn shell(&self, machine: &[String]) -> String {
        let mut words = vec!["tpc".to_owned(), "plan".to_owned(), quote(&self.model)];
        words.extend(machine.iter().map(|o| quote(o)));
        words.extend(self.options.iter().map(|o| quote(o)));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::stated_devices;
    use super::*;

    const SERVER: &str = "--engine llama.cpp --server";

    fn same(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let line = CommandLine::parse(&words).expect(line);
        let same = TpcCommand::from_line(&line, Some("x".to_owned())).expect("a model");
        same.options.join(" ")
    }

    #[test]
    fn a_physical_batch_is_at_most_the_logical_one() {
        for (line, expected) in [
            ("llama-server -ub 4096 -b 512", "-sm layer -ub 512"),
            ("llama-server -ub 4096", "-sm layer -ub 2048"),
            ("llama-server -b 256", "-sm layer -ub 256"),
            ("llama-server -b 4096 -ub 0", "-sm layer -ub 4096"),
            ("llama-server -b 4096", "-sm layer"),
        ] {
            assert_eq!(same(line), format!("{expected} {SERVER}"), "{line}");
        }
    }

    #[test]
    fn devices_of_a_list_are_counted_in_its_order() {
        let line = "llama-server -dev CUDA3,CUDA1 -ot a=CUDA1,b=CUDA3,c=CUDA_Host";
        let expected = format!("-sm layer -ot a=dev1,b=dev0,c=CPU {SERVER}");
        assert_eq!(same(line), expected);
    }

    #[test]
    fn what_changes_the_memory_of_the_engine_is_translated() {
        let line = "llama-cli -fa off --swa-full -kvu -ctkd q8_0 --draft-max 5 --moe-cache-mib 512";
        let expected = "-sm layer -fa off --engine llama.cpp --swa-full --kv-unified --cache-type-k-draft q8_0 \
                        --spec-draft-n-max 5 --moe-cache-mib 512";
        assert_eq!(same(line), expected);
        assert_eq!(
            same("ik_llama.cpp/bin/llama-server"),
            "-sm layer --engine ik_llama.cpp"
        );
    }

    #[test]
    fn a_line_is_translated() {
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
        assert_eq!(stated_devices(&line), Some(2));
        let same = TpcCommand::from_line(&line, None).expect("it names a file");
        assert_eq!(
            same.shell(&["--devices".to_owned(), "2".to_owned()]),
            r"tpc plan 'my model.gguf' --devices 2 -sm tensor -ts 3,1 -ctk q8_0 -ot 'blk\.(1|2)\.ffn=CPU,a=dev1,b=CPU' -nkvo --engine llama.cpp --server"
        );
    }
}
