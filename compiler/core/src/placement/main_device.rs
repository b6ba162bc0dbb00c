use super::Placement;
use tpc_diag::{Diagnostic, codes};

impl Placement {
    /// Sets the device of an unsplit model.
    ///
    /// # Errors
    /// Returns TPC0400 if the device does not exist.
    pub fn with_main_device(mut self, main: u64) -> Result<Placement, Diagnostic> {
        let n = self.devices.len();
        self.main_device = usize::try_from(main).ok().filter(|&d| d < n);
        if self.main_device.is_some() {
            return Ok(self);
        }
        let message = format!("device {main} does not exist: the plan has {n} devices");
        let help = format!("give a number from 0 to {}", n.saturating_sub(1));
        Err(Diagnostic::new(&codes::COMMAND_LINE, "--main-gpu", message).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_devices;
    use super::*;

    #[test]
    fn what_is_not_there_is_refused() {
        let placement = || Placement::on(parse_devices("2").expect("a count"));
        let main = placement().with_main_device(1).expect("there are two");
        assert_eq!(main.main_device, Some(1));
        let refused = placement().with_main_device(2).expect_err("there are two");
        assert_eq!(refused.code.id, "TPC0400");
    }
}
