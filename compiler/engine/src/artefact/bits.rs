use tpc_artefact::Artefact;
use tpc_core::report::BitsReport;
use tpc_cpu::CpuTarget;
use tpc_cuda::CudaTarget;
use tpc_ir::Graph;
use tpc_ir::program::{Company, Target};

use super::fit::CUDA;

/// Returns the report of an artefact's program on its executor.
pub fn bits_of(artefact: &Artefact) -> BitsReport {
    let manifest = artefact.manifest();
    report(&manifest.target.executor, &artefact.program().graph)
}

/// Returns the conditions under which a program's results keep their bits on an executor, in one line.
pub fn promise(executor: &str, programs: &Graph) -> String {
    report(executor, programs).brief()
}

/// Returns the properties of the results of an artefact's executor.
pub fn company_of(artefact: &Artefact) -> Company {
    company(&artefact.manifest().target.executor)
}

fn report(executor: &str, programs: &Graph) -> BitsReport {
    BitsReport::of_programs(programs, company(executor))
}

fn company(executor: &str) -> Company {
    match executor {
        CUDA => CudaTarget.company(),
        _ => CpuTarget.company(),
    }
}
