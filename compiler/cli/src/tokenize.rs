//! `tpc tokenize`: the token ids of a text, by a file's own vocabulary.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::input::{self, Model};
use crate::output::{self, Failure};
use tpc_diag::Diagnostic;
use tpc_text::{ChatTemplate, Conversation, Ending, Markers, Message, SpecialText, Tokenizer};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file with its vocabulary, any shard of one, its folder, or its address.
    model: PathBuf,
    /// The text [default: standard input].
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Print the ids alone, with commas between.
    #[arg(long)]
    ids: bool,
    /// Read special tokens that are written in the text, such as `<|im_end|>`.
    #[arg(long)]
    special: bool,
    /// Leave out the tokens that the file wants at the begin and the end of a text.
    #[arg(long)]
    no_bos: bool,
    /// Take the text for a user's message, and make a prompt of it by the file's chat template.
    #[arg(long, conflicts_with_all = ["special", "no_bos"])]
    chat: bool,
}

/// A line for each token: its id, and the bytes that it stands for.
fn listing(tokenizer: &Tokenizer, ids: &[u32]) -> Result<String, Failure> {
    let mut out = String::new();
    let mut bytes = Vec::new();
    for &id in ids {
        bytes.clear();
        tokenizer.piece(id, &mut bytes).map_err(Failure::usage)?;
        let _ = match std::str::from_utf8(&bytes) {
            Ok(piece) => writeln!(out, "{id:>7}  {piece:?}"),
            Err(_) => writeln!(out, "{id:>7}  {}", bytes.escape_ascii()),
        };
    }
    Ok(out)
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Model { file, notes } = input::open(&args.model)?;
    let tokenizer = Tokenizer::from_gguf(&file).map_err(Failure::usage)?;
    let text = input::text(args.prompt.as_deref())?;
    let mut said: Vec<Diagnostic> = notes;
    said.extend_from_slice(tokenizer.notes());
    let ids = if args.chat {
        let template = ChatTemplate::from_gguf(&file, None).map_err(Failure::usage)?;
        let messages = [Message::new("user", text)];
        let conversation = Conversation {
            messages: &messages,
            ending: Ending::Answer,
            now: Some(SystemTime::now()),
            switches: &[],
        };
        let prompt = template
            .render(&tokenizer, &conversation)
            .map_err(Failure::usage)?;
        said.extend_from_slice(template.notes());
        said.extend(prompt.notes);
        tokenizer.encode_prompt(&prompt.text)
    } else {
        let special = match args.special {
            true => SpecialText::Read,
            false => SpecialText::Plain,
        };
        let markers = match args.no_bos {
            true => Markers::Omit,
            false => Markers::Add,
        };
        tokenizer.encode(&text, special, markers)
    };
    let out = match args.ids {
        true => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("{}\n", ids.join(","))
        }
        false => listing(&tokenizer, &ids)?,
    };
    output::result(&out)?;
    said.iter().for_each(output::diagnostic);
    Ok(())
}
