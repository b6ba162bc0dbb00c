use tpc_artefact::{Digest, of_model};
use tpc_gguf::GgufFile;
use tpc_ir::program::Program;
use tpc_runtime::ranks::{Outgoing, RankError, Tag, Transport};

/// Bytes of each tensor's samples.
const SAMPLE: usize = 64;

/// The identity of a model: its header, and samples of each tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// Returns a model's identity.
    pub fn of(file: &GgufFile) -> Fingerprint {
        let mut bytes = of_model(file).map_or_else(Vec::new, |d| d.bytes().to_vec());
        for tensor in file.header().tensors() {
            let data = file.tensor_data(tensor).unwrap_or_default();
            let middle = data.len() / 2;
            bytes.extend((data.len() as u64).to_le_bytes());
            bytes.extend(&data[..data.len().min(SAMPLE)]);
            bytes.extend(&data[middle..data.len().min(middle + SAMPLE)]);
            bytes.extend(&data[data.len().saturating_sub(SAMPLE)..]);
        }
        Fingerprint(Digest::of(&bytes))
    }
}

/// A rank's version of tpc, machine and model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version of tpc.
    pub version: String,
    /// The name of the machine.
    pub host: String,
    /// The identity of the model.
    pub model: String,
    /// The identity of the artefact; empty without one.
    pub artefact: String,
}

impl Hello {
    /// Returns the description of this process.
    pub fn new(host: &str, file: &GgufFile, artefact: Option<&Program>) -> Hello {
        let digest = |program: &Program| Digest::of(program.to_string().as_bytes()).to_string();
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: host.to_owned(),
            model: Fingerprint::of(file).0.to_string(),
            artefact: artefact.map_or_else(String::new, digest),
        }
    }

    fn encode(&self) -> String {
        [&self.version, &self.host, &self.model, &self.artefact]
            .map(|s| s.replace('\n', " "))
            .join("\n")
    }

    fn decode(bytes: &[u8]) -> Option<Hello> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split('\n').map(str::to_owned);
        let mut next = || lines.next();
        Some(Hello {
            version: next()?,
            host: next()?,
            model: next()?,
            artefact: next()?,
        })
    }

    /// Returns the first difference from rank 0's description, as a clause.
    fn difference(&self, first: &Hello) -> Option<String> {
        if self.version != first.version {
            return Some(format!(
                "has tpc {}, and rank 0 has tpc {}",
                self.version, first.version
            ));
        }
        if self.artefact != first.artefact {
            return Some("has another artefact than rank 0".to_owned());
        }
        (self.model != first.model).then(|| "has another model than rank 0".to_owned())
    }
}

/// Compares all ranks with rank 0. Returns their machines.
///
/// # Errors
/// Returns the first rank that differs, and the difference. All ranks then fail.
pub fn compare(transport: &dyn Transport, own: &Hello) -> Result<Vec<String>, RankError> {
    let tag = Tag::READY;
    if transport.rank() > 0 {
        let bytes = own.encode();
        let bytes = bytes.as_bytes();
        transport.post(Outgoing { to: 0, tag, bytes })?;
        let hosts = transport.receive(0, tag)?;
        let hosts = String::from_utf8_lossy(&hosts);
        return Ok(hosts.split('\n').map(str::to_owned).collect());
    }
    let mut hosts = vec![own.host.replace('\n', " ")];
    for rank in 1..transport.ranks() {
        let bytes = transport.receive(rank, tag)?;
        let other = Hello::decode(&bytes);
        let cause = match &other {
            Some(other) => (other.difference(own)).map(|d| format!("on {}: {d}", other.host)),
            None => Some("sent an unreadable description of itself".to_owned()),
        };
        if let Some(cause) = cause {
            let e = RankError {
                rank: Some(rank),
                cause,
            };
            transport.fail(&e.to_string());
            return Err(e);
        }
        hosts.extend(other.map(|o| o.host));
    }
    let all = hosts.join("\n");
    let bytes = all.as_bytes();
    for to in 1..transport.ranks() {
        transport.post(Outgoing { to, tag, bytes })?;
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tpc_runtime::ranks::Channels;

    use super::*;

    fn hello(version: &str, model: &str, host: &str) -> Hello {
        Hello {
            version: version.to_owned(),
            host: host.to_owned(),
            model: model.to_owned(),
            artefact: String::new(),
        }
    }

    #[test]
    fn ranks_agree_or_the_one_that_differs_is_named() {
        let cases = [
            (hello("1", "m", "b"), None),
            (
                hello("2", "m", "b"),
                Some("rank 1: on b: has tpc 2, and rank 0 has tpc 1"),
            ),
            (
                hello("1", "n", "b"),
                Some("rank 1: on b: has another model than rank 0"),
            ),
        ];
        for (other, refused) in cases {
            let mut ends = Channels::connect(2);
            let (second, first) = (ends.remove(1), ends.remove(0));
            let found = thread::scope(|scope| {
                let follower = scope.spawn(|| compare(&second, &other));
                let found = compare(&first, &hello("1", "m", "a"));
                let theirs = follower.join().expect("no panic");
                assert_eq!(found.is_ok(), theirs.is_ok());
                found
            });
            match refused {
                None => assert_eq!(found, Ok(vec!["a".to_owned(), "b".to_owned()])),
                Some(text) => assert_eq!(found.expect_err("refused").to_string(), text),
            }
        }
    }
}
