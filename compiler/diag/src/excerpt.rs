use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use tpc_ir::Inst;
use tpc_ir::text::{Entity, PrintedGraph};

/// A part of a graph's text, with labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: &'static str,
    text: Arc<str>,
    before: usize,
    labels: Vec<(Range<usize>, String)>,
}

impl Excerpt {
    /// Returns the lines of these instructions in a printed graph. `stage` is the graph's name in `tpc dump`.
    pub fn of(stage: &'static str, printed: &PrintedGraph, labels: &[(Inst, String)]) -> Excerpt {
        let span = |inst: Inst| printed.spans.get(Entity::Inst(inst)).unwrap_or_default();
        let spans = labels.iter().map(|(i, _)| span(*i));
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

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the labels with their byte ranges.
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
