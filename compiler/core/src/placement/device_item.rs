use std::fmt;

use tpc_diag::{Diagnostic, codes};

/// Maximum devices of a plan.
pub const MAX_DEVICES: usize = 64;

/// An entry of a device list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceItem {
    /// The CPU.
    Cpu,
    /// A CUDA device, by ordinal.
    Cuda(u32),
    /// A NUMA node of the machine, by number; all nodes without a number.
    Numa(Option<u32>),
    /// A card or topology device by name, with an optional count such as `2x`.
    Name(String),
}

impl DeviceItem {
    pub(super) fn parse(part: &str) -> Result<DeviceItem, Diagnostic> {
        let part = part.trim();
        let lower = part.to_ascii_lowercase();
        if lower == "cpu" {
            return Ok(DeviceItem::Cpu);
        }
        if let Some(rest) = lower.strip_prefix("cuda") {
            let n = rest.trim_start_matches([':', ' ']);
            let n = n.parse().map_err(|_| {
                wrong(format!("`{part}` lacks the number of the CUDA device"))
                    .help("write for example `cuda:0`")
            })?;
            return Ok(DeviceItem::Cuda(n));
        }
        if let Some(rest) = lower.strip_prefix("numa") {
            let n = rest.trim_start_matches([':', ' ']);
            match n.parse() {
                Ok(n) => return Ok(DeviceItem::Numa(Some(n))),
                Err(_) if rest.is_empty() => return Ok(DeviceItem::Numa(None)),
                Err(_) if rest.starts_with(':') => {
                    let message = format!("`{part}` lacks the number of the NUMA node");
                    return Err(
                        wrong(message).help("write for example `numa:0`, or `numa` for all nodes")
                    );
                }
                // A name of a topology file.
                Err(_) => {}
            }
        }
        if part.is_empty() {
            return Err(wrong("the list has an empty entry".to_owned()).help(cure()));
        }
        Ok(DeviceItem::Name(part.to_owned()))
    }
}

pub(super) fn wrong(message: String) -> Diagnostic {
    Diagnostic::new(&codes::COMMAND_LINE, "--devices", message)
}

pub(super) fn cure() -> String {
    format!(
        "give a count from 1 to {MAX_DEVICES}, cards such as `2x3090` or `4090,3090` (`tpc devices` lists them), a list \
         such as `cpu,cpu` or `cuda:0,cuda:1`, or several machines such as `2*8xH100-SXM@ib-ndr`"
    )
}

impl fmt::Display for DeviceItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceItem::Cpu => f.write_str("cpu"),
            DeviceItem::Cuda(n) => write!(f, "cuda:{n}"),
            DeviceItem::Numa(Some(n)) => write!(f, "numa:{n}"),
            DeviceItem::Numa(None) => f.write_str("numa"),
            DeviceItem::Name(name) => f.write_str(name),
        }
    }
}

/// Splits the count from a name: `2x3090`, `2 x RTX 3090`, `3090 x2`, `3090x2`, `2 H100`.
pub(super) fn split_count(text: &str) -> Option<(usize, &str)> {
    let number = |digits: &str| digits.trim().parse::<usize>().ok();
    for times in ['x', 'X', '*', '×'] {
        // In `3090x2`, the first number is not a count.
        let is_name = |name: &str| {
            let counts = number(name).is_some_and(|n| n <= MAX_DEVICES);
            name.ends_with(' ') || (name.ends_with(|c: char| c.is_ascii_digit()) && !counts)
        };
        if let Some((name, n)) = text.rsplit_once(times)
            && let Some(n) = number(n).filter(|n| *n <= MAX_DEVICES)
            && is_name(name)
        {
            return Some((n, name.trim()));
        }
        if let Some((n, name)) = text.split_once(times)
            && let Some(n) = number(n)
            && !name.trim().is_empty()
        {
            return Some((n, name.trim()));
        }
    }
    let (n, name) = text.split_once(' ')?;
    let n = number(n).filter(|n| *n <= MAX_DEVICES)?;
    Some((n, name.trim()))
}
