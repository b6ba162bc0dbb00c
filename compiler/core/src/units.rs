//! Quantities with units: `24 GB`, `24 GiB`, `24e9`, `936 GB/s`, `71 TFLOP/s`.

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Operations per second.
    OpsPerSecond,
}

impl Unit {
    const fn plural(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes per second",
            Unit::OpsPerSecond => "operations per second",
        }
    }

    /// Suggests texts with a unit for a small number `n`.
    fn likely_unit(self, n: &str) -> String {
        match self {
            Unit::Bytes => format!("\"{n} GB\" ({n}e9 bytes) or \"{n} GiB\""),
            Unit::BytesPerSecond => format!("\"{n} GB/s\", or {n}e9"),
            Unit::OpsPerSecond => format!("\"{n} TFLOP/s\", or {n}e12"),
        }
    }
}

/// The reason why a text is not a quantity, and a correct text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuantity {
    /// The mistake.
    pub message: String,
    /// The correct text.
    pub cure: String,
}

/// The minimum number without a unit; smaller ones likely lack their unit.
const FORGOTTEN: f64 = 1e6;

/// Reads a quantity. `GB` is 10⁹ bytes, `GiB` and `G` are 2³⁰; case and blanks do not matter. Without a unit it counts
/// bytes (per second) or operations.
///
/// # Errors
/// Returns an error for other texts, negative numbers, and implausibly small numbers without a unit.
pub fn quantity(text: &str, unit: Unit) -> Result<f64, NoQuantity> {
    let text = text.trim();
    let (number, suffix) = split(text);
    let wrong = |message: String| {
        let cure = match unit {
            Unit::Bytes => "write \"24 GB\" (10⁹ bytes each), \"24 GiB\" (2³⁰), or the bytes: 24e9",
            Unit::BytesPerSecond => {
                "write \"936 GB/s\", \"200 Gbit/s\", or the bytes per second: 936e9"
            }
            Unit::OpsPerSecond => "write \"71 TFLOP/s\", or the operations per second: 71e12",
        };
        NoQuantity {
            message,
            cure: cure.to_owned(),
        }
    };
    let Some(n) = number.replace('_', "").parse::<f64>().ok() else {
        return Err(wrong(format!(
            "`{text}` is not a number of {}",
            unit.plural()
        )));
    };
    if !n.is_finite() || n < 0.0 {
        return Err(wrong(format!(
            "`{text}` is not a possible number of {}",
            unit.plural()
        )));
    }
    if suffix.is_empty() {
        if n > 0.0 && n < FORGOTTEN {
            return Err(NoQuantity {
                message: format!("{number} is {number} {}", unit.plural()),
                cure: format!("write {}", unit.likely_unit(number)),
            });
        }
        return Ok(n);
    }
    match factor(suffix, unit) {
        Some(f) => Ok(n * f),
        None => Err(wrong(format!(
            "`{suffix}` is not a unit of {}",
            unit.plural()
        ))),
    }
}

/// Splits a text into its leading number and the rest.
fn split(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(&c) = bytes.get(end) {
        // The `e` of an exponent precedes a digit or a sign; the prefix exa is not supported.
        let exponent = matches!(c, b'e' | b'E')
            && matches!(bytes.get(end + 1), Some(b'0'..=b'9' | b'+' | b'-'));
        let sign = matches!(c, b'+' | b'-') && (end == 0 || matches!(bytes[end - 1], b'e' | b'E'));
        if !(c.is_ascii_digit() || matches!(c, b'.' | b'_') || exponent || sign) {
            break;
        }
        end += 1;
    }
    (&text[..end], text[end..].trim())
}

