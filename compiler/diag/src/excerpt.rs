//! Excerpts: a part of a graph's text with labels, which the terminal shows under a diagnostic.

use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use tpc_ir::Inst;
use tpc_ir::text::{Entity, PrintedGraph};

/// A part of a graph's text, with what to see there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: &'static str,
    text: Arc<str>,
    /// Lines before it.
    before: usize,
    labels: Vec<(Range<usize>, String)>,
}

impl Excerpt {
    /// The lines of these instructions of a printed graph; `stage` is what `tpc dump` calls it.
    pub fn of(stage: &'static str, printed: &PrintedGraph, labels: &[(Inst, String)]) -> Excerpt {
        let span = |inst: Inst| printed.spans.get(Entity::Inst(inst)).unwrap_or_default();
        let spans = labels.iter().map(|(i, _)| span(*i));
        // What is shown around the labels is enough; the rest of a large graph need not be kept.
        let start = spans.clone().map(|s| s.start).min().unwrap_or(0);
        let end = spans.map(|s| s.end).max().unwrap_or(0);
        let before = printed.text[..start]
            .trim_end()
            .rfind('\n')
            .map_or(0, |n| n + 1);
        let after = printed.text[end..].find('\n').map_or(end, |n| end + n);
        let labels = labels
            .iter()
            .map(|(i, text)| {
                let s = span(*i);
                (s.start - before..s.end - before, text.clone())
            })
            .collect();
        Excerpt {
            name: stage,
            text: printed.text[before..after].into(),
            before: printed.text[..before].lines().count(),
            labels,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The labels, each with its place in the text.
    pub fn labels(&self) -> &[(Range<usize>, String)] {
        &self.labels
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            format!("{}.tpir", self.name),
            found.data(),
            *found.span(),
            found.line() + self.before,
            found.column(),
            found.line_count(),
        )))
    }
}
