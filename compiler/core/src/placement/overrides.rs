//! `--override-tensor`: places of tensors by name.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

use super::{DeviceKind, DeviceSpec};
use tpc_diag::{Diagnostic, codes};

/// The target of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The host.
    Host,
    /// One whole copy on the device at this position.
    Device(usize),
    /// A whole copy on every device.
    Mirrored,
}

/// An override `REGEX=PLACE`.
#[derive(Clone, Debug)]
pub struct Override {
    /// The pattern as given.
    pub pattern: String,
    regex: Regex,
    /// The target.
    pub target: Target,
}

/// Default maximum of backtracking steps per match.
const MATCH_STEPS: usize = 100_000;

fn compile(pattern: &str, steps: usize) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(pattern).backtrack_limit(steps).build()
}

impl Override {
    #[must_use]
    pub(super) fn with_step_limit(&self, steps: usize) -> Override {
        let regex = compile(&self.pattern, steps.clamp(1, MATCH_STEPS));
        Override {
            regex: regex.unwrap_or_else(|_| self.regex.clone()),
            ..self.clone()
        }
    }

    /// Returns this override with another pattern and target; `None` for an invalid regular expression.
    pub fn edited(&self, pattern: &str, target: Target) -> Option<Override> {
        Some(Override {
            pattern: pattern.to_owned(),
            regex: compile(pattern, MATCH_STEPS).ok()?,
            target,
        })
    }

    /// Formats the override: `PATTERN=PLACE`.
    pub fn words(&self) -> String {
        format!("{}={}", self.pattern, self.target)
    }

    /// True if the pattern matches anywhere in `name`.
    ///
    /// # Errors
    /// Returns TPC0410 if the match exceeds the step limit.
    pub fn matches(&self, name: &str) -> Result<bool, Diagnostic> {
        self.regex.is_match(name).map_err(|e| {
            let message = format!("`{}` cannot be matched against `{name}`: {e}", self.pattern);
            Diagnostic::new(&codes::TENSOR_OVERRIDE, "--override-tensor", message)
                .help("use a pattern without nested repetitions and back references, or fewer such patterns: they share the steps")
        })
    }
}

impl PartialEq for Override {
    fn eq(&self, other: &Override) -> bool {
        (&self.pattern, self.target) == (&other.pattern, other.target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Host => f.write_str("CPU"),
            Target::Device(d) => write!(f, "dev{d}"),
            Target::Mirrored => f.write_str("mirrored"),
        }
    }
}

/// An override `REGEX=PLACE` whose place is not resolved yet.
#[derive(Clone, Debug)]
pub struct OverridePattern {
    pattern: String,
    regex: Regex,
    place: String,
}

impl PartialEq for OverridePattern {
    fn eq(&self, other: &OverridePattern) -> bool {
        (&self.pattern, &self.place) == (&other.pattern, &other.place)
    }
}

fn wrong(message: String) -> Diagnostic {
    Diagnostic::new(&codes::TENSOR_OVERRIDE, "--override-tensor", message)
}

impl OverridePattern {
    /// Parses `REGEX=PLACE,…`. A comma separates entries only if a `=` follows before the next comma.
    ///
    /// # Errors
    /// Returns TPC0410 for a malformed list.
    pub fn parse_list(text: &str) -> Result<Vec<OverridePattern>, Diagnostic> {
        let mut parts: Vec<String> = Vec::new();
        let mut open = String::new();
        for part in text.split(',') {
            if !open.is_empty() {
                open.push(',');
            }
            open.push_str(part);
            if part.contains('=') {
                parts.push(std::mem::take(&mut open));
            }
        }
        if !open.is_empty() || parts.is_empty() {
            let rest = if open.is_empty() { text } else { &open };
            return Err(wrong(format!("`{rest}` lacks a `=`")).help(
                "write REGEX=PLACE, where PLACE is host, CPU, mirrored or a device: `-ot '\\.ffn_.*_exps\\.=CPU'`",
            ));
        }
        parts
            .iter()
            .map(|part| OverridePattern::parse(part))
            .collect()
    }

    fn parse(part: &str) -> Result<OverridePattern, Diagnostic> {
        let (pattern, place) = part.rsplit_once('=').unwrap_or((part, ""));
        if pattern.is_empty() {
            let help = format!("`.*={place}` places every tensor");
            return Err(wrong(format!(
                "`{part}` lacks a regular expression before the `=`"
            ))
            .help(help));
        }
        let regex = compile(pattern, MATCH_STEPS).map_err(|e| {
            wrong(format!("`{pattern}` is not a regular expression: {e}"))
                .help("give a regex and a place, such as `blk\\.(1|2)\\.ffn_.*=CPU`")
        })?;
        Ok(OverridePattern {
            pattern: pattern.to_owned(),
            regex,
            place: place.to_owned(),
        })
    }

    /// Resolves the place to a device, the host, or all devices.
    ///
    /// # Errors
    /// Returns TPC0410 if the place does not exist.
    pub fn among(&self, devices: &[DeviceSpec]) -> Result<Override, Diagnostic> {
        let target = target(&self.place, devices).ok_or_else(|| {
            let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
            wrong(format!("unknown place `{}`", self.place)).help(format!(
                "use host, CPU, mirrored or a device: {}",
                names.join(", ")
            ))
        })?;
        Ok(Override {
            pattern: self.pattern.clone(),
            regex: self.regex.clone(),
            target,
        })
    }
}

