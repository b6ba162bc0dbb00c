use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::loops::{Loop, loops};

/// NVIDIA's disassembler of cubins, `nvdisasm`.
#[derive(Clone, Debug)]
pub struct Disassembler {
    path: PathBuf,
}

/// The instructions of a kernel, with labels such as `.L_x_1:`.
pub type Instructions = Vec<String>;

impl Disassembler {
    /// Finds the program in `TPC_NVDISASM`, `TPC_NVRTC`, `CUDA_PATH`, `CUDA_HOME`, `/usr/local/cuda` or `PATH`. The
    /// variables name a CUDA installation, or a folder with the unpacked wheel `nvidia-cuda-nvdisasm`.
    pub fn find() -> Option<Disassembler> {
        let mut folders = Vec::new();
        for root in ["TPC_NVDISASM", "TPC_NVRTC", "CUDA_PATH", "CUDA_HOME"] {
            let Some(root) = std::env::var_os(root).map(PathBuf::from) else {
                continue;
            };
            let below = ["", "bin", "nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin"];
            folders.extend(below.map(|b| root.join(b)));
        }
        folders.push("/usr/local/cuda/bin".into());
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&path));
        let mut files = folders.into_iter().map(|f| f.join("nvdisasm"));
        let path = files.find(|f| f.is_file())?;
        Some(Disassembler { path })
    }

    /// Returns the instructions of each kernel of a cubin; `None` if the program fails.
    pub fn kernels(&self, cubin: &[u8]) -> Option<BTreeMap<String, Instructions>> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tpc-{}-{number}.cubin", std::process::id());
        let file = std::env::temp_dir().join(name);
        // A new file: in a shared folder, the name may be a link of another user.
        let mut new = File::create_new(&file).ok()?;
        let written = new.write_all(cubin).ok();
        let done = written.and_then(|()| self.run(&file));
        let _ = std::fs::remove_file(&file);
        Some(parse(&done?))
    }

    fn run(&self, file: &Path) -> Option<String> {
        let done = Command::new(&self.path).arg("-c").arg(file).output().ok()?;
        String::from_utf8(done.stdout)
            .ok()
            .filter(|t| !t.is_empty())
    }
}

fn parse(text: &str) -> BTreeMap<String, Instructions> {
    let mut out: BTreeMap<String, Instructions> = BTreeMap::new();
    let mut kernel = String::new();
    for line in text.lines().map(str::trim) {
        let section = line.strip_prefix(".text.");
        if let Some(name) = section.and_then(|l| l.strip_suffix(':')) {
            name.clone_into(&mut kernel);
        }
        let code = out.entry(kernel.clone()).or_default();
        if line.starts_with(".L") && line.ends_with(':') {
            code.push(line.to_owned());
        } else if let Some((_, rest)) = line.split_once("*/") {
            code.extend(rest.split_once(';').map(|(i, _)| i.trim().to_owned()));
        }
    }
    out
}

/// Returns the instructions per weight of a product for one token: in its shortest loop that multiplies codes. `None` for
/// other kernels.
pub fn instructions_per_weight(code: &[String]) -> Option<f64> {
    // Two instructions multiply four weights with both terms.
    shortest_loop(code, "IDP").map(|l| f64::from(l.each) / f64::from(2 * l.wanted))
}

/// Returns the instructions per tensor instruction, in the shortest loop with f16 tensor instructions. `None` for other
/// kernels.
pub fn instructions_per_mma(code: &[String]) -> Option<f64> {
    shortest_loop(code, "HMMA").map(|l| f64::from(l.each) / f64::from(l.wanted))
}

fn shortest_loop(code: &[String], wanted: &str) -> Option<Loop> {
    let all = loops(code, |line| u32::from(line.contains(wanted)));
    all.into_iter()
        .filter(|l| l.wanted > 0)
        .min_by_key(|l| l.each)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
\t.section\t.text.k,\"ax\",@progbits
.text.k:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
        /*0020*/                   IDP.4A.S8.S8 R8, R4, R5, R8 ;
        /*0030*/                   IDP.4A.S8.S8 R9, R4, R6, R9 ;
        /*0040*/               @P0 BRA `(.L_x_0) ;
        /*0050*/                   EXIT ;
.text.other:
        /*0000*/                   EXIT ;
";

    #[test]
    fn loops_that_multiply_are_counted() {
        let kernels = parse(TEXT);
        assert_eq!(kernels["k"].len(), 7);
        // Four instructions and two products: four weights.
        assert_eq!(instructions_per_weight(&kernels["k"]), Some(1.0));
        assert_eq!(instructions_per_weight(&kernels["other"]), None);
        assert_eq!(instructions_per_mma(&kernels["k"]), None);
        let tensor = parse(&TEXT.replace("IDP.4A.S8.S8", "HMMA.16816.F32"));
        assert_eq!(instructions_per_mma(&tensor["k"]), Some(2.0));
    }
}
