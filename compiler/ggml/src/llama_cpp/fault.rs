//! Values that a llama.cpp program rejects or reads as another value.

use super::numbers::{Number, number_of};
use super::option_spec::{Arity, Setting};
use super::parsed_option::ParsedOption;
use super::programs::{Maker, Program};

/// A value that the program rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The option's spelling.
    pub spelling: String,
    /// A description of the program's behaviour.
    pub what: String,
    /// The valid values.
    pub takes: String,
    /// The value that the user probably means. Without this value, tpc ignores the option.
    pub meant: Option<String>,
}

impl Fault {
    /// Returns the fault for a value that stops the program.
    pub fn stops(spelling: &str, value: &str, takes: &str) -> Fault {
        Fault {
            spelling: spelling.to_owned(),
            what: format!("invalid value `{value}` of {spelling}: the program stops"),
            takes: format!("{spelling} takes {takes}"),
            meant: None,
        }
    }

    /// Sets the value that the user probably means.
    #[must_use]
    pub fn with_meaning(self, value: impl Into<Option<String>>) -> Fault {
        Fault {
            meant: value.into(),
            ..self
        }
    }

    pub(super) fn missing_value(spelling: &str) -> Fault {
        Fault {
            spelling: spelling.to_owned(),
            what: format!(
                "`{spelling}` needs a value: llama.cpp takes the next word as the value, and stops"
            ),
            takes: format!("write {spelling} on, off or auto; older builds took no value"),
            meant: Some("on".to_owned()),
        }
    }
}

pub(super) fn is_on_off_auto(word: &str) -> bool {
    is_on_off(word) || matches!(word, "auto" | "-1")
}

fn is_on_off(word: &str) -> bool {
    matches!(
        word,
        "on" | "enabled" | "true" | "1" | "off" | "disabled" | "false" | "0"
    )
}

/// Parses a number with an optional suffix: `8192`, `-1`, `8k`.
pub(super) fn read_number(word: &str) -> Option<i64> {
    let (digits, unit) = match word.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (word, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

/// Returns the prefix that the program parses as a number.
fn numeric_prefix(word: &str, kind: Number) -> Option<&str> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = count(digits);
    let fraction = digits[whole..].strip_prefix('.').map_or(0, count);
    let len = match kind {
        Number::Real if fraction > 0 => whole + 1 + fraction,
        Number::Real | Number::Whole => whole,
    };
    (len > 0).then(|| &word[..word.len() - digits.len() + len])
}

/// True if a word consists of numbers and ranges for a benchmark: `512,1024`, `128-512`, `128-512+128`, `128-512*2`.
fn is_ranges(word: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    word.split(',').all(|part| {
        let part = part.strip_prefix('-').unwrap_or(part);
        match part.split_once('-') {
            None => digits(part),
            Some((first, rest)) => {
                let (last, step) = rest.split_once(['+', '*']).unwrap_or((rest, "1"));
                digits(first) && digits(last) && digits(step)
            }
        }
    })
}

struct Numeral<'g> {
    given: &'g ParsedOption,
    program: Program,
    kind: Number,
    least: i64,
}

impl Numeral<'_> {
    fn fault(&self, takes: &str) -> Option<Fault> {
        let (word, spelling) = (self.given.value.as_str(), self.given.spelling.as_str());
        let bench = self.program == Program::Bench;
        let stops = || Some(Fault::stops(spelling, word, takes));
        match (self.kind, word.parse::<i64>()) {
            _ if bench && is_ranges(word) => return None,
            (_, Ok(n)) if n >= self.least => return None,
            (Number::Real, Err(_)) if word.parse::<f64>().is_ok() => return None,
            (_, Ok(_)) => return stops(),
            _ => {}
        }
        let Some(begin) = numeric_prefix(word, self.kind).filter(|_| !bench) else {
            return stops();
        };
        let read = read_number(word);
        Some(Fault {
            spelling: spelling.to_owned(),
            what: format!("llama.cpp reads {spelling} {word} as {begin}"),
            takes: match read {
                Some(n) => format!("write {spelling} {n}"),
                None => format!("{spelling} takes {takes}"),
            },
            meant: Some(read.map_or_else(|| begin.to_owned(), |n| n.to_string())),
        })
    }
}

