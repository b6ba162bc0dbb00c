use std::collections::BTreeSet;

/// Number of tokens per block.
pub const BLOCK: usize = 32;

/// Bytes of a node without its cells and states. The children of the parent and the list of leaves have an entry each.
pub(super) const NODE_BYTES: u64 = (size_of::<Node>() + 6 * size_of::<usize>()) as u64;

/// The data of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Cells in caches without a window.
    pub(super) full: Box<[u8]>,
    /// Cells in sliding-window caches; `None` if these caches had lost the cells.
    pub(super) windowed: Option<Box<[u8]>>,
    /// Recurrent states after the block.
    pub(super) recurrent: Option<Box<[u8]>>,
}

impl Content {
    fn bytes(&self) -> u64 {
        let optional = [&self.windowed, &self.recurrent];
        let optional = optional.iter().map(|b| b.as_ref().map_or(0, |b| b.len()));
        (self.full.len() + optional.sum::<usize>()) as u64
    }
}

#[derive(Clone, Debug)]
struct Node {
    tokens: [u32; BLOCK],
    parent: Option<usize>,
    /// Sorted by tokens.
    children: Vec<usize>,
    content: Content,
    /// The time of the last use. No child has a later one.
    used: u64,
}

/// A tree of blocks. A path from the root is a prefix of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    free: Vec<usize>,
    roots: Vec<usize>,
    /// Nodes without children, in order of their last use.
    leaves: BTreeSet<(u64, usize)>,
    bytes: u64,
    time: u64,
}

impl Tree {
    /// Returns the number of blocks.
    pub(super) const fn blocks(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Returns the bytes of all blocks.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of a block.
    pub(super) fn bytes_of(&self, node: usize) -> u64 {
        NODE_BYTES + self.nodes[node].content.bytes()
    }

    /// Returns the data of a block.
    pub(super) fn content(&self, node: usize) -> &Content {
        &self.nodes[node].content
    }

    fn children(&self, parent: Option<usize>) -> &[usize] {
        match parent {
            Some(parent) => &self.nodes[parent].children,
            None => &self.roots,
        }
    }

    fn children_mut(&mut self, parent: Option<usize>) -> &mut Vec<usize> {
        match parent {
            Some(parent) => &mut self.nodes[parent].children,
            None => &mut self.roots,
        }
    }

    /// Returns the index of a child; as an error, the index for its insertion.
    fn find(&self, parent: Option<usize>, tokens: &[u32]) -> Result<usize, usize> {
        let order = |child: &usize| self.nodes[*child].tokens.as_slice().cmp(tokens);
        self.children(parent).binary_search_by(order)
    }

    /// Returns the blocks of the longest stored prefix of a text, from the root on.
    pub(super) fn path(&self, tokens: &[u32]) -> Vec<usize> {
        let mut path = Vec::new();
        for block in tokens.chunks_exact(BLOCK) {
            let parent = path.last().copied();
            match self.find(parent, block) {
                Ok(child) => path.push(self.children(parent)[child]),
                Err(_) => break,
            }
        }
        path
    }

    /// Sets the last use of a path from the root to now.
    pub(super) fn touch(&mut self, path: &[usize]) {
        self.time += 1;
        for &node in path {
            let was = self.nodes[node].used;
            self.nodes[node].used = self.time;
            if self.leaves.remove(&(was, node)) {
                self.leaves.insert((self.time, node));
            }
        }
    }

    /// Inserts a block that `parent` does not have yet, used now.
    pub(super) fn insert(
        &mut self,
        parent: Option<usize>,
        tokens: &[u32; BLOCK],
        content: Content,
    ) -> usize {
        let node = Node {
            tokens: *tokens,
            parent,
            children: Vec::new(),
            content,
            used: self.time,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        self.bytes += self.bytes_of(id);
        if let Some(parent) = parent {
            self.leaves.remove(&(self.nodes[parent].used, parent));
        }
        self.leaves.insert((self.time, id));
        let (Ok(at) | Err(at)) = self.find(parent, tokens);
        self.children_mut(parent).insert(at, id);
        id
    }

    /// Changes the data of a block.
    pub(super) fn update(&mut self, node: usize, change: impl FnOnce(&mut Content)) {
        self.bytes -= self.bytes_of(node);
        change(&mut self.nodes[node].content);
        self.bytes += self.bytes_of(node);
    }

    /// Removes the least recently used leaf. Returns false if all leaves are used now.
    pub(super) fn evict(&mut self) -> bool {
        let first = self.leaves.first().copied();
        let Some((used, node)) = first.filter(|(used, _)| *used < self.time) else {
            return false;
        };
        self.leaves.remove(&(used, node));
        self.bytes -= self.bytes_of(node);
        let parent = self.nodes[node].parent;
        self.nodes[node].content = Content::default();
        self.free.push(node);
        self.children_mut(parent).retain(|child| *child != node);
        if let Some(parent) = parent
            && self.nodes[parent].children.is_empty()
        {
            self.leaves.insert((self.nodes[parent].used, parent));
        }
        true
    }
}
