use tpc_ir::random::Xorshift64;

pub(crate) struct Random(Xorshift64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut out = Random(Xorshift64::new(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        ));
        for _ in 0..8 {
            out.next();
        }
        out
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64() >> 11
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.below(all.len())).cloned()
    }
}
