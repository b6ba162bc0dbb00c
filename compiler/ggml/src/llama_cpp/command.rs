use std::iter::Peekable;
use std::slice::Iter;

use super::fault::{Fault, fault, is_on_off_auto, read_number};
use super::option_spec::{Arity, OptionSpec, Setting};
use super::options::OPTIONS;
use super::parsed_option::ParsedOption;
use super::programs::{Maker, Program};
use tpc_diag::{Diagnostic, codes};

/// A llama.cpp command line.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The program as written.
    pub program: String,
    /// The kind of program, which determines the options.
    pub kind: Program,
    /// The project that publishes the program.
    pub maker: Maker,
    /// The options: environment variables first, then the command line, in order.
    pub options: Vec<ParsedOption>,
    /// Words that are not options of the program.
    pub unknown: Vec<String>,
    /// Values that the program rejects.
    pub faults: Vec<Fault>,
    /// The number of devices in `CUDA_VISIBLE_DEVICES` or an equivalent variable.
    pub visible: Option<usize>,
}

type Words<'w> = Peekable<Iter<'w, String>>;

const VISIBLE: [&str; 4] = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GGML_VK_VISIBLE_DEVICES",
];

pub(super) fn is_off(value: &str) -> bool {
    matches!(value, "0" | "off" | "false" | "disabled")
}

fn error(message: String) -> Diagnostic {
    Diagnostic::new(&codes::COMMAND_LINE, "command line", message)
}

fn maker(program: &str) -> Maker {
    match program
        .split(['/', '\\'])
        .any(|part| part.starts_with("ik_llama"))
    {
        true => Maker::IkLlamaCpp,
        false => Maker::LlamaCpp,
    }
}

impl CommandLine {
    /// Parses a command line: `NAME=VALUE` assignments, the program, and its options.
    ///
    /// # Errors
    /// Returns TPC0400 if the program is missing or unknown, or if an option lacks its argument.
    pub fn parse(words: &[String]) -> Result<CommandLine, Diagnostic> {
        let mut words = words.iter().peekable();
        words.next_if(|w| *w == "env");
        let (mut options, mut visible) = (Vec::new(), None);
        while let Some((name, value)) = words.peek().and_then(|w| assignment(w)) {
            words.next();
            options.extend(variable(name, value));
            if VISIBLE.contains(&name) {
                visible = devices_in(value);
            }
        }
        let Some(program) = words.next() else {
            return Err(error("the program after `--` is missing".to_owned())
                .help("tpc lint -- llama-server -m MODEL.gguf …"));
        };
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let Some(kind) = Program::of(name) else {
            let help = match Program::nearest(name) {
                Some(near) => format!("did you mean {near}?"),
                None => "write a line such as `llama-server -m MODEL.gguf -sm tensor`".to_owned(),
            };
            let message = format!("unknown llama.cpp or ik_llama.cpp program `{program}`");
            return Err(error(message).help(help));
        };
        if kind == Program::Bench {
            // The program reads no environment variables.
            options.clear();
        }
        let mut out = CommandLine {
            program: program.clone(),
            kind,
            maker: maker(program),
            options,
            unknown: Vec::new(),
            faults: Vec::new(),
            visible,
        };
        for given in std::mem::take(&mut out.options) {
            out.add(given, None);
        }
        while let Some(word) = words.next() {
            out.word(word, &mut words)?;
        }
        Ok(out)
    }

