//! Tries an expression at one place of a text, going back where a choice leads to nothing, as Python does.

use super::parse::At;
use super::program::{Program, Step};
use super::set::is_word;

/// How many steps one search may take: some seconds.
pub(super) const MOST_STEPS: u64 = 300_000_000;
/// How many choices may be open at once: some hundred megabytes.
const MOST_CHOICES: usize = 8_000_000;
/// A slot that remembers nothing.
pub(super) const NOWHERE: usize = usize::MAX;

/// What to do when what was tried leads to nothing.
enum Back {
    /// Goes on at a step and a place.
    Go { step: usize, at: usize },
    /// Puts a slot back.
    Slot { slot: usize, was: usize },
    /// Gives one byte of a run back, down to `low`.
    Shorter { step: usize, low: usize, at: usize },
    /// Takes one byte more into a lazy run, up to `high`.
    Longer { run: usize, high: usize, at: usize },
}

/// Why a search was given up.
pub(super) struct TooMuch;

pub(super) struct Matcher<'a> {
    pub program: &'a Program,
    pub text: &'a [u8],
    pub slots: Vec<usize>,
    pub steps: u64,
    back: Vec<Back>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program, text: &'a [u8]) -> Matcher<'a> {
        Matcher { program, text, slots: vec![NOWHERE; program.slots], steps: 0, back: Vec::new() }
    }

    /// Returns where the match that begins at `at` ends; the slots then tell of its groups.
    pub(super) fn run(&mut self, at: usize) -> Result<Option<usize>, TooMuch> {
        self.back.clear();
        self.slots.fill(NOWHERE);
        self.inner(0, at, at)
    }

    /// Runs from a step to the `Match` of its own level. `here` is where a look behind must end.
    fn inner(&mut self, step: usize, at: usize, here: usize) -> Result<Option<usize>, TooMuch> {
        let base = self.back.len();
        let (mut step, mut at) = (step, at);
        loop {
            self.steps += 1;
            if self.steps > MOST_STEPS || self.back.len() > MOST_CHOICES {
                return Err(TooMuch);
            }
            if matches!(self.program.steps[step], Step::Match) {
                // Choices inside are settled; what its slots were stays known to whoever goes back further.
                let mut kept = base;
                for nth in base..self.back.len() {
                    if matches!(self.back[nth], Back::Slot { .. }) {
                        self.back.swap(kept, nth);
                        kept += 1;
                    }
                }
                self.back.truncate(kept);
                return Ok(Some(at));
            }
            let next = match self.advance(step, at, here)? {
                Some(next) => Some(next),
                None => self.go_back(base),
            };
            match next {
                Some(next) => (step, at) = next,
                None => return Ok(None),
            }
        }
    }

    /// Takes one step and returns the next one and the place; `None` when it does not fit.
    fn advance(&mut self, step: usize, at: usize, here: usize) -> Result<Option<(usize, usize)>, TooMuch> {
        let program = self.program;
        let fits = |fits: bool| fits.then_some((step + 1, at));
        Ok(match &program.steps[step] {
            Step::One(set) => self.text.get(at).filter(|&&byte| set.has(byte)).map(|_| (step + 1, at + 1)),
            Step::At(place) => fits(self.is_at(*place, at)),
            Step::Run { .. } => self.begin_run(step, at),
            Step::Split { first, second } => {
                self.back.push(Back::Go { step: *second, at });
                Some((*first, at))
            }
            Step::Jump(to) => Some((*to, at)),
            Step::Save(slot) => {
                self.back.push(Back::Slot { slot: *slot, was: self.slots[*slot] });
                self.slots[*slot] = at;
                Some((step + 1, at))
            }
            Step::Progress { slot, out } => Some((if self.slots[*slot] == at { *out } else { step + 1 }, at)),
            Step::Again { group, ignore_case } => self.again(*group, *ignore_case, at).map(|at| (step + 1, at)),
            Step::Whether { group, no } => {
                let matched = self.slots[group * 2 + 1] != NOWHERE;
                Some((if matched { step + 1 } else { *no }, at))
            }
            Step::Atomic { after } => self.inner(step + 1, at, here)?.map(|at| (*after, at)),
            Step::Look { behind, negative, after } => {
                let base = self.back.len();
                let mut found = false;
                let starts = if *behind { 0..=at } else { at..=at };
                for start in starts.rev() {
                    found = self.inner(step + 1, start, at)?.is_some();
                    if found {
                        break;
                    }
                }
                if found && *negative {
                    self.go_back(base);
                }
                (found != *negative).then_some((*after, at))
            }
            Step::Here => fits(at == here),
            Step::Match => None,
        })
    }

    fn begin_run(&mut self, step: usize, at: usize) -> Option<(usize, usize)> {
        let Step::Run { set, least, most, lazy } = &self.program.steps[step] else { return None };
        let low = at.checked_add(*least as usize).filter(|&low| low <= self.text.len())?;
        let high = at.saturating_add(*most as usize).min(self.text.len());
        let wanted = if *lazy { low } else { high };
        let length = self.text[at..wanted].iter().take_while(|&&byte| set.has(byte)).count();
        // A run over much text is many steps in one.
        self.steps += length as u64 / 8;
        let end = at + length;
        if end < low {
            return None;
        }
        if *lazy && low < high {
            self.back.push(Back::Longer { run: step, high, at: low });
        } else if !*lazy && low < end {
            self.back.push(Back::Shorter { step: step + 1, low, at: end });
        }
        Some((step + 1, end))
    }

    /// Undoes down to the newest open choice above `base`, and returns where that goes on.
    fn go_back(&mut self, base: usize) -> Option<(usize, usize)> {
        while self.back.len() > base {
            match self.back.pop()? {
                Back::Go { step, at } => return Some((step, at)),
                Back::Slot { slot, was } => self.slots[slot] = was,
                Back::Shorter { step, low, at } => {
                    let at = at - 1;
                    if at > low {
                        self.back.push(Back::Shorter { step, low, at });
                    }
                    return Some((step, at));
                }
                Back::Longer { run, high, at } => {
                    let Step::Run { set, .. } = &self.program.steps[run] else { continue };
                    if !set.has(self.text[at]) {
                        continue;
                    }
                    let at = at + 1;
                    if at < high {
                        self.back.push(Back::Longer { run, high, at });
                    }
                    return Some((run + 1, at));
                }
            }
        }
        None
    }

    fn again(&self, group: usize, ignore_case: bool, at: usize) -> Option<usize> {
        let (start, end) = (self.slots[group * 2], self.slots[group * 2 + 1]);
        if start == NOWHERE || end == NOWHERE || start > end {
            return None;
        }
        let wanted = &self.text[start..end];
        let there = self.text.get(at..at + wanted.len())?;
        let same = there == wanted || ignore_case && there.eq_ignore_ascii_case(wanted);
        same.then_some(at + wanted.len())
    }

    fn is_at(&self, place: At, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| self.text[before]);
        let after = self.text.get(at).copied();
        let edge = || before.is_some_and(is_word) != after.is_some_and(is_word);
        match place {
            At::Start => before.is_none(),
            At::LineStart => before.is_none_or(|byte| byte == b'\n'),
            At::End => after.is_none(),
            At::EndOrNewline => after.is_none() || after == Some(b'\n') && at + 1 == self.text.len(),
            At::LineEnd => after.is_none_or(|byte| byte == b'\n'),
            At::Word => edge(),
            // Python, unlike others, finds no `\B` in no text.
            At::NotWord => !self.text.is_empty() && !edge(),
        }
    }
}
