//! Reads the largest logits that devices find.

use tpc_runtime::{ExecError, Outputs};

use super::{CudaExecutor, error, of_unknown_launch};
use crate::driver::{Driver, Endpoint};
use crate::kernels::{BestMemory, BestRecord};

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

    /// Writes the largest logits of each row to the outputs. Returns false if a row has no usable largest logit.
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
        let mut parts = Vec::with_capacity(output.parts.len());
        for (part, of) in output.parts.iter().enumerate() {
            let Some(from) = self.frames.best(part) else {
                return Ok(false);
            };
            let (start, bytes) = of.memory[shape].row(0);
            let mut records = vec![0; rows * bytes];
            let from = Endpoint {
                address: from.address + start as u64,
                ..from
            };
            let read = self.driver.get_mut().read(from, &mut records);
            read.map_err(error)?;
            parts.push((records, bytes));
        }
        let best = outputs.best_mut();
        let mut found: Vec<(u32, f32)> = Vec::new();
        for row in 0..rows {
            found.clear();
            let mut usable = true;
            for (records, bytes) in &parts {
                for record in BestRecord::read(&records[row * bytes..][..*bytes], count) {
                    usable &= !record.unusable;
                    found.extend(record.best);
                }
            }
            usable &= found.iter().any(|(_, logit)| *logit > f32::NEG_INFINITY);
            if !usable {
                outputs.drop_best();
                return Ok(false);
            }
            if count < found.len() {
                found.select_nth_unstable_by(count - 1, order);
                found.truncate(count);
            }
            best.push_row(found.drain(..));
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
