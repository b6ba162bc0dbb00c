//! Parsers for the values of the placement options.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use tpc_ir::DType;
use tpc_ir::program::SumOrder;

use tpc_core::placement::{
    CacheSplit, DeviceList, DraftSources, EngineChoice, MAX_DEVICES, OverridePattern, Reserve,
    Servers, SplitMode, TensorSplit, parse_backend, parse_cache_split, parse_cache_type,
    parse_deterministic, parse_draft_sources, parse_engine, parse_flash_attention,
    parse_gpu_layers, parse_host_memory, parse_link, parse_split_mode,
};
use tpc_diag::{Diagnostic, codes};
use tpc_ggml::engines::Backend;
use tpc_models::CACHE_TYPES;
use tpc_passes::machine::{Engine, LinkKind};

/// An option's value, or a diagnostic if it is invalid. clap accepts invalid values; with `--format json`, the command
/// prints the diagnostic as its result.
pub(super) type Parsed<T> = Result<T, Diagnostic>;

/// A parser of an option's value, for clap.
#[derive(Clone)]
pub(super) struct Reader<T> {
    parse: fn(&str) -> Parsed<T>,
    /// Values for completion and the manual; empty if the list would be too long.
    values: Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Reader<T> {
    type Value = Parsed<T>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Parsed<T>, clap::Error> {
        let text = value.to_str();
        let text =
            text.ok_or_else(|| clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command))?;
        Ok((self.parse)(text))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = self.values.iter().map(PossibleValue::new);
        (!self.values.is_empty()).then(|| Box::new(values) as Box<_>)
    }
}

/// Devices to plan for: one list, or one per count of a range. Only `tpc plan` and `tpc lint` accept ranges.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceLists {
    /// The value as given.
    pub(super) text: String,
    /// The lists, at least one, in order.
    pub(super) lists: Vec<DeviceList>,
}

impl DeviceLists {
    /// Returns `n` generic devices. Returns TPC0400 for 0 and for numbers above [`MAX_DEVICES`].
    pub(super) fn count(n: usize) -> Parsed<DeviceLists> {
        DeviceLists::parse(&n.to_string())
    }

    /// Returns all devices of the topology file, or one device if there is no file.
    pub(super) fn all() -> DeviceLists {
        DeviceLists {
            text: "1".to_owned(),
            lists: vec![DeviceList::All],
        }
    }

    /// Parses a count, a list such as `2x3090` or `cpu,cpu`, or a range of counts such as `2..8` or `2..8x3090`.
    fn parse(text: &str) -> Parsed<DeviceLists> {
        let lists = match text.split_once("..") {
            None => vec![DeviceList::parse(text)?],
            Some((first, rest)) => {
                let (last, of) = match rest.split_once(['x', 'X', '*']) {
                    Some((last, card)) => (last, format!("x{card}")),
                    None => (rest, String::new()),
                };
                range(text, first, last)?
                    .map(|n| DeviceList::parse(&format!("{n}{of}")))
                    .collect::<Result<_, _>>()?
            }
        };
        let text = text.to_owned();
        Ok(DeviceLists { text, lists })
    }

    /// Returns each list separately, with its text.
    pub(super) fn each(&self) -> Vec<DeviceLists> {
        if !self.text.contains("..") {
            return vec![self.clone()];
        }
        let one = |list: &DeviceList| DeviceLists {
            text: list.to_string(),
            lists: vec![list.clone()],
        };
        self.lists.iter().map(one).collect()
    }

    /// Returns the only list; returns TPC0400 for a range of counts.
    pub(super) fn only(&self) -> Parsed<&DeviceList> {
        if self.text.contains("..") {
            let message = format!("`{}` is a range of counts", self.text);
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--devices", message);
            return Err(
                d.help("give one count, such as 2; only `tpc plan` and `tpc lint` take ranges")
            );
        }
        Ok(&self.lists[0])
    }
}

