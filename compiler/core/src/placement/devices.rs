//! The devices and their shares.

use tpc_diag::Diagnostic;

/// What runs a device's program.
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
    /// What runs its program.
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
        Diagnostic::error("TPC0400", "--devices", what).help(format!(
            "a count from 1 to {MAX_DEVICES}, or a list such as `cpu,cpu` or `cuda:0,cuda:1`"
        ))
    };
    let count = |n: usize| {
        if n == 0 || n > MAX_DEVICES {
            Err(wrong(format!("{n} devices")))
        } else {
            Ok(())
        }
    };
    if text.trim().chars().all(|c| c.is_ascii_digit()) && !text.trim().is_empty() {
        let n: usize = text
            .trim()
            .parse()
            .map_err(|_| wrong(format!("`{text}` devices")))?;
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
                    .map_err(|_| wrong(format!("`{part}` has no device number")))?,
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

/// Reads `3,1`.
///
/// # Errors
/// [`Diagnostic`] TPC0400 when an entry is no non-negative number, all are zero, or there are more than `devices`.
pub fn parse_tensor_split(text: &str, devices: usize) -> Result<Vec<f64>, Diagnostic> {
    let wrong = |what: String| {
        Diagnostic::error("TPC0400", "--tensor-split", what)
            .help("non-negative proportions, one per device, such as `3,1`; missing ones are 0")
    };
    let shares: Vec<f64> = text
        .split([',', '/'])
        .map(|p| {
            p.trim()
                .parse::<f64>()
                .ok()
                .filter(|x| x.is_finite() && *x >= 0.0)
        })
        .collect::<Option<_>>()
        .ok_or_else(|| wrong(format!("`{text}` is not a list of proportions")))?;
    if shares.len() > devices {
        return Err(wrong(format!(
            "{} proportions for {devices} devices",
            shares.len()
        )));
    }
    let sum: f64 = shares.iter().sum();
    if !sum.is_finite() {
        return Err(wrong("the sum of the proportions is too large".to_owned()));
    }
    if sum <= 0.0 {
        return Err(wrong("every proportion is 0".to_owned()));
    }
    let mut shares = shares;
    shares.resize(devices, 0.0);
    Ok(shares)
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

    #[test]
    fn proportions() {
        assert_eq!(parse_tensor_split("3,1", 3), Ok(vec![3.0, 1.0, 0.0]));
        for bad in [
            "",
            "1,x",
            "-1,2",
            "0,0",
            "1,1,1",
            "nan,1",
            "inf,1",
            "1e308,1e308",
        ] {
            assert_eq!(parse_tensor_split(bad, 2).expect_err(bad).code, "TPC0400");
        }
    }
}
