//! The commands with JSON outputs, and the types of the outputs.

use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};

use super::open::Open;
use crate::{
    bench, bisect, check, devices, doctor, inspect, lint, models, perplexity, plan, run, verify,
};

/// The promise of every schema.
const PROMISE: &str = "Later versions of tpc may add keys. They do not change or remove keys. A text with `x-extensible-enum` may get \
    further values; a text with `enum` does not.";

/// The JSON output of a command.
pub(super) struct OutputSchema {
    /// The command.
    pub(super) command: &'static str,
    /// The command with the option that selects JSON.
    pub(super) invocation: &'static str,
    /// The content in a few words.
    pub(super) content: &'static str,
    schema: fn(SchemaGenerator) -> Schema,
}

pub(super) static SCHEMAS: [OutputSchema; 13] = [
    OutputSchema {
        command: "plan",
        invocation: "tpc plan --format json",
        content: "a plan, the plans of several models, a refusal, or the changes of --diff",
        schema: SchemaGenerator::into_root_schema_for::<plan::Output<'_>>,
    },
    OutputSchema {
        command: "lint",
        invocation: "tpc lint --format json",
        content: "findings about a file, a command, or several files",
        schema: SchemaGenerator::into_root_schema_for::<lint::Output<'_>>,
    },
    OutputSchema {
        command: "inspect",
        invocation: "tpc inspect --format json",
        content: "the content of a model file or an artefact",
        schema: SchemaGenerator::into_root_schema_for::<inspect::Output<'_>>,
    },
    OutputSchema {
        command: "verify",
        invocation: "tpc verify --format json",
        content: "the proof of a plan or an artefact",
        schema: SchemaGenerator::into_root_schema_for::<verify::Output<'_>>,
    },
    OutputSchema {
        command: "bisect",
        invocation: "tpc bisect --format json",
        content: "the first op whose value differs between two graphs, or between two engines",
        schema: SchemaGenerator::into_root_schema_for::<bisect::Output<'_>>,
    },
    OutputSchema {
        command: "models",
        invocation: "tpc models --format json",
        content: "the models that other programs keep here",
        schema: SchemaGenerator::into_root_schema_for::<models::Report>,
    },
    OutputSchema {
        command: "devices",
        invocation: "tpc devices --format json",
        content: "the built-in cards and this machine's devices",
        schema: SchemaGenerator::into_root_schema_for::<devices::Listing<'_>>,
    },
    OutputSchema {
        command: "doctor",
        invocation: "tpc doctor --format json",
        content: "the checks of this machine",
        schema: SchemaGenerator::into_root_schema_for::<doctor::JsonReport<'_>>,
    },
    OutputSchema {
        command: "check",
        invocation: "tpc check --format json",
        content: "the differences between an artefact and this machine",
        schema: SchemaGenerator::into_root_schema_for::<check::Report<'_>>,
    },
    OutputSchema {
        command: "run",
        invocation: "tpc run --embeddings --embd-output-format json",
        content: "embeddings, also as json+ and array",
        schema: SchemaGenerator::into_root_schema_for::<run::Output<'_>>,
    },
    OutputSchema {
        command: "bench",
        invocation: "tpc bench --format json",
        content: "an array of tests with llama-bench's keys; jsonl prints one item per line",
        schema: SchemaGenerator::into_root_schema_for::<Vec<bench::Row>>,
    },
    OutputSchema {
        command: "perplexity",
        invocation: "tpc perplexity --format json",
        content: "the scores of a text, or divergences",
        schema: SchemaGenerator::into_root_schema_for::<perplexity::Output<'_>>,
    },
    OutputSchema {
        command: "rpc",
        invocation: "tpc rpc --capture --format json",
        content: "findings about the captured graphs, after the line with the address",
        schema: SchemaGenerator::into_root_schema_for::<lint::Output<'_>>,
    },
];

impl OutputSchema {
    /// Returns the schema as a JSON Schema document of draft 2020-12.
    pub(super) fn document(&self) -> Schema {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let generator = settings.with_transform(Open).into_generator();
        let mut schema = (self.schema)(generator);
        let description = format!(
            "Output of `{}`: {}. {PROMISE}",
            self.invocation, self.content
        );
        schema.insert("title".to_owned(), format!("tpc {}", self.command).into());
        schema.insert("description".to_owned(), description.into());
        schema
    }
}
