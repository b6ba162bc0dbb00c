use super::error::{ParseError, ParseErrorKind};
use super::lexer::Token;
use super::names::{Kind, Referent};
use super::parser::{MAX_DEPTH, Parser};
use super::spans::Span;
use crate::dims::Dim;
use crate::entity::Class;
use crate::sharding::{AxisTree, ClassRef, Sharding, Unreduced};
use crate::types::RANK;

/// The maximum number of leaves of an axis tree.
pub const MAX_LEAVES: usize = 256;

fn error(defect: &'static str, span: Span) -> ParseError {
    ParseError::new(ParseErrorKind::Sharding { defect }, span)
}

impl Parser<'_> {
    pub(super) fn sharding(&mut self) -> Result<Sharding, ParseError> {
        let mut out = Sharding::mirrored();
        while let (Token::Word(word), span) = self.peek()? {
            match word {
                "split" => {
                    self.next()?;
                    if out.is_split() {
                        return Err(error("`split` is given twice", span));
                    }
                    self.split(&mut out)?;
                }
                "partial" | "owner_masked" => {
                    self.next()?;
                    if out.unreduced != Unreduced::None {
                        return Err(error("an unreduced sum is given twice", span));
                    }
                    out.unreduced = if word == "partial" {
                        Unreduced::Partial
                    } else {
                        self.expect(b'(', "`(` and a class")?;
                        let class = Class::new(self.reference(Kind::Class)?);
                        self.expect(b')', "`)`")?;
                        Unreduced::OwnerMasked(class)
                    };
                }
                "granule" => {
                    self.next()?;
                    self.expect(b'(', "`(` and the granule")?;
                    self.cover(&mut out, span)?;
                    self.expect(b')', "`)`")?;
                }
                _ => break,
            }
        }
        Ok(out)
    }

    fn split(&mut self, out: &mut Sharding) -> Result<(), ParseError> {
        self.expect(b'(', "`(` and an axis")?;
        loop {
            let (axis, span) = self.int("an axis, 0 to 3")?;
            let axis = usize::try_from(axis).ok().filter(|&a| a < RANK);
            let axis = axis.ok_or_else(|| error("the axis exceeds 3", span))?;
            if out.axes[axis].is_some() {
                return Err(error("an axis is given twice", span));
            }
            self.expect(b':', "`:` and a tree")?;
            let tree = self.tree(0, &mut 0)?;
            out.axes[axis] = Some(Box::new(tree));
            let span = self.peek()?.1;
            if axis == 0 && self.eat_word("granule")? {
                self.cover(out, span)?;
            }
            if self.eat(b')')? {
                return Ok(());
            }
            self.expect(b',', "`,`, `)`, `*` or `+`")?;
        }
    }

    fn cover(&mut self, out: &mut Sharding, span: Span) -> Result<(), ParseError> {
        if out.granule != 1 {
            return Err(error("`granule` is given twice", span));
        }
        out.granule = self.int("the granule in elements")?.0;
        Ok(())
    }

    fn tree(&mut self, depth: usize, leaves: &mut usize) -> Result<AxisTree, ParseError> {
        let first = self.product(depth, leaves)?;
        if self.peek()?.0 != Token::Punct(b'+') {
            return Ok(first);
        }
        let mut segments = vec![first];
        while self.eat(b'+')? {
            segments.push(self.product(depth, leaves)?);
        }
        Ok(AxisTree::Sum(segments))
    }

    fn product(&mut self, depth: usize, leaves: &mut usize) -> Result<AxisTree, ParseError> {
        let first = self.atom(depth, leaves)?;
        if self.peek()?.0 != Token::Punct(b'*') {
            return Ok(first);
        }
        let mut factors = vec![first];
        while self.eat(b'*')? {
            factors.push(self.atom(depth, leaves)?);
        }
        Ok(AxisTree::Product(factors))
    }

    fn atom(&mut self, depth: usize, leaves: &mut usize) -> Result<AxisTree, ParseError> {
        let (token, span) = self.peek()?;
        let limit = |what, max| ParseError::new(ParseErrorKind::Limit { what, max }, span);
        if token == Token::Punct(b'(') {
            if depth == MAX_DEPTH {
                return Err(limit("nested parentheses", MAX_DEPTH));
            }
            self.next()?;
            let tree = self.tree(depth + 1, leaves)?;
            self.expect(b')', "`)`, `*` or `+`")?;
            return Ok(tree);
        }
        *leaves += 1;
        if *leaves > MAX_LEAVES {
            return Err(limit("leaves in a tree", MAX_LEAVES));
        }
        match token {
            Token::Int(n) => {
                self.next()?;
                Ok(AxisTree::whole(Dim::constant(n)))
            }
            Token::Punct(b'[') => {
                self.next()?;
                let size = self.dim()?;
                self.expect(b']', "`]`")?;
                Ok(AxisTree::whole(size))
            }
            Token::Word(word) if Kind::Class.number(word).is_some() => self.class_leaf(),
            _ => self.expected_error("a class such as `c0`, a size, `[` or `(`"),
        }
    }

    fn class_leaf(&mut self) -> Result<AxisTree, ParseError> {
        let start = self.peek()?.1;
        let referent = self.referent(Kind::Class)?;
        let div = if self.eat(b'/')? {
            self.int("the divisor of the class")?.0
        } else {
            1
        };
        let Referent::Entity(index) = referent else {
            return Ok(AxisTree::whole(Dim::ONE));
        };
        let size = self.graph.classes[index].size;
        if div == 0 || !size.is_multiple_of(div) {
            let kind = ParseErrorKind::ClassPart { size, div };
            return Err(ParseError::new(kind, self.span_from(start)));
        }
        Ok(AxisTree::Leaf {
            size: Dim::constant(size / div),
            split: Some(ClassRef {
                class: Class::new(index),
                div,
            }),
        })
    }
}
