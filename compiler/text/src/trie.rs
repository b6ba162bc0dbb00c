//! A trie that finds strings that are prefixes of a text.

use hashbrown::HashTable;

use super::merge::NONE;

/// A tree of byte strings with values.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    first: [u32; 256],
    edges: HashTable<Edge>,
    /// The value of the string that ends at each node, or [`NONE`].
    values: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    byte: u8,
    to: u32,
}

/// Hashes an edge. A file cannot choose node numbers, so a fixed hash suffices.
fn hash(from: u32, byte: u8) -> u64 {
    let key = u64::from(from) << 8 | u64::from(byte);
    let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Default for Trie {
    fn default() -> Trie {
        Trie {
            first: [NONE; 256],
            edges: HashTable::new(),
            values: Vec::new(),
        }
    }
}

impl Trie {
    /// Inserts a non-empty string; replaces an existing value.
    pub(crate) fn insert(&mut self, text: &[u8], value: u32) {
        let mut node = None;
        for &byte in text {
            let next = match self.child(node, byte) {
                NONE => self.grow(node, byte),
                there => there,
            };
            node = Some(next);
        }
        if let Some(node) = node {
            self.values[node as usize] = value;
        }
    }

    fn child(&self, node: Option<u32>, byte: u8) -> u32 {
        let Some(from) = node else {
            return self.first[usize::from(byte)];
        };
        let same = |e: &Edge| e.from == from && e.byte == byte;
        self.edges
            .find(hash(from, byte), same)
            .map_or(NONE, |e| e.to)
    }

    fn grow(&mut self, node: Option<u32>, byte: u8) -> u32 {
        let to = u32::try_from(self.values.len()).expect("invariant: a header has fewer bytes");
        self.values.push(NONE);
        match node {
            None => self.first[usize::from(byte)] = to,
            Some(from) => {
                let edge = Edge { from, byte, to };
                self.edges
                    .insert_unique(hash(from, byte), edge, |e| hash(e.from, e.byte));
            }
        }
        to
    }

    /// Returns the strings that are prefixes of `text`, shortest first, as (length, value).
    pub(crate) fn prefixes(&self, text: &[u8]) -> impl Iterator<Item = (usize, u32)> {
        let mut node = None;
        let nodes = text.iter().map_while(move |&byte| {
            let next = self.child(node, byte);
            node = Some(next);
            (next != NONE).then_some(next)
        });
        let ends = nodes
            .enumerate()
            .map(|(i, n)| (i + 1, self.values[n as usize]));
        ends.filter(|&(_, value)| value != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_shortest_first() {
        let mut trie = Trie::default();
        for (i, s) in ["a", "abc", "abd", "b", "abcde", "é"].iter().enumerate() {
            trie.insert(s.as_bytes(), u32::try_from(i).expect("small"));
        }
        let of = |text: &str| trie.prefixes(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(of("abcdx"), [(1, 0), (3, 1)]);
        assert_eq!(of("abcde"), [(1, 0), (3, 1), (5, 4)]);
        assert_eq!(of("éa"), [(2, 5)]);
        assert_eq!(of("x"), []);
        assert_eq!(of(""), []);
    }
}
