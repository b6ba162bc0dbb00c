//! A placement on one of its devices: what `--main-gpu` names for `-sm none`.

use super::{Placement, Target};
use tpc_diag::{Diagnostic, codes};

impl Placement {
    /// The placement on its device of this number alone. Proportions have no effect on one device.
    ///
    /// # Errors
    /// [`Diagnostic`] TPC0400 where there is no such device, or where an override places tensors on another.
    pub fn alone_on(mut self, main: u64) -> Result<Placement, Diagnostic> {
        let wrong = |message: String, help: String| {
            Err(Diagnostic::new(&codes::COMMAND_LINE, "--main-gpu", message).help(help))
        };
        let n = self.devices.len();
        let Some(main) = usize::try_from(main).ok().filter(|&d| d < n) else {
            let message = format!("there is no device {main}: there are {n}");
            return wrong(
                message,
                format!("a number from 0 to {}", n.saturating_sub(1)),
            );
        };
        for o in &mut self.overrides {
            if let Target::Device(d) = &mut o.target {
                if *d != main {
                    let message = format!(
                        "`{}` is placed on device {d}, and -sm none uses device {main} alone",
                        o.pattern
                    );
                    return wrong(message, format!("-ot {}=dev{main}, or CPU", o.pattern));
                }
                *d = 0;
            }
        }
        self.topology.devices = vec![self.topology.device(main).clone()];
        self.devices = vec![self.devices.swap_remove(main)];
        self.tensor_split = self.tensor_split.map(|_| vec![1.0]);
        self.main_device = Some(main);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceList, Machine, parse_overrides};
    use super::*;

    fn placement() -> Placement {
        let machine = Machine::of(&DeviceList::parse("4090,3090").expect("a list")).expect("cards");
        let mut out = Placement::on(machine.devices);
        out.topology = machine.topology;
        out.tensor_split = Some(vec![3.0, 1.0]);
        out
    }

    #[test]
    fn one_device_is_left() {
        let mut p = placement();
        let slow = p.topology.device(1).bandwidth;
        p.overrides = parse_overrides(&["a=dev1,b=CPU".to_owned()], &p.devices).expect("overrides");
        let p = p.alone_on(1).expect("there are two");
        assert_eq!((p.devices.len(), p.devices[0].name.as_str()), (1, "3090#1"));
        assert_eq!(p.topology.device(0).bandwidth.to_bits(), slow.to_bits());
        assert_eq!(p.overrides[0].target, Target::Device(0));
        assert_eq!((p.tensor_split, p.main_device), (Some(vec![1.0]), Some(1)));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let refused = |p: Placement, n| p.alone_on(n).map(|_| ()).expect_err("refused").code.id;
        assert_eq!(refused(placement(), 2), "TPC0400");
        let mut p = placement();
        p.overrides = parse_overrides(&["a=dev1".to_owned()], &p.devices).expect("overrides");
        assert_eq!(refused(p, 0), "TPC0400");
    }
}
