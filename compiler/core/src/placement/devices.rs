//! `--devices`: the devices that a model is divided among.

use tpc_diag::{Diagnostic, codes};

/// The executor of a device's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Not said: a device of the topology's profile.
    Generic,
    /// The CPU.
    Cpu,
    /// A CUDA device, by ordinal.
    Cuda(u32),
}

/// One logical device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its name in reports.
    pub name: String,
    /// The executor of its program.
    pub kind: DeviceKind,
}

/// The most devices that a plan may be for.
pub const MAX_DEVICES: usize = 64;

/// Reads `2`, `cpu,cpu`, `cuda:0,cuda:1`.
///
/// # Errors
/// [`Diagnostic`] TPC0400 for anything else, and for more than [`MAX_DEVICES`].
pub fn parse_devices(text: &str) -> Result<Vec<DeviceSpec>, Diagnostic> {
    let wrong = |what: String| {
        Diagnostic::new(&codes::COMMAND_LINE, "--devices", what).help(format!(
            "give a count from 1 to {MAX_DEVICES}, or a list such as `cpu,cpu` or `cuda:0,cuda:1`"
        ))
    };
    let count = |n: usize| {
        if n == 0 || n > MAX_DEVICES {
            Err(wrong(format!("a plan cannot be for {n} devices")))
        } else {
            Ok(())
        }
    };
    if text.trim().chars().all(|c| c.is_ascii_digit()) && !text.trim().is_empty() {
        let n: usize = text
            .trim()
            .parse()
            .map_err(|_| wrong(format!("`{text}` is not a number of devices")))?;
        count(n)?;
        return Ok((0..n)
            .map(|i| DeviceSpec {
                name: format!("dev{i}"),
                kind: DeviceKind::Generic,
            })
            .collect());
    }
    let mut out = Vec::new();
    for (i, part) in text.split(',').enumerate() {
        let part = part.trim();
        let kind = match part.split_once(':') {
            None if part == "cpu" => DeviceKind::Cpu,
            Some(("cuda", n)) => DeviceKind::Cuda(
                n.parse()
                    .map_err(|_| wrong(format!("`{part}` lacks the number of the CUDA device")))?,
            ),
            _ => return Err(wrong(format!("`{part}` is not a device"))),
        };
        // Logical devices may share a physical one, so names carry the position.
        out.push(DeviceSpec {
            name: format!("{part}#{i}"),
            kind,
        });
    }
    count(out.len())?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_lists() {
        assert_eq!(parse_devices("3").map(|d| d.len()), Ok(3));
        assert_eq!(
            parse_devices("cuda:0,cuda:0").map(|d| d[1].kind),
            Ok(DeviceKind::Cuda(0))
        );
        for bad in [
            "0",
            "65",
            "",
            "gpu",
            "cuda:x",
            "cpu,,cpu",
            "99999999999999999999",
        ] {
            assert_eq!(parse_devices(bad).expect_err(bad).code, "TPC0400");
        }
    }
}