/// Checks a value, or every entry of a benchmark's list. Returns a fault for the first invalid entry.
fn check_each(
    given: &ParsedOption,
    program: Program,
    is: &dyn Fn(&str) -> bool,
    takes: &str,
) -> Option<Fault> {
    let (word, spelling) = (given.value.as_str(), given.spelling.as_str());
    let all: Vec<&str> = match program {
        Program::Bench => word.split(',').collect(),
        Program::General | Program::Chunks => vec![word],
    };
    let wrong = all.iter().find(|w| !is(w))?;
    let right: Vec<&str> = all.iter().copied().filter(|w| is(w)).collect();
    let meant = (!right.is_empty()).then(|| right.join(","));
    Some(Fault::stops(spelling, wrong, takes).with_meaning(meant))
}

const CACHE_TYPES: [&str; 9] = [
    "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1",
];

const IK_CACHE_TYPES: [&str; 2] = ["q6_0", "q8_KV"];

const SPLIT_MODES: [&str; 4] = ["none", "layer", "row", "tensor"];
const IK_SPLIT_MODES: [&str; 5] = ["none", "layer", "row", "attn", "graph"];

fn cache_type(given: &ParsedOption, program: Program, maker: Maker) -> Option<Fault> {
    let is = |word: &str| {
        CACHE_TYPES.contains(&word)
            || (maker == Maker::IkLlamaCpp && IK_CACHE_TYPES.contains(&word))
    };
    check_each(given, program, &is, &CACHE_TYPES.join(", "))
}

fn split_mode(given: &ParsedOption, program: Program, maker: Maker) -> Option<Fault> {
    let (known, takes): (&[&str], &str) = match maker {
        Maker::LlamaCpp => (
            &SPLIT_MODES,
            "none, layer, row or tensor; for ik_llama.cpp's `graph` and `attn`: tpc lint -- ik_llama-server …",
        ),
        Maker::IkLlamaCpp => (&IK_SPLIT_MODES, "none, layer, attn or graph"),
    };
    check_each(given, program, &|word| known.contains(&word), takes)
}

pub(super) fn fault(given: &ParsedOption, program: Program, maker: Maker) -> Option<Fault> {
    let word = given.value.as_str();
    let bench = program == Program::Bench;
    let number = |kind, least: i64, takes: &str| {
        let numeral = Numeral {
            given,
            program,
            kind,
            least,
        };
        numeral.fault(takes)
    };
    let whole = |least, takes| number(Number::Whole, least, takes);
    let each = |is: &dyn Fn(&str) -> bool, takes: &str| check_each(given, program, is, takes);
    match given.spec.setting {
        Setting::FlashAttention if given.spec.arity == Arity::NegatedSwitch => None,
        Setting::FlashAttention => each(&is_on_off_auto, "on, off or auto"),
        Setting::Fit => each(&is_on_off, "on or off"),
        Setting::CacheK | Setting::CacheV => cache_type(given, program, maker),
        Setting::SplitMode => split_mode(given, program, maker),
        Setting::GpuLayers if !bench && matches!(word, "all" | "auto") => None,
        Setting::GpuLayers => whole(i64::MIN, "a number of layers, `all` or `auto`"),
        Setting::Parallel if word == "0" => {
            let takes = "a number of sequences, at least 1";
            Some(Fault::stops(&given.spelling, word, takes))
        }
        Setting::NCpuMoe | Setting::NCpuFfn => whole(0, "a number of layers, at least 0"),
        Setting::CtxSize => whole(0, "a number of tokens; 0 is the model's context"),
        Setting::Batch | Setting::Ubatch => whole(0, "a number of tokens"),
        Setting::Parallel
        | Setting::MainGpu
        | Setting::PromptTokens
        | Setting::GeneratedTokens
        | Setting::Depth => whole(i64::MIN, "a number"),
        Setting::RopeScaling => each(
            &|word| matches!(word, "none" | "linear" | "yarn"),
            "none, linear or yarn",
        ),
        Setting::Other
        | Setting::Rope
        | Setting::RopeFactor
        | Setting::RopeFrequency
        | Setting::YarnContext => {
            number(number_of(&given.spelling, program)?, i64::MIN, "a number")
        }
        _ => None,
    }
}