fn range(text: &str, first: &str, last: &str) -> Parsed<std::ops::RangeInclusive<usize>> {
    let count = |t: &str| t.trim().trim_start_matches('=').parse::<usize>().ok();
    match (count(first), count(last)) {
        (Some(a), Some(b)) if (1..=b).contains(&a) && b <= MAX_DEVICES => Ok(a..=b),
        _ => {
            let message = format!("`{text}` is not a range of counts");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--devices", message);
            Err(d.help(format!(
                "give two counts from 1 to {MAX_DEVICES}, the smaller first, such as `2..8`"
            )))
        }
    }
}

pub(super) fn devices() -> Reader<DeviceLists> {
    Reader {
        parse: DeviceLists::parse,
        values: Vec::new(),
    }
}

pub(super) fn link() -> Reader<LinkKind> {
    Reader {
        parse: parse_link,
        values: LinkKind::STATED.map(LinkKind::name).to_vec(),
    }
}

pub(super) fn reserve() -> Reader<Reserve> {
    Reader {
        parse: Reserve::parse,
        values: Vec::new(),
    }
}

pub(super) fn host_memory() -> Reader<f64> {
    Reader {
        parse: parse_host_memory,
        values: Vec::new(),
    }
}

pub(super) fn servers() -> Reader<Servers> {
    Reader {
        parse: Servers::parse,
        values: Vec::new(),
    }
}

pub(super) fn flash_attention() -> Reader<bool> {
    Reader {
        parse: parse_flash_attention,
        values: vec!["on", "off", "auto"],
    }
}

pub(super) fn split_mode() -> Reader<SplitMode> {
    Reader {
        parse: parse_split_mode,
        values: vec!["auto", "none", "layer", "tensor"],
    }
}

pub(super) fn tensor_split() -> Reader<TensorSplit> {
    Reader {
        parse: TensorSplit::parse,
        values: Vec::new(),
    }
}

pub(super) fn overrides() -> Reader<Vec<OverridePattern>> {
    Reader {
        parse: OverridePattern::parse_list,
        values: Vec::new(),
    }
}

/// The number of layers on devices; `None` for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GpuLayers(pub(super) Option<u64>);

pub(super) fn gpu_layers() -> Reader<GpuLayers> {
    Reader {
        parse: |text| parse_gpu_layers(text).map(GpuLayers),
        values: Vec::new(),
    }
}

/// Parses a number, or a multiple of 1024 or 1024², such as `32k` or `1M`.
///
/// # Errors
/// Returns TPC0400 with `help` for other text and for numbers below `least`.
fn count(option: &'static str, text: &str, least: u64, help: &str) -> Parsed<u64> {
    let trimmed = text.trim();
    let (digits, unit) = match trimmed.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 1 << 20),
        _ => (trimmed, 1),
    };
    let digits = digits.replace('_', "");
    let number = digits.parse::<u64>().ok();
    let number = number.and_then(|n| n.checked_mul(unit));
    number.filter(|&n| n >= least).ok_or_else(|| {
        let message = match number {
            Some(n) => format!("{option} cannot be {n}"),
            None if text.trim().starts_with('-') => {
                format!("{option} cannot be negative: `{text}`")
            }
            None => format!("`{text}` is not a number for {option}"),
        };
        Diagnostic::new(&codes::COMMAND_LINE, option, message).help(help)
    })
}

fn counts(parse: fn(&str) -> Parsed<u64>) -> Reader<u64> {
    Reader {
        parse,
        values: Vec::new(),
    }
}

pub(super) fn ctx_size() -> Reader<u64> {
    const HELP: &str = "give a number of tokens such as 32768, or 32k; 0 is the model's context";
    counts(|text| count("--ctx-size", text, 0, HELP))
}

pub(super) fn ubatch_size() -> Reader<u64> {
    counts(|text| {
        count(
            "--ubatch-size",
            text,
            1,
            "give a number of tokens, such as 512 or 2k",
        )
    })
}

pub(super) fn parallel() -> Reader<u64> {
    counts(|text| {
        count(
            "--parallel",
            text,
            1,
            "give a number of sequences, at least 1",
        )
    })
}

pub(super) fn depth() -> Reader<u64> {
    const HELP: &str = "give the tokens in the cache, such as 4096 or 4k, at most the context";
    counts(|text| count("--depth", text, 0, HELP))
}