    fn word(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Diagnostic> {
        // Programs also accept `--ctx_size`.
        let name = match word.strip_prefix("--") {
            Some(rest) => format!("--{}", rest.replace('_', "-")),
            None => word.to_owned(),
        };
        let known = self.kind.options(self.maker);
        let mut known = known.filter(|o| o.names.contains(&name.as_str()));
        let Some(spec) = known.next() else {
            self.unknown.push(word.to_owned());
            while word.starts_with('-') && words.next_if(|w| !w.starts_with('-')).is_some() {}
            return Ok(());
        };
        let (mut value, missing) = argument(spec, word, words, self.maker)?;
        if spec.setting == Setting::Speculation && self.maker == Maker::IkLlamaCpp {
            value = speculation(spec, &value);
        }
        let given = ParsedOption {
            spec,
            spelling: word.to_owned(),
            value,
            from_env: false,
        };
        self.add(given, missing);
        Ok(())
    }

    /// Adds an option. If the program rejects the value, records the fault and adds [`Fault::meant`], if any.
    fn add(&mut self, given: ParsedOption, missing: Option<Fault>) {
        let Some(fault) = missing.or_else(|| fault(&given, self.kind, self.maker)) else {
            self.options.push(given);
            return;
        };
        let value = fault.meant.clone();
        self.faults.push(fault);
        self.options
            .extend(value.map(|value| ParsedOption { value, ..given }));
    }

    /// Returns all options for a setting; the last one takes effect.
    pub fn all(&self, setting: Setting) -> impl DoubleEndedIterator<Item = &ParsedOption> {
        self.options
            .iter()
            .filter(move |o| o.spec.setting == setting)
    }

    /// Returns the option that takes effect: the last one in the line, or else in the environment.
    pub fn last(&self, setting: Setting) -> Option<&ParsedOption> {
        self.all(setting).next_back()
    }

    /// Returns a setting's value.
    pub fn value(&self, setting: Setting) -> Option<&str> {
        self.last(setting).map(|o| o.value.as_str())
    }

    /// Returns the value of a setting as a number.
    pub fn count(&self, setting: Setting) -> Option<u64> {
        u64::try_from(read_number(self.value(setting)?)?).ok()
    }

    /// True if a setting is switched off.
    pub fn is_off(&self, setting: Setting) -> bool {
        self.value(setting).is_some_and(is_off)
    }

    /// True if tensors are split among the devices (`-sm tensor`).
    pub fn splits_tensors(&self) -> bool {
        self.value(Setting::SplitMode) == Some("tensor")
    }
}

/// Returns the number of devices in a list like `CUDA_VISIBLE_DEVICES`; `None` if the list is empty.
fn devices_in(list: &str) -> Option<usize> {
    let names = list.split(',').map(str::trim);
    // A negative number ends the list.
    let n = names
        .take_while(|n| !n.is_empty() && !n.starts_with('-'))
        .count();
    (n > 0).then_some(n)
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(upper)).then_some((name, value))
}

fn variable(name: &str, value: &str) -> Option<ParsedOption> {
    let spec = OPTIONS
        .iter()
        .find(|o| o.env == name && !o.env.is_empty())?;
    let on_off = |is_on: bool| if is_on { "on" } else { "off" };
    let value = match spec.arity {
        Arity::Switch => on_off(!is_off(value)),
        Arity::NegatedSwitch => "off",
        Arity::One | Arity::Two | Arity::OnOffAuto => value,
    };
    Some(ParsedOption {
        spec,
        spelling: name.to_owned(),
        value: value.to_owned(),
        from_env: true,
    })
}

/// Returns the kinds of drafting in an `ik_llama.cpp` option, without parameters (`mtp:n_max=3,p_min=0.5`). Draft
/// blocks of the model get llama.cpp's name.
fn speculation(spec: &OptionSpec, value: &str) -> String {
    let mtp = "draft-mtp";
    if spec.arity == Arity::Switch {
        return mtp.to_owned();
    }
    let parts = value
        .split(',')
        .filter(|p| p.contains(':') || !p.contains('='));
    let kinds: Vec<&str> = parts
        .map(|p| match p.split(':').next().unwrap_or(p) {
            "mtp" => mtp,
            kind => kind,
        })
        .collect();
    kinds.join(",")
}

