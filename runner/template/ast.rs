//! A template after parsing: owned, with filters and tests already looked up and every node's place in the text.

use std::sync::Arc;

use super::call::{Filter, Test};
use crate::value::Value;

/// An expression, and the bytes of the template that it was written in.
#[derive(Debug)]
pub(super) struct Node {
    pub start: u32,
    pub end: u32,
    pub kind: Expr,
}

#[derive(Debug)]
pub(super) enum Expr {
    Const(Value),
    /// A text inside a bare expression that is a template itself.
    Embedded(Arc<str>),
    Var(Arc<str>),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Not(Box<Node>),
    Negative(Box<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Binary(Binary, Box<(Node, Node)>),
    Compare(Box<Node>, Vec<(Compare, Node)>),
    If {
        test: Box<Node>,
        then: Box<Node>,
        otherwise: Option<Box<Node>>,
    },
    Attribute(Box<Node>, Arc<str>),
    Item(Box<(Node, Node)>),
    Slice {
        of: Box<Node>,
        start: Option<Box<Node>>,
        stop: Option<Box<Node>>,
        step: Option<Box<Node>>,
    },
    Call(Box<Node>, Vec<Argument>),
    /// No node means the text of the block around it.
    Filter(Option<Box<Node>>, &'static Filter, Vec<Argument>),
    Test(Box<Node>, &'static Test, Vec<Argument>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Concatenate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug)]
pub(super) enum Argument {
    Positional(Node),
    Named(Arc<str>, Node),
    Unpacked(Node),
    UnpackedMap(Node),
}

#[derive(Debug)]
pub(super) enum Statement {
    Raw(Arc<str>),
    Emit(Node),
    For(Arc<For>),
    If {
        test: Node,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    With {
        assignments: Vec<(Node, Node)>,
        body: Vec<Statement>,
    },
    Set {
        target: Node,
        value: Node,
    },
    SetBlock {
        target: Node,
        filter: Option<Node>,
        body: Vec<Statement>,
    },
    FilterBlock {
        filter: Node,
        body: Vec<Statement>,
    },
    /// Text that is not escaped is what a playbook wants: escaping is never on.
    Plain(Vec<Statement>),
    Block(Arc<str>),
    Extends(Node),
    Include {
        name: Node,
        ignore_missing: bool,
    },
    Import {
        file: Node,
        name: Arc<str>,
    },
    FromImport {
        file: Node,
        names: Vec<(Arc<str>, Arc<str>)>,
    },
    Macro(Arc<Macro>),
    CallBlock {
        call: Node,
        body: Arc<Macro>,
    },
    Do(Node),
    Continue,
    Break,
}

#[derive(Debug)]
pub(super) struct For {
    pub target: Node,
    pub over: Node,
    pub only_if: Option<Node>,
    pub recursive: bool,
    pub body: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub name: Arc<str>,
    pub parameters: Vec<(Arc<str>, Option<Node>)>,
    pub body: Vec<Statement>,
}

/// A parsed template.
#[derive(Debug)]
pub(super) struct Parsed {
    pub body: Vec<Statement>,
    /// In the order in which they stand.
    pub blocks: Vec<(Arc<str>, Arc<Vec<Statement>>)>,
}
