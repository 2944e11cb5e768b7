//! Turns an expression into steps for the matcher.

use super::parse::{At, Greed, Node};
use super::set::Set;

/// The most steps that one expression may take.
const MOST_STEPS: usize = 200_000;

pub(super) enum Step {
    One(Set),
    At(At),
    /// Bytes of a set, as many as can be had or as few as do.
    Run {
        set: Set,
        least: u32,
        most: u32,
        lazy: bool,
    },
    /// Goes on at `first`, and at `second` when that leads to nothing.
    Split {
        first: usize,
        second: usize,
    },
    Jump(usize),
    /// Remembers the place in the text.
    Save(usize),
    /// Leaves a loop whose body matched nothing since it was remembered there.
    Progress {
        slot: usize,
        out: usize,
    },
    Again {
        group: usize,
        ignore_case: bool,
    },
    Whether {
        group: usize,
        no: usize,
    },
    /// The steps up to `after` are tried where this stands and must, or must not, match.
    Look {
        behind: bool,
        negative: bool,
        after: usize,
    },
    /// The steps up to `after` match once and for all.
    Atomic {
        after: usize,
    },
    /// The end of what a look behind tries: where it was asked for.
    Here,
    Match,
}

pub(super) struct Program {
    pub steps: Vec<Step>,
    /// Two a group, then one a loop.
    pub slots: usize,
    /// How many nodes were written out.
    nodes: usize,
}

pub(super) fn compile(node: &Node, groups: usize) -> Result<Program, String> {
    let mut program = Program { steps: Vec::new(), slots: groups * 2, nodes: 0 };
    program.emit(node)?;
    program.steps.push(Step::Match);
    Ok(program)
}

impl Program {
    fn put(&mut self, step: Step) -> Result<usize, String> {
        if self.steps.len() >= MOST_STEPS {
            return Err("it is too large".to_owned());
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn emit(&mut self, node: &Node) -> Result<(), String> {
        self.nodes += 1;
        if self.nodes > MOST_STEPS {
            return Err("it is too large".to_owned());
        }
        match node {
            Node::Empty => {}
            Node::One(set) => drop(self.put(Step::One(*set))?),
            Node::At(at) => drop(self.put(Step::At(*at))?),
            Node::Concat(nodes) => {
                for node in nodes {
                    self.emit(node)?;
                }
            }
            Node::Either(branches) => self.either(branches)?,
            Node::Repeat { node, least, most, greed: Greed::Possessive } => {
                let start = self.put(Step::Atomic { after: 0 })?;
                self.repeat(node, *least, *most, false)?;
                self.end_inner(start, Step::Match)?;
            }
            Node::Repeat { node, least, most, greed } => self.repeat(node, *least, *most, *greed == Greed::Lazy)?,
            Node::Group(number, node) => {
                self.put(Step::Save(number * 2))?;
                self.emit(node)?;
                self.put(Step::Save(number * 2 + 1))?;
            }
            Node::Look { behind, negative, node } => {
                let start = self.put(Step::Look { behind: *behind, negative: *negative, after: 0 })?;
                self.emit(node)?;
                if *behind {
                    self.put(Step::Here)?;
                }
                self.end_inner(start, Step::Match)?;
            }
            Node::Atomic(node) => {
                let start = self.put(Step::Atomic { after: 0 })?;
                self.emit(node)?;
                self.end_inner(start, Step::Match)?;
            }
            Node::Again { group, ignore_case } => {
                self.put(Step::Again { group: *group, ignore_case: *ignore_case })?;
            }
            Node::Whether { group, yes, no } => {
                let start = self.put(Step::Whether { group: *group, no: 0 })?;
                self.emit(yes)?;
                let jump = self.put(Step::Jump(0))?;
                self.steps[start] = Step::Whether { group: *group, no: jump + 1 };
                self.emit(no)?;
                self.steps[jump] = Step::Jump(self.steps.len());
            }
        }
        Ok(())
    }

    fn end_inner(&mut self, start: usize, last: Step) -> Result<(), String> {
        let end = self.put(last)? + 1;
        if let Step::Look { after, .. } | Step::Atomic { after } = &mut self.steps[start] {
            *after = end;
        }
        Ok(())
    }

    fn either(&mut self, branches: &[Node]) -> Result<(), String> {
        let mut jumps = Vec::new();
        for (nth, branch) in branches.iter().enumerate() {
            if nth + 1 == branches.len() {
                self.emit(branch)?;
                break;
            }
            let split = self.put(Step::Jump(0))?;
            self.emit(branch)?;
            jumps.push(self.put(Step::Jump(0))?);
            self.steps[split] = Step::Split { first: split + 1, second: self.steps.len() };
        }
        let end = self.steps.len();
        for jump in jumps {
            self.steps[jump] = Step::Jump(end);
        }
        Ok(())
    }

    fn repeat(&mut self, node: &Node, least: u32, most: Option<u32>, lazy: bool) -> Result<(), String> {
        if let Node::One(set) = node {
            self.put(Step::Run { set: *set, least, most: most.unwrap_or(u32::MAX), lazy })?;
            return Ok(());
        }
        for _ in 0..least {
            self.emit(node)?;
        }
        let order = |into: usize, out: usize| match lazy {
            false => Step::Split { first: into, second: out },
            true => Step::Split { first: out, second: into },
        };
        match most {
            Some(most) => {
                let mut splits = Vec::new();
                for _ in least..most {
                    splits.push(self.put(Step::Jump(0))?);
                    self.emit(node)?;
                }
                let end = self.steps.len();
                for split in splits {
                    self.steps[split] = order(split + 1, end);
                }
            }
            None => {
                let slot = self.slots;
                self.slots += 1;
                let split = self.put(Step::Jump(0))?;
                self.put(Step::Save(slot))?;
                self.emit(node)?;
                let progress = self.put(Step::Progress { slot, out: 0 })?;
                let end = self.put(Step::Jump(split))? + 1;
                self.steps[progress] = Step::Progress { slot, out: end };
                self.steps[split] = order(split + 1, end);
            }
        }
        Ok(())
    }
}