fn argument(
    spec: &OptionSpec,
    spelling: &str,
    words: &mut Words<'_>,
    maker: Maker,
) -> Result<(String, Option<Fault>), Diagnostic> {
    let mut next = || {
        let missing =
            || error(format!("`{spelling}` needs a value")).help(format!("{spelling} VALUE"));
        words.next().cloned().ok_or_else(missing)
    };
    let value = match spec.arity {
        Arity::Switch => "on".to_owned(),
        Arity::NegatedSwitch => "off".to_owned(),
        Arity::One => next()?,
        Arity::Two => format!("{} {}", next()?, next()?),
        Arity::OnOffAuto => {
            let is_value = |w: &&String| is_on_off_auto(w) || !w.starts_with('-');
            let taken = match maker {
                Maker::LlamaCpp => words.next_if(is_value),
                // ik_llama.cpp also accepts the option without a value.
                Maker::IkLlamaCpp => words.next_if(|w| is_on_off_auto(w)),
            };
            match (taken, maker) {
                (Some(value), _) => value.clone(),
                (None, Maker::IkLlamaCpp) => "on".to_owned(),
                (None, Maker::LlamaCpp) => {
                    return Ok(("on".to_owned(), Some(Fault::missing_value(spelling))));
                }
            }
        }
    };
    Ok((value, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandLine, Diagnostic> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        CommandLine::parse(&words)
    }

    #[test]
    fn options_and_environment() {
        let line = "CUDA_VISIBLE_DEVICES=0 LLAMA_ARG_CTX_SIZE=4096 LLAMA_ARG_KV_OFFLOAD=false ./llama-server -m x.gguf \
                    -fa on -c 8192 -sm tensor -ot a=CPU -ot b=CPU --port 80 --frobnicate 3 --jinja";
        let line = read(line).expect("a line");
        assert_eq!(line.value(Setting::Model), Some("x.gguf"));
        assert_eq!(line.count(Setting::CtxSize), Some(8192));
        assert!(line.is_off(Setting::KvOffload) && line.splits_tensors());
        assert_eq!(line.value(Setting::FlashAttention), Some("on"));
        assert_eq!(line.all(Setting::Override).count(), 2);
        assert_eq!(line.unknown, ["--frobnicate"]);
        assert_eq!((line.visible, line.faults.len()), (Some(1), 0));
        let off = read("llama-cli -fa off -nkvo").expect("a line");
        assert!(off.is_off(Setting::FlashAttention) && off.is_off(Setting::KvOffload));
        let old = read("LLAMA_ARG_NO_KV_OFFLOAD=1 llama-cli").expect("a line");
        assert!(old.is_off(Setting::KvOffload));
    }

    #[test]
    fn incomplete_lines_are_refused() {
        for bad in ["", "LLAMA_ARG_CTX_SIZE=1", "vllm serve", "llama-server -m"] {
            let d = read(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
    }

    #[test]
    fn programs_and_their_makers() {
        let of = |line| read(line).map(|l| (l.kind, l.maker)).expect(line);
        use super::{Maker::*, Program::*};
        assert_eq!(of("llama-server"), (General, LlamaCpp));
        assert_eq!(of("bin/llama-bench -nkvo 1"), (Bench, LlamaCpp));
        assert_eq!(of("llama-batched-bench"), (General, LlamaCpp));
        assert_eq!(of("llama-imatrix -o x"), (Chunks, LlamaCpp));
        assert_eq!(of("ik_llama-server -fa -fmoe"), (General, IkLlamaCpp));
        assert_eq!(
            of("/opt/ik_llama.cpp/build/bin/llama-server -mla 3"),
            (General, IkLlamaCpp)
        );
        let line = read("ik_llama-server -fa -fmoe -mla 3 -amb 512").expect("a line");
        assert!(line.unknown.is_empty() && line.faults.is_empty());
        assert_eq!(
            read("llama-server -fmoe").expect("a line").unknown,
            ["-fmoe"]
        );
    }

    #[test]
    fn values_that_the_program_does_not_take() {
        for bad in [
            "llama-server -fa -c 8192",
            "llama-server -c 8192 -fa",
            "llama-server -fa maybe",
            "llama-server -c 8k",
            "llama-server -c all",
            "llama-server -fit auto",
            "llama-server -ngl some",
            "llama-server -np 0",
            "llama-server -ncmoe -1",
            "llama-bench -p 512k",
            "LLAMA_ARG_CTX_SIZE=x llama-server",
            "llama-server -c -5",
            "llama-server -ctk q4_K",
            "llama-server -sm auto",
            "llama-server -sm graph",
            "ik_llama-server -sm tensor",
            "llama-bench -sm layer,rows",
            "llama-server -t foo",
            "llama-server --port abc",
            "llama-server --temp x",
            "llama-server --temp 0.7x",
            "llama-server --top_k many",
            "llama-bench -r x",
            "llama-server --rope-freq-base auto",
        ] {
            let line = read(bad).expect(bad);
            assert_eq!(line.faults.len(), 1, "{bad}: {:?}", line.faults);
        }
        for good in [
            "llama-server -fa auto -c 8192 -fit off -ngl all -np -1 --ctx_size 4096",
            "llama-bench -p 512-1024+128 -n 128,256 -fa on,off -ngl 10-30*2 -ub 512 -t 4,8 -r 3",
            "llama-server -t -1 --temp 0.7 --top-p 1 -s 4294967295 -r User: -ctk bf16 --poll 50",
            "ik_llama-server -sm graph -ctk q8_KV -mla 3",
        ] {
            let line = read(good).expect(good);
            assert!(line.faults.is_empty(), "{good}: {:?}", line.faults);
            assert!(line.unknown.is_empty(), "{good}: {:?}", line.unknown);
        }
        assert_eq!(
            read("llama-server -c 8k")
                .expect("a line")
                .count(Setting::CtxSize),
            Some(8192)
        );
    }

    #[test]
    fn the_rest_of_a_line_is_read_without_what_is_wrong() {
        let line =
            read("llama-server -ctk q4_K -ngl lots -ub 1kB -c 8192 -sm graph").expect("a line");
        assert_eq!(line.faults.len(), 4);
        assert_eq!(
            (line.value(Setting::CacheK), line.value(Setting::GpuLayers)),
            (None, None)
        );
        assert_eq!(
            (line.value(Setting::Ubatch), line.value(Setting::CtxSize)),
            (Some("1"), Some("8192"))
        );
        let graph = line
            .faults
            .iter()
            .find(|f| f.spelling == "-sm")
            .expect("a fault");
        assert!(graph.takes.contains("ik_llama"), "{}", graph.takes);
        let lists = read("llama-bench -sm layer,rows,tensor").expect("a line");
        assert_eq!(lists.value(Setting::SplitMode), Some("layer,tensor"));
    }

    #[test]
    fn programs_that_nobody_has_are_refused() {
        for (bad, near) in [
            ("llama-sevrer", Some("llama-server")),
            ("lama-server", Some("llama-server")),
            ("./bin/llama-bnech", Some("llama-bench")),
            ("koboldcpp", None),
            ("llama-frobnicate-everything", None),
        ] {
            let d = read(bad).expect_err(bad);
            let help = d.help.expect("a cure").to_string();
            let expected = near.map(|n| format!("did you mean {n}?"));
            assert_eq!(
                help.starts_with("did you mean").then_some(help),
                expected,
                "{bad}"
            );
        }
        for good in [
            "./build/bin/llama-server",
            "main",
            "server",
            "C:\\llama\\llama-server.exe",
            "llama-server-b6123",
            "llama-server_cuda",
            "llama-mtmd-cli",
            "llama-sweep-bench",
            "llama",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn visible_devices_are_counted() {
        let of = |line| read(line).expect(line).visible;
        assert_eq!(of("CUDA_VISIBLE_DEVICES=0,1,2 llama-server"), Some(3));
        assert_eq!(of("CUDA_VISIBLE_DEVICES=0,-1,2 llama-server"), Some(1));
        assert_eq!(of("CUDA_VISIBLE_DEVICES= llama-server"), None);
        assert_eq!(of("llama-server"), None);
    }

    #[test]
    fn every_spelling_belongs_to_one_option() {
        let mut seen = std::collections::BTreeSet::new();
        for name in OPTIONS.iter().flat_map(|f| f.names) {
            assert!(name.starts_with('-') && seen.insert(name), "{name}");
        }
    }
}
