//! Caches divided by cells on emulated devices: long texts agree with the reference executor's.

use tpc_core::placement::{CacheSplit, Placement};
use tpc_ir::DType;
use tpc_runtime::{Options, ProgramInterpreter, Session};
use tpc_tests::{Sweep, goldens};

use super::{ALONE, Subject, checked, devices, nmse};
use crate::support::{FileWeights, name, placement, whole};

/// Kinds: MLA, sinks with windows, ALiBi.
const SAMPLE: [&str; 3] = ["deepseek2", "gpt-oss", "bloom"];
/// Tokens in two blocks of cells and more.
const LONG: usize = 140;

/// The maximum NMSE between a token alone and in a batch, with caches of Q8_0.
const CODES: f64 = 1e-4;

#[test]
fn long_texts_agree_with_the_reference() {
    let tokens: Vec<u32> = (0..LONG as u32).map(|i| (i * 37 + i * i) % 100).collect();
    let mut tested = 0;
    for (i, path) in goldens().iter().enumerate() {
        let name = name(path);
        let sampled = SAMPLE.iter().any(|s| name.starts_with(s));
        if !sampled && Sweep::asked() != Sweep::Full {
            continue;
        }
        let n = 2 + i % 2;
        let cells = Placement {
            cache_split: CacheSplit::Cells,
            ..placement(n, [DType::F16, DType::Q8_0][i / 2 % 2])
        };
        let Some(subject) = Subject::new(path, &cells, &tokens) else {
            continue;
        };
        let driver = match i % 2 {
            0 => devices(n, i as u64),
            _ => checked(n, i as u64),
        };
        let Some(driver) = driver else { return };
        let (found, alone) = subject
            .logits(&name, driver)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        // Products of prompts round differently, so some codes of Q8_0 differ.
        let most = if i / 2 % 2 == 0 { ALONE } else { CODES };
        assert!(alone <= most, "{name}: NMSE {alone:e} of other batches");
        let weights = FileWeights(&subject.file);
        let reference = ProgramInterpreter::new(&subject.program, &weights, Options::default(), 1);
        let executor = reference.unwrap_or_else(|e| panic!("{name}: {e}"));
        let session = Session::with_executor(Box::new(executor), subject.config);
        let want = whole(
            &mut session.unwrap_or_else(|e| panic!("{name}: {e}")),
            &tokens,
        );
        let error = nmse(&name, LONG, &want, &found);
        assert!(error <= 1e-4, "{name}: NMSE {error:e} of the reference");
        tested += 1;
    }
    assert!(tested > 0);
}
