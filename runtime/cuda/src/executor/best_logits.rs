//! Reads the largest logits that devices find.

use tpc_runtime::{ExecError, Outputs};

use super::{CudaExecutor, error, of_unknown_launch};
use crate::driver::{Driver, Endpoint};
use crate::kernels::{BestMemory, BestRow};

/// Orders larger logits first, then smaller tokens.
fn order(a: &(u32, f32), b: &(u32, f32)) -> std::cmp::Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

impl<D: Driver> CudaExecutor<D> {
    /// Returns the number of largest logits to find instead of copying the output; `None` to copy the output.
    pub(super) fn best_wanted(
        &self,
        (shape, phase): (usize, usize),
        outputs: &Outputs,
    ) -> Option<usize> {
        let finds = self.graphs[shape][phase].output.is_some() && !outputs.are_unread();
        let count = outputs.wanted().filter(|_| finds);
        count.filter(|count| (1..=BestMemory::MAX).contains(count))
    }

    /// Returns the output whose largest elements devices find.
    pub(super) fn best_output(&self) -> Option<usize> {
        self.launches.best_output.as_ref().map(|of| of.output)
    }

    /// Tells the devices how many logits to find.
    pub(super) fn ask_best(&mut self, count: usize) -> Result<(), ExecError> {
        let parts = self.launches.best_output.iter().flat_map(|of| &of.parts);
        for to in (0..parts.count()).filter_map(|part| self.frames.best(part)) {
            let written = self.driver.get_mut().write(to, &BestMemory::header(count));
            written.map_err(error)?;
        }
        Ok(())
    }

    /// Writes the largest logits of each row to the outputs. Returns false if a row has NaN or no finite largest logit.
    pub(super) fn read_best(
        &mut self,
        shape: usize,
        count: usize,
        outputs: &mut Outputs,
    ) -> Result<bool, ExecError> {
        let Some(output) = &self.launches.best_output else {
            return Ok(false);
        };
        let rows = output.parts.iter().map(|p| self.frame.view(p.value));
        let rows = rows.map(|view| view.sizes()[1]).max().unwrap_or(0);
        let best = outputs.best_mut();
        let (mut found, mut bytes) = (BestRow::default(), Vec::new());
        for row in 0..rows {
            found.best.clear();
            for (part, of) in output.parts.iter().enumerate() {
                let (start, n) = of.memory[shape].row(row, count);
                bytes.resize(n, 0);
                if let Some(at) = self.frames.best(part) {
                    let from = Endpoint {
                        address: at.address + start as u64,
                        ..at
                    };
                    let read = self.driver.get_mut().read(from, &mut bytes);
                    read.map_err(error)?;
                    of.memory[shape].read(&bytes, &mut found);
                }
            }
            let BestRow {
                unusable,
                best: all,
            } = &mut found;
            if *unusable || !all.iter().any(|(_, logit)| *logit > f32::NEG_INFINITY) {
                outputs.drop_best();
                return Ok(false);
            }
            if count < all.len() {
                all.select_nth_unstable_by(count - 1, order);
                all.truncate(count);
            }
            best.push_row(all.drain(..));
        }
        Ok(true)
    }

    /// Copies the output to the host after a phase that found its largest elements.
    pub(super) fn copy_output(&mut self, shape: usize, phase: usize) -> Result<(), ExecError> {
        let driver = self.driver.get_mut();
        if let Some(output) = self.graphs[shape][phase].output {
            let ran = driver.launch(output.all);
            let ran = ran.and_then(|()| driver.synchronize());
            ran.map_err(of_unknown_launch)?;
        }
        Ok(())
    }
}
