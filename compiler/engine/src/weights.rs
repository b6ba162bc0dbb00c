use tpc_gguf::GgufFile;
use tpc_runtime::{ExecError, WeightData, WeightSource};

use crate::observer::Observer;

/// The tensors of a file. The observer counts loaded tensors.
pub(crate) struct FileWeights<'a> {
    pub(crate) file: &'a GgufFile,
    pub(crate) observer: &'a dyn Observer,
}

impl WeightSource for FileWeights<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let missing = || ExecError::MissingWeight {
            tensor: tensor.to_owned(),
        };
        let info = self.file.header().tensor(tensor).ok_or_else(missing)?;
        let bytes = self.file.tensor_data(info).ok_or_else(missing)?;
        self.observer.tensor_loaded();
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes,
        })
    }

    fn release(&self, bytes: &[u8]) {
        self.file.release(bytes);
    }
}

impl Drop for FileWeights<'_> {
    fn drop(&mut self) {
        self.file.release_all();
    }
}
