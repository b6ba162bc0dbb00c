use super::command::CommandLine;
use super::option_spec::{Arity, Setting};
use super::options::OPTIONS;
use super::parsed_option::ParsedOption;
use super::programs::Program;
use tpc_diag::{Diagnostic, codes};

const MAX_LINES: usize = 64;

const LISTS: [Setting; 13] = [
    Setting::Model,
    Setting::SplitMode,
    Setting::TensorSplit,
    Setting::MainGpu,
    Setting::Devices,
    Setting::GpuLayers,
    Setting::NCpuMoe,
    Setting::Override,
    Setting::NoKvOffload,
    Setting::CacheK,
    Setting::CacheV,
    Setting::Ubatch,
    Setting::FlashAttention,
];

/// A command line without lists.
#[derive(Clone, Debug)]
pub struct Test {
    /// The values that distinguish the line, such as `-sm tensor`; empty for a command with one line.
    pub label: String,
    /// The line.
    pub line: CommandLine,
}

/// Expands a range such as `128-512+128`; returns any other word unchanged.
fn range(part: &str) -> Vec<String> {
    let number = |t: &str| t.parse::<u64>().ok();
    let parsed = part.split_once('-').and_then(|(first, rest)| {
        let (last, step) = match rest.split_once(['+', '*']) {
            Some((last, step)) => (number(last)?, number(step)?),
            None => (number(rest)?, 1),
        };
        Some((number(first)?, last, step, rest.contains('*')))
    });
    let Some((mut at, last, step, times)) = parsed else {
        return vec![part.to_owned()];
    };
    let mut out = Vec::new();
    while at <= last && out.len() <= MAX_LINES {
        out.push(at.to_string());
        let next = match times {
            true => at.saturating_mul(step),
            false => at.saturating_add(step),
        };
        if next <= at {
            break;
        }
        at = next;
    }
    out
}

fn values(given: &ParsedOption) -> Vec<String> {
    let parts = given.value.split(',');
    match given.spec.setting {
        Setting::GpuLayers | Setting::NCpuMoe | Setting::Ubatch => parts.flat_map(range).collect(),
        // Commas separate the list's values, so other characters separate the entries of a value.
        Setting::TensorSplit | Setting::Devices | Setting::Override => parts
            .map(|p| match given.spec.setting {
                Setting::Override => p.replace(';', ","),
                _ => p.replace([';', '/'], ","),
            })
            .collect(),
        _ => parts.map(str::to_owned).collect(),
    }
}

fn with(given: &ParsedOption, value: &str) -> ParsedOption {
    let switch = OPTIONS
        .iter()
        .find(|o| o.setting == Setting::KvOffload && o.arity == Arity::NegatedSwitch);
    match (given.spec.setting, switch) {
        (Setting::NoKvOffload, Some(spec)) => ParsedOption {
            spec,
            value: match value {
                "0" => "on".to_owned(),
                _ => "off".to_owned(),
            },
            ..given.clone()
        },
        _ => ParsedOption {
            value: value.to_owned(),
            ..given.clone()
        },
    }
}

impl CommandLine {
    /// Returns a line per combination of a benchmark's lists, or the line itself.
    ///
    /// # Errors
    /// Returns TPC0400 if there are more than 64 combinations.
    pub fn each(&self) -> Result<Vec<Test>, Diagnostic> {
        let mut out = vec![Test {
            label: String::new(),
            line: self.clone(),
        }];
        if self.kind != Program::Bench {
            return Ok(out);
        }
        for setting in LISTS {
            let all: Vec<(&ParsedOption, String)> = self
                .all(setting)
                .flat_map(|o| values(o).into_iter().map(move |v| (o, v)))
                .collect();
            if all.is_empty() {
                continue;
            }
            if all.len().saturating_mul(out.len()) > MAX_LINES {
                let message = format!("the lists have more than {MAX_LINES} combinations");
                let d = Diagnostic::new(&codes::COMMAND_LINE, &all[0].0.spelling, message);
                return Err(d.help("give fewer values; only the largest of -p, -n and -d counts"));
            }
            let several = all.len() > 1;
            let chosen = |test: &Test, (given, value): &(&ParsedOption, String)| {
                let mut test = test.clone();
                test.line.options.retain(|o| o.spec.setting != setting);
                test.line.options.push(with(given, value));
                if several {
                    let space = if test.label.is_empty() { "" } else { " " };
                    test.label += &format!("{space}{} {value}", given.spelling);
                }
                test
            };
            out = out
                .iter()
                .flat_map(|test| all.iter().map(move |v| chosen(test, v)))
                .collect();
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn lists_are_taken_apart() {
        let line = read("llama-bench -m a.gguf -sm tensor,layer -ctk q8_0,f16 -ts 3/1 -nkvo 1");
        let all = line.each().expect("few");
        let labels: Vec<&str> = all.iter().map(|t| t.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "-sm tensor -ctk q8_0",
                "-sm tensor -ctk f16",
                "-sm layer -ctk q8_0",
                "-sm layer -ctk f16"
            ]
        );
        let last = &all[3].line;
        assert_eq!(last.value(Setting::SplitMode), Some("layer"));
        assert_eq!(last.value(Setting::TensorSplit), Some("3,1"));
        assert!(last.is_off(Setting::KvOffload));
        // Repeated options are also lists.
        assert_eq!(
            read("llama-bench -ngl 10-30+10 -ngl 99")
                .each()
                .expect("few")
                .len(),
            4
        );
        assert_eq!(
            read("llama-server -ts 1,1 -sm tensor")
                .each()
                .expect("one")
                .len(),
            1
        );
        assert!(read("llama-bench -ngl 0-99").each().is_err());
        assert_eq!(range("4-32*2"), ["4", "8", "16", "32"]);
        assert_eq!((range("5-5*1").len(), range("99").len()), (1, 1));
    }
}
