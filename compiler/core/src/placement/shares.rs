use tpc_diag::{Diagnostic, codes};

/// Proportions: at least one, finite, not negative, not all zero.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSplit(Vec<f64>);

fn wrong(message: String) -> Diagnostic {
    Diagnostic::new(&codes::COMMAND_LINE, "--tensor-split", message)
        .help("give non-negative proportions, one per device, such as `3,1`; missing ones are 0")
}

impl TensorSplit {
    /// Parses `3,1` or `3/1`.
    ///
    /// # Errors
    /// Returns TPC0400 for a negative or invalid entry, or if all are zero.
    pub fn parse(text: &str) -> Result<TensorSplit, Diagnostic> {
        let share = |p: &str| {
            let share = p.trim().parse::<f64>().ok();
            share.filter(|x| x.is_finite() && *x >= 0.0)
        };
        let shares: Option<Vec<f64>> = text.split([',', '/']).map(share).collect();
        let Some(shares) = shares else {
            return Err(wrong(format!("`{text}` is not a list of proportions")));
        };
        let sum: f64 = shares.iter().sum();
        if !sum.is_finite() {
            return Err(wrong("the sum of the proportions is too large".to_owned()));
        }
        if sum <= 0.0 {
            return Err(wrong("every proportion is 0".to_owned()));
        }
        Ok(TensorSplit(shares))
    }

    /// Returns a weight per device. Devices without a proportion get 0.
    ///
    /// # Errors
    /// Returns TPC0400 for more proportions than devices.
    pub fn among(&self, devices: usize) -> Result<Vec<f64>, Diagnostic> {
        if self.0.len() > devices {
            let n = self.0.len();
            return Err(wrong(format!(
                "the list has {n} proportions for {devices} devices"
            )));
        }
        let mut shares = self.0.clone();
        shares.resize(devices, 0.0);
        Ok(shares)
    }
}

/// Parses `3,1` as weights of `devices` devices.
///
/// # Errors
/// Returns the errors of [`TensorSplit::parse`] and [`TensorSplit::among`].
pub fn parse_tensor_split(text: &str, devices: usize) -> Result<Vec<f64>, Diagnostic> {
    TensorSplit::parse(text)?.among(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

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