fn factor(suffix: &str, unit: Unit) -> Option<f64> {
    let lower: String = suffix
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_lowercase();
    let rest = match unit {
        Unit::Bytes => lower.as_str(),
        Unit::BytesPerSecond => {
            let rest = lower
                .strip_suffix("/s")
                .or_else(|| lower.strip_suffix("ps"))?;
            if let Some(prefix) = rest.strip_suffix("bit") {
                return Some(prefix_factor(prefix)? / 8.0);
            }
            rest
        }
        Unit::OpsPerSecond => {
            let rest = lower.strip_suffix("/s").unwrap_or(&lower);
            let rest = ["flops", "flop", "ops", "op"]
                .iter()
                .find_map(|word| rest.strip_suffix(word))?;
            return prefix_factor(rest);
        }
    };
    if let Some(prefix) = rest
        .strip_suffix("bytes")
        .or_else(|| rest.strip_suffix("byte"))
    {
        return prefix_factor(prefix);
    }
    match rest.strip_suffix('b') {
        Some(prefix) => prefix_factor(prefix),
        // A prefix alone counts in powers of 1024, as for `dd` and `ls`.
        None if rest.ends_with('i') => prefix_factor(rest),
        None => prefix_factor(&format!("{rest}i")),
    }
}

fn prefix_factor(prefix: &str) -> Option<f64> {
    let (base, prefix) = match prefix.strip_suffix('i') {
        Some(prefix) => (1024.0_f64, prefix),
        None => (1000.0, prefix),
    };
    let power = match prefix {
        "" if base < 1024.0 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(base.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_with_and_without_units() {
        for (text, unit, expected) in [
            ("24e9", Unit::Bytes, 24e9),
            ("24 GB", Unit::Bytes, 24e9),
            ("24gb", Unit::Bytes, 24e9),
            ("24 GiB", Unit::Bytes, 24.0 * 1073741824.0),
            ("24G", Unit::Bytes, 24.0 * 1073741824.0),
            ("1.5GiB", Unit::Bytes, 1610612736.0),
            ("512 MiB", Unit::Bytes, 536870912.0),
            ("24576 MiB", Unit::Bytes, 25769803776.0),
            ("12 B", Unit::Bytes, 12.0),
            ("1_000_000_000", Unit::Bytes, 1e9),
            ("+1e+10", Unit::Bytes, 1e10),
            ("0", Unit::Bytes, 0.0),
            ("936 GB/s", Unit::BytesPerSecond, 936e9),
            ("3.35 TB/s", Unit::BytesPerSecond, 3.35e12),
            ("200 Gbit/s", Unit::BytesPerSecond, 25e9),
            ("1e18", Unit::BytesPerSecond, 1e18),
            ("71 TFLOP/s", Unit::OpsPerSecond, 71e12),
            ("71 TFLOPS", Unit::OpsPerSecond, 71e12),
            ("284 TOPS", Unit::OpsPerSecond, 284e12),
            ("1 petaflops", Unit::OpsPerSecond, f64::NAN),
        ] {
            match quantity(text, unit) {
                Ok(found) => assert!(
                    (found - expected).abs() <= 1e-9 * expected,
                    "{text}: {found}"
                ),
                Err(e) => assert!(expected.is_nan(), "{text}: {e:?}"),
            }
        }
    }

    #[test]
    fn a_forgotten_unit_is_told_with_what_to_write() {
        let found = quantity("24", Unit::Bytes).expect_err("24 bytes");
        assert_eq!(found.message, "24 is 24 bytes");
        assert_eq!(found.cure, "write \"24 GB\" (24e9 bytes) or \"24 GiB\"");
        let found = quantity("936", Unit::BytesPerSecond).expect_err("936 bytes per second");
        assert_eq!(found.cure, "write \"936 GB/s\", or 936e9");
        let found = quantity("71", Unit::OpsPerSecond).expect_err("71 operations");
        assert_eq!(found.cure, "write \"71 TFLOP/s\", or 71e12");
    }

    #[test]
    fn what_is_no_quantity() {
        for bad in [
            "", "GB", "lots", "24 GX", "-1", "-1e9", "inf", "NaN", "1e999", "24 GB/s", "1e",
            "24 EB", "24 i", "٢٤ GB", "24 iB", "1..2", "e9", "0x10", "🦀",
        ] {
            let found = quantity(bad, Unit::Bytes).expect_err(bad);
            assert!(found.cure.contains("24 GiB"), "{bad}: {found:?}");
        }
        for bad in ["936 GB", "936 G", "1 /s", "1 ps"] {
            assert!(quantity(bad, Unit::BytesPerSecond).is_err(), "{bad}");
        }
    }
}
