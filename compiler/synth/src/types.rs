use tpc_ir::DType;

/// The file type of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// One type for matrices and embeddings.
    Uniform(DType),
    /// `Q4_K_M`: q4_k, and q5_k or q6_k for sensitive weights.
    Mixed,
    /// `MXFP4_MOE`: mxfp4 experts, otherwise q8_0.
    Mxfp4Moe,
}

impl FileType {
    /// Returns the types that weights may have: all types except integers, f64 and types of intermediate results.
    pub fn allowed_types() -> impl Iterator<Item = DType> {
        let intermediate = [DType::F64, DType::Q8_1, DType::Q8K];
        DType::ALL
            .iter()
            .copied()
            .filter(move |t| !t.is_integer() && !intermediate.contains(t))
    }

    /// Returns the file type by name.
    pub fn from_name(name: &str) -> Option<FileType> {
        match name {
            "mixed" | "q4_k_m" => Some(FileType::Mixed),
            "mxfp4_moe" => Some(FileType::Mxfp4Moe),
            _ => DType::from_name(name)
                .filter(|&t| FileType::allowed_types().any(|a| a == t))
                .map(FileType::Uniform),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_every_name_is_that_name() {
        for t in FileType::allowed_types() {
            assert_eq!(FileType::from_name(t.name()), Some(FileType::Uniform(t)));
        }
        for bad in ["i32", "q8_1", "f64", "", "mixe"] {
            assert_eq!(FileType::from_name(bad), None, "{bad}");
        }
    }
}