/// Parses lists of `REGEX=PLACE` for these devices.
///
/// # Errors
/// Returns the errors of [`OverridePattern::parse_list`] and [`OverridePattern::among`].
pub fn parse_overrides(
    given: &[String],
    devices: &[DeviceSpec],
) -> Result<Vec<Override>, Diagnostic> {
    let mut out = Vec::new();
    for text in given {
        for pattern in OverridePattern::parse_list(text)? {
            out.push(pattern.among(devices)?);
        }
    }
    Ok(out)
}

/// Resolves a device name, a position (`dev1`), or llama.cpp's name (`CUDA1`).
fn target(place: &str, devices: &[DeviceSpec]) -> Option<Target> {
    let lower = place.trim().to_ascii_lowercase();
    if let "host" | "cpu" = lower.as_str() {
        return Some(Target::Host);
    }
    if lower == "mirrored" {
        return Some(Target::Mirrored);
    }
    let named = devices
        .iter()
        .position(|d| d.name.eq_ignore_ascii_case(&lower));
    let cuda = || {
        let n = lower.strip_prefix("cuda")?.trim_start_matches(':');
        let n: u32 = n.parse().ok()?;
        let physical = devices.iter().position(|d| d.kind == DeviceKind::Cuda(n));
        // A device without a kind stands for the CUDA device at its position.
        let logical = || {
            let nth = devices.get(n as usize)?;
            (nth.kind == DeviceKind::Generic).then_some(n as usize)
        };
        physical.or_else(logical)
    };
    let position = || {
        let n: usize = lower.strip_prefix("dev")?.parse().ok()?;
        (n < devices.len()).then_some(n)
    };
    named.or_else(cuda).or_else(position).map(Target::Device)
}

#[cfg(test)]
mod tests {
    use super::super::parse_devices;
    use super::*;

    fn parse(texts: &[&str]) -> Result<Vec<(String, Target)>, Diagnostic> {
        let devices = parse_devices("cuda:0,cuda:3").expect("a list of devices");
        let texts: Vec<String> = texts.iter().map(|&t| t.to_owned()).collect();
        let found = parse_overrides(&texts, &devices)?;
        Ok(found.into_iter().map(|o| (o.pattern, o.target)).collect())
    }

    #[test]
    fn lists_of_overrides() {
        let found = parse(&[
            "a=CPU,b{1,2}=cuda:3#1",
            "c=CUDA3",
            "d=mirrored,e=dev0,f=x=host",
        ]);
        let expected = [
            ("a", Target::Host),
            ("b{1,2}", Target::Device(1)),
            ("c", Target::Device(1)),
            ("d", Target::Mirrored),
            ("e", Target::Device(0)),
            ("f=x", Target::Host),
        ];
        let expected = expected.map(|(p, t)| (p.to_owned(), t));
        assert_eq!(found, Ok(expected.to_vec()));
    }

    #[test]
    fn what_is_no_override() {
        for bad in [
            "",
            "a",
            "a=b=nowhere",
            "(=CPU",
            "a=CPU,b",
            "a=cuda:1",
            "a=dev2",
            "=CPU",
            "a=",
            "a=CPUs",
            "a=devO",
            &format!("{}a{}=CPU", "(".repeat(5000), ")".repeat(5000)),
            "(((a{1000}){1000}){1000}){1000}=CPU",
        ] {
            let found = parse(&[bad]).expect_err(bad);
            assert_eq!(found.code, "TPC0410", "{bad}");
            assert!(found.help.is_some(), "{bad}");
        }
    }

    #[test]
    fn devices_of_no_kind_have_any_name() {
        let devices = parse_devices("2").expect("a count");
        let place = |text: &str| {
            let found = parse_overrides(&[text.to_owned()], &devices);
            found.map(|o| o[0].target).map_err(|d| d.code)
        };
        assert_eq!(place("a=CUDA1"), Ok(Target::Device(1)));
        assert_eq!(place("a=Dev0"), Ok(Target::Device(0)));
        assert_eq!(place("a=CUDA2"), Err(&codes::TENSOR_OVERRIDE));
    }

    #[test]
    fn patterns_that_take_forever_are_refused() {
        let devices = parse_devices("2").expect("a count");
        let given = [r"^(.|..|...|....)*\1#=host".to_owned()];
        let found = parse_overrides(&given, &devices).expect("an override");
        let refused = found[0]
            .matches("blk.1.ffn_up_exps.weight")
            .expect_err("too many steps");
        assert_eq!((refused.code.id, refused.help.is_some()), ("TPC0410", true));
        // Without backreferences and lookaround, matching takes linear time.
        let given = ["(.+)+(.+)+(.+)+#=host".to_owned()];
        let found = parse_overrides(&given, &devices).expect("an override");
        assert_eq!(found[0].matches("blk.1.ffn_up_exps.weight"), Ok(false));
    }

    #[test]
    fn patterns_are_found_anywhere_and_may_look_ahead() {
        let devices = parse_devices("2").expect("a count");
        let given = [r"blk\.(?!0\.)\d+\.ffn=host".to_owned()];
        let found = parse_overrides(&given, &devices).expect("an override");
        assert_eq!(found[0].matches("blk.1.ffn_up.weight"), Ok(true));
        assert_eq!(found[0].matches("blk.0.ffn_up.weight"), Ok(false));
    }
}
