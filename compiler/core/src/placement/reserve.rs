use std::fmt;

use tpc_diag::{Diagnostic, codes};

use crate::units::{Unit, quantity};

/// Bytes reserved for the driver's context and the engine's buffers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reserve {
    /// One reserve for every device.
    Each(f64),
    /// One reserve per device.
    List(Vec<f64>),
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = match self {
            Reserve::Each(one) => std::slice::from_ref(one),
            Reserve::List(list) => list,
        };
        for (i, bytes) in list.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            let mib = bytes / 1_048_576.0;
            match (mib, mib / 1024.0) {
                _ if *bytes == 0.0 => f.write_str("0")?,
                (_, gib) if gib.fract() == 0.0 => write!(f, "{gib}GiB")?,
                (mib, _) if mib.fract() == 0.0 => write!(f, "{mib}MiB")?,
                _ => write!(f, "{bytes}B")?,
            }
        }
        Ok(())
    }
}

/// Parses the host's memory, such as `64GiB`.
///
/// # Errors
/// Returns TPC0400 for any other text and for zero bytes.
pub fn parse_host_memory(text: &str) -> Result<f64, Diagnostic> {
    let refused = |message: String| {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--host-memory", message);
        d.help("write bytes with a unit, such as `--host-memory 64GiB`")
    };
    match quantity(text.trim(), Unit::Bytes) {
        Ok(bytes) if bytes > 0.0 => Ok(bytes),
        Ok(_) => Err(refused("the host's memory is 0 bytes".to_owned())),
        Err(e) => Err(refused(e.message)),
    }
}

fn wrong(message: String) -> Diagnostic {
    Diagnostic::new(&codes::COMMAND_LINE, "--reserve", message)
}

impl Reserve {
    /// Parses `1GiB`, `512 MiB`, `0`, or a list such as `2GiB,1GiB`.
    ///
    /// # Errors
    /// Returns TPC0400 for any other text.
    pub fn parse(text: &str) -> Result<Reserve, Diagnostic> {
        let mut bytes = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let n = quantity(part, Unit::Bytes);
            bytes.push(n.map_err(|e| {
                wrong(e.message).help("write bytes with a unit, such as `--reserve 1GiB` or `512MiB`, a list of them, or 0")
            })?);
        }
        Ok(match bytes.as_slice() {
            [one] => Reserve::Each(*one),
            _ => Reserve::List(bytes),
        })
    }

    /// Returns the reserve of each device in bytes.
    ///
    /// # Errors
    /// Returns TPC0400 for a list of another length.
    pub(super) fn among(&self, devices: usize) -> Result<Vec<f64>, Diagnostic> {
        match self {
            Reserve::Each(bytes) => Ok(vec![*bytes; devices]),
            Reserve::List(list) if list.len() == devices => Ok(list.clone()),
            Reserve::List(list) => {
                let message = format!("the list has {} reserves for {devices} devices", list.len());
                Err(wrong(message).help("give one reserve for all devices, or one per device"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    #[test]
    fn memories_of_hosts() {
        assert_eq!(parse_host_memory(" 64GiB"), Ok(64.0 * GIB));
        for bad in ["", "0", "64", "-1GiB", "lots"] {
            let found = parse_host_memory(bad).expect_err(bad);
            assert_eq!(
                (found.code.id, found.help.is_some()),
                ("TPC0400", true),
                "{bad}"
            );
        }
    }

    #[test]
    fn reserves() {
        assert_eq!(Reserve::parse("1GiB"), Ok(Reserve::Each(GIB)));
        assert_eq!(Reserve::parse("0"), Ok(Reserve::Each(0.0)));
        assert_eq!(
            Reserve::parse("2GiB, 0"),
            Ok(Reserve::List(vec![2.0 * GIB, 0.0]))
        );
        assert_eq!(Reserve::parse("1073741824"), Ok(Reserve::Each(GIB)));
        for text in ["1GiB", "0", "512MiB", "2GiB,0", "1000000001B"] {
            assert_eq!(Reserve::parse(text).expect(text).to_string(), text);
        }
        // llama.cpp counts MiB. Plain numbers count bytes here, so small ones are rejected as likely mistakes.
        for bad in ["1024", "", "1GiB,", "-1GiB", "1 GB/s", "lots", "inf"] {
            let found = Reserve::parse(bad).expect_err(bad);
            assert_eq!(
                (found.code.id, found.help.is_some()),
                ("TPC0400", true),
                "{bad}"
            );
        }
        assert!(Reserve::List(vec![1.0; 3]).among(2).is_err());
        assert_eq!(Reserve::Each(1.0).among(2), Ok(vec![1.0; 2]));
    }
}
