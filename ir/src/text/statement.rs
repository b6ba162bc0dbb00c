use super::error::{ParseError, ParseErrorKind};
use super::lexer::{Token, describe, shorten};
use super::names::{Kind, Referent};
use super::parser::{Parser, Statements};
use super::spans::Span;
use crate::dims::Dim;
use crate::dtype::DType;
use crate::entity::{Device, Group, Value};
use crate::graph::{CellUnit, Output};
use crate::op::{AttrReader, Op};
use crate::place::{DeviceData, GroupData, Place};
use crate::sharding::{ClassData, Sharding};
use crate::types::{RANK, TensorType};

struct ResultDecl {
    number: u64,
    handle: Span,
    span: Span,
    name: String,
    ty: TensorType,
    place: Place,
    sharding: Sharding,
}

impl<'a> Parser<'a> {
    pub(super) fn statement(&mut self, others: Statements<'a, '_>) -> Result<(), ParseError> {
        let (token, start) = self.peek()?;
        if let Token::Word(word) = token
            && others(self, word, start)?
        {
            return Ok(());
        }
        match token {
            Token::End => Ok(()),
            Token::Word("graph") => self.graph_line(start),
            Token::Word("cells") => self.cells(),
            Token::Word("device") => self.device(start),
            Token::Word("group") => self.group(start),
            Token::Word("class") => self.class(start),
            Token::Word("layer") => self.layer(),
            Token::Word("output") => self.output(start),
            Token::Word(w) if Kind::Value.number(w).is_some() => self.inst(start),
            Token::Word(_)
            | Token::Int(_)
            | Token::Float(_)
            | Token::Quoted(_)
            | Token::Punct(_) => {
                let found = describe(token);
                Err(ParseError::new(ParseErrorKind::Statement { found }, start))
            }
        }
    }

    fn graph_line(&mut self, start: Span) -> Result<(), ParseError> {
        self.next()?;
        let name = self.string_literal("the graph's name in quotes")?;
        self.expect_end()?;
        if self.spans.graph != Span::default() {
            let defect = "is given twice";
            return Err(ParseError::new(ParseErrorKind::GraphLine { defect }, start));
        }
        self.graph.name = name;
        self.spans.graph = self.span_from(start);
        Ok(())
    }

    fn cells(&mut self) -> Result<(), ParseError> {
        self.next()?;
        let (unit, span) = self.int("the number of cells per unit")?;
        self.expect_end()?;
        if !(2..=1 << 32).contains(&unit) || self.graph.cell_unit != CellUnit::default() {
            let defect = "is not a number of cells from 2 to 2^32, given once";
            return Err(ParseError::new(ParseErrorKind::Number { defect }, span));
        }
        self.graph.cell_unit = CellUnit(unit);
        Ok(())
    }

    fn device(&mut self, start: Span) -> Result<(), ParseError> {
        self.next()?;
        let (n, _, handle) = self.handle(Kind::Device)?;
        let name = self.string_literal("the device's name in quotes")?;
        self.expect_end()?;
        let entity = Referent::Entity(self.graph.devices.len());
        self.names.define(Kind::Device, n, entity, handle)?;
        self.graph.devices.push(DeviceData { name });
        self.spans.devices.push(self.span_from(start));
        Ok(())
    }

    fn group(&mut self, start: Span) -> Result<(), ParseError> {
        self.next()?;
        let (n, _, handle) = self.handle(Kind::Group)?;
        self.expect(b'=', "`=`")?;
        self.expect(b'[', "`[` and devices")?;
        let devices = self.list(b']', "`,` or `]`", |parser| {
            Ok(Device::new(parser.reference(Kind::Device)?))
        })?;
        self.expect_end()?;
        let entity = Referent::Entity(self.graph.groups.len());
        self.names.define(Kind::Group, n, entity, handle)?;
        self.graph.groups.push(GroupData { devices });
        self.spans.groups.push(self.span_from(start));
        Ok(())
    }

    fn class(&mut self, start: Span) -> Result<(), ParseError> {
        self.next()?;
        let (n, _, handle) = self.handle(Kind::Class)?;
        let name = self.string_literal("the class's name in quotes")?;
        self.expect_word("size", "`size`")?;
        let (size, _) = self.int("the number of indices")?;
        self.expect_word("ranges", "`ranges`")?;
        self.expect(b'[', "`[` and a range per device")?;
        let ranges = self.list(b']', "`,` or `]`", Parser::range)?;
        self.expect_end()?;
        let entity = Referent::Entity(self.graph.classes.len());
        self.names.define(Kind::Class, n, entity, handle)?;
        self.graph.classes.push(ClassData { name, size, ranges });
        self.spans.classes.push(self.span_from(start));
        Ok(())
    }

    fn layer(&mut self) -> Result<(), ParseError> {
        self.next()?;
        let layer = if self.eat_word("none")? {
            None
        } else {
            let (n, span) = self.int("a layer's number or `none`")?;
            let defect = "the layer number exceeds 2^32 - 1";
            let too_large = |_| ParseError::new(ParseErrorKind::Number { defect }, span);
            Some(u32::try_from(n).map_err(too_large)?)
        };
        self.expect_end()?;
        self.layer = layer;
        Ok(())
    }

