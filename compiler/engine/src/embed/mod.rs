//! Embeddings of texts: runs a text's tokens, pools their vectors, applies the file's head and normalises the result.

mod head;
mod norm;
mod pooling;

use tpc_gguf::GgufFile;
use tpc_models::find;
use tpc_runtime::Batch;

pub use norm::Normalisation;
pub use pooling::Pooling;

use crate::error::Error;
use crate::loader::AnySession;
use head::Head;

/// Computes embeddings.
pub struct Embedder {
    pooling: Pooling,
    normalisation: Normalisation,
    head: Head,
    /// True if the tokens of a text attend to later tokens. Such a text needs one batch.
    bidirectional: bool,
}

impl Embedder {
    /// Reads a file's head. Without `pooling`, the file's pooling counts.
    ///
    /// # Errors
    /// Returns an error if the file's keys or tensors do not fit the pooling.
    pub fn new(
        file: &GgufFile,
        pooling: Option<Pooling>,
        normalisation: Normalisation,
        bidirectional: bool,
    ) -> Result<Embedder, Error> {
        let metadata = file.header().metadata();
        let arch = metadata.require_str("general.architecture");
        let arch = arch.map_err(|e| Error::usage(tpc_diag::Diagnostic::from(e)))?;
        let arch = find(arch).map_err(|e| Error::usage(tpc_diag::Diagnostic::from(e)))?;
        let pooling = match pooling {
            Some(pooling) => pooling,
            None => Pooling::of_file(metadata, arch.name)?,
        };
        Ok(Embedder {
            pooling,
            normalisation,
            head: Head::read(file, arch, pooling)?,
            bidirectional,
        })
    }

    /// Returns the pooling.
    pub const fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Returns a text's vectors: one per token without pooling, else one. Scores of a text are not normalised.
    ///
    /// # Errors
    /// Returns an error if the tokens do not fit the session.
    pub fn embed(
        &self,
        session: &mut AnySession<'_>,
        tokens: &[u32],
        batch: usize,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let rows = rows(session, tokens, batch)?;
        let pooled = match self.pooling {
            Pooling::None => rows,
            Pooling::Mean => vec![pooling::mean(&rows)],
            Pooling::Cls => rows.into_iter().take(1).collect(),
            Pooling::Last => rows.into_iter().next_back().into_iter().collect(),
            Pooling::Rank if self.head.of_mean() => vec![pooling::mean(&rows)],
            Pooling::Rank if self.bidirectional => rows.into_iter().take(1).collect(),
            Pooling::Rank => rows.into_iter().next_back().into_iter().collect(),
        };
        Ok(pooled
            .into_iter()
            .map(|row| {
                let row = self.head.apply(row);
                match self.pooling {
                    Pooling::Rank => row.into_iter().map(|x| x as f32).collect(),
                    _ => self.normalisation.apply(&row),
                }
            })
            .collect())
    }
}

/// Returns the vectors of all tokens.
fn rows(
    session: &mut AnySession<'_>,
    tokens: &[u32],
    batch: usize,
) -> Result<Vec<Vec<f64>>, Error> {
    session.remove_sequence(0);
    let mut out = Vec::with_capacity(tokens.len());
    let mut first = 0;
    for part in tokens.chunks(batch.max(1)) {
        let found = session.step(&Batch::sequence(part, first, 0))?;
        let width = found.dims()[0].max(1);
        let numbers = found.reals().map_err(Error::from)?;
        out.extend(numbers.chunks(width).map(<[f64]>::to_vec));
        first += part.len() as u32;
    }
    Ok(out)
}
