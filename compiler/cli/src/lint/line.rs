//! Adapts a llama.cpp command line to a number of devices. Invalid values become faults; the rest is planned.

use tpc_core::placement::{OverridePattern, TensorSplit};
use tpc_ggml::llama_cpp::{Buffer, CommandLine, Fault, ParsedOption, Setting, buffer, position};

/// Returns the line without surplus proportions, invalid main devices and invalid overrides. Each removed value becomes
/// a fault.
pub(super) fn on_devices(line: &CommandLine, devices: usize) -> CommandLine {
    let mut out = line.clone();
    let mut faults = Vec::new();
    out.options = (line.options.iter())
        .filter_map(|given| {
            let found = match given.spec.setting {
                Setting::TensorSplit => proportions(given, devices),
                Setting::MainGpu if line.value(Setting::SplitMode) == Some("none") => {
                    main_device(given, devices)
                }
                Setting::Override => return overrides(line, given, devices, &mut faults),
                _ => None,
            };
            let Some(fault) = found else {
                return Some(given.clone());
            };
            let value = fault.meant.clone();
            faults.push(fault);
            value.map(|value| with(given, value))
        })
        .collect();
    out.faults.extend(faults);
    out
}

fn with(given: &ParsedOption, value: String) -> ParsedOption {
    ParsedOption {
        value,
        ..given.clone()
    }
}

/// Returns the fault of `-ts` if the value is not a list of at most one number per device.
fn proportions(given: &ParsedOption, devices: usize) -> Option<Fault> {
    let (spelling, text) = (given.spelling.as_str(), given.value.as_str());
    let parts: Vec<&str> = text.split([',', '/']).collect();
    let takes = "a number of at least 0 per device, such as 3,1";
    if TensorSplit::parse(text).is_err() {
        return Some(Fault::stops(spelling, text, takes));
    }
    if parts.len() <= devices {
        return None;
    }
    let first = parts[..devices].join(",");
    Some(Fault {
        spelling: spelling.to_owned(),
        what: format!(
            "{spelling} {text} has {} proportions for {devices} device{}: llama.cpp drops the rest",
            parts.len(),
            if devices == 1 { "" } else { "s" }
        ),
        takes: format!("{spelling} takes {takes}"),
        meant: TensorSplit::parse(&first).is_ok().then_some(first),
    })
}

/// Returns the fault of the main device with `-sm none`.
fn main_device(given: &ParsedOption, devices: usize) -> Option<Fault> {
    let n: usize = given.value.parse().ok()?;
    let takes = format!("a number from 0 to {}", devices.saturating_sub(1));
    (n >= devices).then(|| Fault::stops(&given.spelling, &given.value, &takes))
}

fn overrides(
    line: &CommandLine,
    given: &ParsedOption,
    devices: usize,
    faults: &mut Vec<Fault>,
) -> Option<ParsedOption> {
    let right = given.value.split(',').filter(|part| {
        let found = override_fault(line, &given.spelling, part, devices);
        let is_right = found.is_none();
        faults.extend(found);
        is_right
    });
    let right: Vec<&str> = right.collect();
    (!right.is_empty()).then(|| with(given, right.join(",")))
}

fn override_fault(line: &CommandLine, spelling: &str, part: &str, devices: usize) -> Option<Fault> {
    let stops = |takes: &str| Some(Fault::stops(spelling, part, takes));
    let Some((_, name)) = part.rsplit_once('=').filter(|(p, _)| !p.is_empty()) else {
        return stops("REGEX=BUFFER, such as 'ffn_.*_exps=CPU'; a comma ends the regex");
    };
    match buffer(name) {
        None => return stops("the buffers of the host and of devices: CPU, CUDA0, CUDA1, …"),
        Some(Buffer::Device(n)) => {
            let at = position(line, name, n);
            if at.is_none_or(|at| at >= devices) {
                let takes = format!("one of the {devices} devices, or CPU");
                return stops(&takes);
            }
        }
        Some(Buffer::Host) => {}
    }
    match OverridePattern::parse_list(part) {
        Ok(_) => None,
        Err(_) => stops("a regular expression before the `=`, such as 'ffn_(up|down)=CPU'"),
    }
}
