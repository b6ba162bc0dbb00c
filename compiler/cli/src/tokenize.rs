//! `tpc tokenize`: converts a text to token ids with a file's vocabulary.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::input::{self, HubArgs, Model, Need};
use crate::output::{self, Failure};
use tpc_diag::{Diagnostic, codes};
use tpc_text::{
    ChatTemplate, Conversation, Ending, Markers, Message, Show, SpecialText, Start, Tokenizer,
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file with a vocabulary, any shard of one, its folder, its address, or a name of `tpc models`. `-hf
    /// USER/NAME[:QUANT]` names a repository.
    model: PathBuf,
    #[command(flatten)]
    hub: HubArgs,
    /// Text to tokenize; prints the ids on one line with commas.
    #[arg(value_name = "TEXT", conflicts_with_all = ["prompt", "file"])]
    text: Option<String>,
    /// Text to tokenize; prints one token per line [default: standard input].
    #[arg(
        long,
        short,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "file"
    )]
    prompt: Option<String>,
    /// File with the text; prints the ids on one line with commas.
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the text of these token ids.
    #[arg(long, value_name = "1,2,…", conflicts_with_all = ["text", "prompt", "file", "ids", "special", "no_bos", "chat"])]
    detokenize: Option<Ids>,
    /// Print only ids, separated by commas, for any source of the text.
    #[arg(long)]
    ids: bool,
    /// Parse special tokens in the text, such as `<|im_end|>`.
    #[arg(long)]
    special: bool,
    /// Omit the tokens that the vocabulary adds before and after a text.
    #[arg(long)]
    no_bos: bool,
    /// Format the text as a user's message with the file's chat template.
    #[arg(long, conflicts_with_all = ["special", "no_bos"])]
    chat: bool,
}

#[derive(Clone, Debug)]
struct Ids(Vec<u32>);

impl std::str::FromStr for Ids {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Ids, Diagnostic> {
        let words = text.split([',', ' ', '\n']).filter(|w| !w.is_empty());
        let ids: Result<Vec<u32>, _> = words.map(str::parse).collect();
        ids.map(Ids).map_err(|_| {
            let message = format!("`{text}` is not a list of token ids");
            let d = Diagnostic::new(&codes::COMMAND_LINE, "--detokenize", message);
            d.help("separate numbers by commas, such as 1,15043")
        })
    }
}

impl Args {
    fn text(&self) -> Result<String, Failure> {
        let Some(path) = &self.file else {
            return input::text(self.text.as_deref().or(self.prompt.as_deref()));
        };
        let bytes = input::read_file(path, LONGEST)?;
        String::from_utf8(bytes).map_err(|e| {
            let message = format!("the text is not UTF-8: {}", e.utf8_error());
            let name = path.display().to_string();
            let d = Diagnostic::new(&codes::FILE_ACCESS, name, message);
            Failure::usage(d.help("give text in UTF-8"))
        })
    }

    fn prints_ids(&self) -> bool {
        self.ids || self.text.is_some() || self.file.is_some()
    }
}

/// The longest accepted text file, in bytes.
const LONGEST: u64 = 256 << 20;

/// Formats one token per line: id and bytes.
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

impl Args {
    /// Replaces the name of a model by its file or address.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.hub.resolve(&mut self.model, Need::Header)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Model { file, notes } = input::open(&args.model)?;
    let tokenizer = Tokenizer::from_gguf(&file).map_err(Failure::usage)?;
    if let Some(Ids(ids)) = &args.detokenize {
        let text = tokenizer.decode(ids, Start::Text, Show::Special);
        return output::result(&format!("{}\n", text.map_err(Failure::usage)?));
    }
    let text = args.text()?;
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
    let out = match args.prints_ids() {
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
