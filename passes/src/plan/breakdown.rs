use std::ops::Add;

/// The parts of a decoded token's time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// Products: reading the weights.
    pub weights_us: f64,
    /// Attention and recurrent states.
    pub attention_us: f64,
    /// Other ops on the devices.
    pub other_us: f64,
    /// Fixed times of kernels and tokens.
    pub launches_us: f64,
    /// Collectives, and copies between devices.
    pub collectives_us: f64,
    /// Host work, and copies to and from the host.
    pub host_us: f64,
}

impl Breakdown {
    /// Returns the sum.
    pub fn total(&self) -> f64 {
        self.weights_us
            + self.attention_us
            + self.other_us
            + self.launches_us
            + self.collectives_us
            + self.host_us
    }
}

impl Add for Breakdown {
    type Output = Breakdown;

    fn add(self, b: Breakdown) -> Breakdown {
        Breakdown {
            weights_us: self.weights_us + b.weights_us,
            attention_us: self.attention_us + b.attention_us,
            other_us: self.other_us + b.other_us,
            launches_us: self.launches_us + b.launches_us,
            collectives_us: self.collectives_us + b.collectives_us,
            host_us: self.host_us + b.host_us,
        }
    }
}