pub(super) fn drafted_tokens() -> Reader<u64> {
    const HELP: &str = "give a number of tokens, such as 3";
    counts(|text| count("--spec-draft-n-max", text, 0, HELP))
}

pub(super) fn expert_cache() -> Reader<u64> {
    const HELP: &str = "give a number of MiB, such as 4096";
    counts(|text| count("--moe-cache-mib", text, 0, HELP))
}

pub(super) fn main_gpu() -> Reader<u64> {
    const HELP: &str = "give the position of a device, such as 1; the first is 0";
    counts(|text| count("--main-gpu", text, 0, HELP))
}

pub(super) fn n_cpu_moe() -> Reader<u64> {
    const HELP: &str =
        "give a number of layers such as 12; --cpu-moe keeps all experts on the host";
    counts(|text| count("--n-cpu-moe", text, 0, HELP))
}

fn cache_types() -> Vec<&'static str> {
    CACHE_TYPES.iter().map(|t| t.name()).collect()
}

pub(super) fn cache_type_k() -> Reader<DType> {
    Reader {
        parse: |text| parse_cache_type("--cache-type-k", text),
        values: cache_types(),
    }
}

pub(super) fn cache_type_v() -> Reader<DType> {
    Reader {
        parse: |text| parse_cache_type("--cache-type-v", text),
        values: cache_types(),
    }
}

pub(super) fn spec_type() -> Reader<DraftSources> {
    Reader {
        parse: parse_draft_sources,
        values: DraftSources::NAMES.to_vec(),
    }
}

pub(super) fn deterministic() -> Reader<SumOrder> {
    Reader {
        parse: parse_deterministic,
        values: vec!["on", "off", "auto"],
    }
}

pub(super) fn cache_split() -> Reader<CacheSplit> {
    Reader {
        parse: parse_cache_split,
        values: vec!["heads", "cells", "auto"],
    }
}

pub(super) fn engine() -> Reader<EngineChoice> {
    Reader {
        parse: parse_engine,
        values: Engine::ALL.map(Engine::name).to_vec(),
    }
}

pub(super) fn backend() -> Reader<Backend> {
    Reader {
        parse: parse_backend,
        values: Backend::ALL.map(Backend::name).to_vec(),
    }
}

/// A regular expression that matches parts of names.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    option: &'static str,
    regex: fancy_regex::Regex,
}

impl Pattern {
    /// Parses a regular expression; returns TPC0400 if it is invalid.
    fn parse(option: &'static str, text: &str) -> Parsed<Pattern> {
        match fancy_regex::Regex::new(text) {
            Ok(regex) => Ok(Pattern { option, regex }),
            Err(e) => {
                let message = format!("`{text}` is not a regular expression: {e}");
                let d = Diagnostic::new(&codes::COMMAND_LINE, option, message);
                Err(d.help("give a regex in quotes, such as 'ffn_.*_exps'; `.` matches any character, `.*` any text"))
            }
        }
    }

    /// True if the expression matches a part of the name. Returns TPC0400 if matching takes too many steps.
    pub(super) fn found_in(&self, name: &str) -> Parsed<bool> {
        self.regex.is_match(name).map_err(|e| {
            let message = format!("the pattern cannot be matched against `{name}`: {e}");
            let d = Diagnostic::new(&codes::COMMAND_LINE, self.option, message);
            d.help("use a pattern without nested repetitions")
        })
    }
}

pub(super) fn tensors() -> Reader<Pattern> {
    Reader {
        parse: |text| Pattern::parse("--tensors", text),
        values: Vec::new(),
    }
}

pub(super) fn keys() -> Reader<Pattern> {
    Reader {
        parse: |text| Pattern::parse("--keys", text),
        values: Vec::new(),
    }
}
/// Parses the value of `--tolerance`.
pub(super) fn tolerance(text: &str) -> Result<f64, Diagnostic> {
    let number = text.parse::<f64>().ok().filter(|x| *x >= 0.0);
    number.ok_or_else(|| {
        let message = format!("--tolerance must be a non-negative number, not `{text}`");
        Diagnostic::new(&codes::COMMAND_LINE, "--tolerance", message)
            .help("give an NMSE such as 1e-3")
    })
}