    fn output(&mut self, start: Span) -> Result<(), ParseError> {
        self.next()?;
        let output = if self.eat_word("state")? {
            let state = self.value()?;
            self.expect(b'=', "`=`")?;
            let value = self.value()?;
            Output::State { state, value }
        } else {
            let name = self.string_literal("a name in quotes, or `state`")?;
            self.expect(b'=', "`=`")?;
            Output::Named(name, self.value()?)
        };
        self.expect_end()?;
        self.graph.outputs.push(output);
        self.spans.outputs.push(self.span_from(start));
        Ok(())
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        Ok(Value::new(self.reference(Kind::Value)?))
    }

    fn inst(&mut self, start: Span) -> Result<(), ParseError> {
        let mut results = vec![self.result()?];
        while self.eat(b',')? {
            results.push(self.result()?);
        }
        self.expect(b'=', "`=`, `,` or a sharding")?;
        let (name, name_span) = self.word("an op")?;
        let mut operands = Vec::new();
        if let (Token::Word(_), _) = self.peek()? {
            operands.push(self.value()?);
            while self.eat(b',')? {
                operands.push(self.value()?);
            }
        }
        let (token, attrs_span) = self.peek()?;
        let (attrs, span) = if token == Token::Punct(b'{') {
            self.next()?;
            let attrs = self.attrs()?;
            (attrs, self.span_from(attrs_span))
        } else {
            (Vec::new(), name_span)
        };
        self.expect_end()?;
        let op = op(name, name_span, AttrReader::new(attrs), span)?;
        self.push(op, operands, results)?;
        self.spans.insts.push(self.span_from(start));
        Ok(())
    }

    fn push(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        results: Vec<ResultDecl>,
    ) -> Result<(), ParseError> {
        for (i, r) in results.iter().enumerate() {
            let entity = Referent::Entity(self.spans.values.len() + i);
            self.names.define(Kind::Value, r.number, entity, r.handle)?;
        }
        let types = results.iter().map(|r| r.ty.clone()).collect();
        let places: Vec<Place> = results.iter().map(|r| r.place).collect();
        let inst = self.graph.push_at(op, operands, types, &places, self.layer);
        for (i, r) in results.into_iter().enumerate() {
            let value = self.graph.inst(inst).results[i];
            let data = self.graph.value_mut(value);
            data.name = r.name;
            data.sharding = r.sharding;
            self.spans.values.push(r.span);
        }
        Ok(())
    }

    fn result(&mut self) -> Result<ResultDecl, ParseError> {
        let (number, _, handle) = self.handle(Kind::Value)?;
        let name = match self.peek()?.0 {
            Token::Quoted(_) => self.string_literal("a name in quotes")?,
            _ => String::new(),
        };
        self.expect(b':', "`:` and a type")?;
        let ty = self.tensor_type()?;
        self.expect(b'@', "`@` and a place")?;
        let place = self.place()?;
        let sharding = self.sharding()?;
        Ok(ResultDecl {
            number,
            handle,
            span: self.span_from(handle),
            name,
            ty,
            place,
            sharding,
        })
    }

    fn tensor_type(&mut self) -> Result<TensorType, ParseError> {
        let (word, span) = self.word("an element type such as `f32`")?;
        let known = DType::from_name(word).filter(|t| t.name() == word);
        let dtype = known.ok_or_else(|| {
            let found = shorten(word);
            ParseError::new(ParseErrorKind::ElementType { found }, span)
        })?;
        let sizes_span = self.peek()?.1;
        self.expect(b'[', "`[` and sizes")?;
        let sizes = self.list(b']', "`,`, `]`, `*`, `+` or `-`", Parser::dim)?;
        if !(1..=RANK).contains(&sizes.len()) {
            let found = sizes.len();
            let span = self.span_from(sizes_span);
            return Err(ParseError::new(ParseErrorKind::Rank { found }, span));
        }
        let mut dims = [Dim::ONE, Dim::ONE, Dim::ONE, Dim::ONE];
        for (d, size) in dims.iter_mut().zip(sizes) {
            *d = size;
        }
        Ok(TensorType { dtype, dims })
    }

    pub(crate) fn place(&mut self) -> Result<Place, ParseError> {
        if self.eat_word("host")? {
            return Ok(Place::Host);
        }
        match self.peek()?.0 {
            Token::Word(w) if Kind::Device.number(w).is_some() => {
                Ok(Place::Device(Device::new(self.reference(Kind::Device)?)))
            }
            Token::Word(w) if Kind::Group.number(w).is_some() => {
                Ok(Place::Group(Group::new(self.reference(Kind::Group)?)))
            }
            _ => self.expected_error("`host`, a device such as `dev0` or a group such as `tp0`"),
        }
    }
}

fn op(name: &str, name_span: Span, attrs: AttrReader, attrs_span: Span) -> Result<Op, ParseError> {
    let Some(op) = Op::parse(name, attrs) else {
        let found = shorten(name);
        let nearest = closest_op_name(name);
        let kind = ParseErrorKind::UnknownOp { found, nearest };
        return Err(ParseError::new(kind, name_span));
    };
    op.map_err(|source| {
        let op = ops().find(|&n| n == name).unwrap_or("op");
        ParseError::new(ParseErrorKind::Attributes { op, source }, attrs_span)
    })
}

fn ops() -> impl Iterator<Item = &'static str> {
    Op::NAMES.iter().flat_map(|names| names.iter().copied())
}

/// Returns the op name closest to `name`, at most two letters away.
fn closest_op_name(name: &str) -> Option<&'static str> {
    if name.len() > 24 {
        return None;
    }
    let (distance, op) = ops().map(|op| (strsim::osa_distance(name, op), op)).min()?;
    (distance <= 2).then_some(op)
}
