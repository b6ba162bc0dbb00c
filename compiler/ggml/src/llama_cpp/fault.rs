//! Values that a program of llama.cpp does not take: with them it does not start, or runs with another value.

use super::command::ParsedOption;
use super::options::Setting;
use super::programs::Program;

/// A value that the program does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The option, as it is spelt.
    pub spelling: String,
    /// What is wrong, as what the program does.
    pub what: String,
    /// What it takes.
    pub takes: String,
}

impl Fault {
    /// An option without the value that it needs.
    pub(super) fn missing(spelling: &str) -> Fault {
        Fault {
            spelling: spelling.to_owned(),
            what: format!(
                "`{spelling}` has no value: llama.cpp takes the next word for it, and stops"
            ),
            takes: format!("{spelling} on, off or auto; older builds took none"),
        }
    }
}

/// Whether a word is a value of an option that is on, off or automatic.
pub(super) fn is_on_off_auto(word: &str) -> bool {
    is_on_off(word) || matches!(word, "auto" | "-1")
}

fn is_on_off(word: &str) -> bool {
    matches!(
        word,
        "on" | "enabled" | "true" | "1" | "off" | "disabled" | "false" | "0"
    )
}

/// The number that a word means to a reader: `8192`, `-1`, or `8k`.
pub(super) fn read_number(word: &str) -> Option<i64> {
    let (digits, unit) = match word.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (word, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

/// The number that the program takes from the begin of a word.
fn begin(word: &str) -> Option<&str> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    (len > 0).then(|| &word[..word.len() - digits.len() + len])
}

/// Whether a word is numbers and ranges of a benchmark: `512,1024`, `128-512`, `128-512+128`, `128-512*2`.
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

/// What is wrong with the value of an option.
pub(super) fn fault(given: &ParsedOption, program: Program) -> Option<Fault> {
    let word = given.value.as_str();
    let spelling = given.spelling.as_str();
    let bench = program == Program::Bench;
    let wrong = |takes: &str| {
        Some(Fault {
            spelling: spelling.to_owned(),
            what: format!("{spelling} does not take `{word}`: llama.cpp stops"),
            takes: format!("{spelling} takes {takes}"),
        })
    };
    let number = |least: i64, takes: &str| match (word.parse::<i64>(), begin(word)) {
        _ if bench && is_ranges(word) => None,
        (Ok(n), _) if n >= least => None,
        (Err(_), Some(begin)) if !bench => Some(Fault {
            spelling: spelling.to_owned(),
            what: format!("llama.cpp reads {spelling} {word} as {begin}"),
            takes: match read_number(word) {
                Some(n) => format!("write {spelling} {n}"),
                None => format!("{spelling} takes {takes}"),
            },
        }),
        _ => wrong(takes),
    };
    let each = |is_value: fn(&str) -> bool, takes: &str| match bench {
        true if word.split(',').all(is_value) => None,
        false if is_value(word) => None,
        _ => wrong(takes),
    };
    match given.spec.setting {
        Setting::FlashAttention if given.spec.arity == super::Arity::NegatedSwitch => None,
        Setting::FlashAttention => each(is_on_off_auto, "on, off or auto"),
        Setting::Fit => each(is_on_off, "on or off"),
        Setting::GpuLayers if !bench && matches!(word, "all" | "auto") => None,
        Setting::GpuLayers => number(i64::MIN, "a number of layers, `all` or `auto`"),
        Setting::Parallel if word == "0" => wrong("a number of sequences, at least 1"),
        Setting::NCpuMoe | Setting::NCpuFfn => number(0, "a number of layers, at least 0"),
        Setting::Context
        | Setting::Batch
        | Setting::Ubatch
        | Setting::Parallel
        | Setting::MainGpu
        | Setting::PromptTokens
        | Setting::GeneratedTokens
        | Setting::Depth => number(i64::MIN, "a number"),
        _ => None,
    }
}
