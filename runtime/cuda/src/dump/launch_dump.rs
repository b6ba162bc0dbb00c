use std::fmt::Write as _;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::error::DumpError;
use super::format::{MAGIC, VERSION, from_hex, hex};
use super::header::DumpHeader;
use crate::driver::Module;

/// A launch with its operands, before the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchDump {
    /// The header.
    pub header: DumpHeader,
    /// The kernel's CUDA C++, without the prelude.
    pub source: String,
    /// The saved bytes of all regions.
    pub data: Vec<u8>,
}

impl LaunchDump {
    /// Writes the dump.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer does.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let config = ron::ser::PrettyConfig::new();
        let header = ron::ser::to_string_pretty(&self.header, config).map_err(io::Error::other)?;
        let mut hash = Sha256::new();
        for part in [header.as_bytes(), self.source.as_bytes(), &self.data] {
            hash.update(part);
        }
        let mut line = format!("{MAGIC} {VERSION}");
        for bytes in [header.len(), self.source.len(), self.data.len()] {
            let _ = write!(line, " {bytes}");
        }
        writeln!(out, "{line} {}", hex(&hash.finalize()))?;
        out.write_all(header.as_bytes())?;
        out.write_all(self.source.as_bytes())?;
        out.write_all(&self.data)
    }

    /// Returns the saved bytes of a region.
    pub fn saved(&self, region: usize) -> &[u8] {
        let before = self.header.regions.iter().take(region);
        let start: u64 = before.map(|r| r.saved).sum();
        let len = self.header.regions.get(region).map_or(0, |r| r.saved);
        let end = start.saturating_add(len) as usize;
        self.data.get(start as usize..end).unwrap_or_default()
    }

    /// Returns the parameters of the kernel.
    pub fn params(&self) -> Vec<u8> {
        from_hex(&self.header.kernel.params).unwrap_or_default()
    }

    /// Checks that the kernel's source is the source of this tpc for the same template.
    ///
    /// # Errors
    ///
    /// Returns [`DumpError::ForeignKernel`] if the source differs.
    pub fn check_source(&self) -> Result<(), DumpError> {
        let kernel = &self.header.kernel;
        let own = kernel.instance.instance();
        let own = own.filter(|i| i.entry() == kernel.entry);
        match own.is_some_and(|i| i.single_kernel_source().text == self.source) {
            true => Ok(()),
            false => Err(DumpError::ForeignKernel {
                kernel: kernel.entry.clone(),
                producer: self.header.producer.clone(),
            }),
        }
    }

    /// Returns a module with the kernel.
    pub fn module(&self) -> Module {
        Module::new(self.header.kernel.instance.family.clone(), &*self.source)
    }
}
