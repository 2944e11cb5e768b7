//! Reads a regular expression of Python's `re` over bytes.

use super::Flags;
use super::set::Set;

/// How deeply groups may nest.
const DEEPEST: usize = 200;
/// The most that a number in braces may say. A repeated group is written out that often.
const MOST_REPEATS: u32 = 65_535;

/// A part of an expression.
pub(super) enum Node {
    Empty,
    /// One byte out of a set.
    One(Set),
    Concat(Vec<Node>),
    Either(Vec<Node>),
    Repeat {
        node: Box<Node>,
        least: u32,
        most: Option<u32>,
        greed: Greed,
    },
    Group(usize, Box<Node>),
    Look {
        behind: bool,
        negative: bool,
        node: Box<Node>,
    },
    /// A group that gives nothing back.
    Atomic(Box<Node>),
    Again {
        group: usize,
        ignore_case: bool,
    },
    /// What follows when a group has matched, and when it has not.
    Whether {
        group: usize,
        yes: Box<Node>,
        no: Box<Node>,
    },
    At(At),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Start,
    LineStart,
    End,
    /// The end, or just before a newline that ends the text.
    EndOrNewline,
    LineEnd,
    Word,
    NotWord,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub flags: Flags,
    pub ignore_case: bool,
    pub verbose: bool,
}

pub(super) struct Parser<'a> {
    rest: &'a str,
    pub options: Options,
    /// The name of each group; group 0 is the whole match.
    pub names: Vec<Option<String>>,
    /// The greatest number of a group that a condition asks for.
    asked: usize,
    depth: usize,
}

type Parsed = Result<Node, String>;

impl<'a> Parser<'a> {
    pub(super) fn new(pattern: &'a str, flags: Flags) -> Parser<'a> {
        let options = Options { flags, ..Options::default() };
        Parser { rest: pattern, options, names: vec![None], asked: 0, depth: 0 }
    }

    pub(super) fn read(&mut self) -> Parsed {
        while let Some(inner) = self.rest.strip_prefix("(?")
            && let Some((letters, after)) = inner.split_once(')')
            && !letters.is_empty()
            && letters.chars().all(|letter| "aiLmsux".contains(letter))
        {
            self.set_options(letters);
            self.rest = after;
        }
        let node = self.either()?;
        if self.asked >= self.names.len() {
            return Err(format!("it has no group `{}`", self.asked));
        }
        if self.rest.is_empty() { Ok(node) } else { Err("a `)` closes nothing".to_owned()) }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn set_options(&mut self, letters: &str) {
        let mut on = true;
        for letter in letters.chars() {
            match letter {
                '-' => on = false,
                'i' => self.options.ignore_case = on,
                'm' => self.options.flags.multi_line = on,
                's' => self.options.flags.dot_all = on,
                'x' => self.options.verbose = on,
                _ => {}
            }
        }
    }

    /// Reads up to a `)` that is not its own, or the end.
    fn either(&mut self) -> Parsed {
        let mut branches = vec![self.branch()?];
        while self.eat("|") {
            branches.push(self.branch()?);
        }
        Ok(if branches.len() == 1 { branches.swap_remove(0) } else { Node::Either(branches) })
    }

    fn branch(&mut self) -> Parsed {
        let mut nodes = Vec::new();
        while let Some(letter) = self.peek() {
            if letter == '|' || letter == ')' {
                break;
            }
            if self.options.verbose && (letter == '#' || letter.is_ascii_whitespace() || letter == '\x0b') {
                self.rest = match letter {
                    '#' => self.rest.split_once('\n').map_or("", |(_, rest)| rest),
                    _ => &self.rest[1..],
                };
                continue;
            }
            let atom = self.atom()?;
            if let Some(atom) = atom {
                let node = self.repeated(atom)?;
                nodes.push(node);
            }
        }
        Ok(Node::Concat(nodes))
    }

    /// Reads one thing that can be repeated; `None` for a comment or flags.
    fn atom(&mut self) -> Result<Option<Node>, String> {
        let Some(letter) = self.next() else { return Ok(None) };
        Ok(Some(match letter {
            '\\' => self.escape()?,
            '.' if self.options.flags.dot_all => Node::One(Set::all()),
            '.' => Node::One(Set::of(b'\n').inverted()),
            '^' if self.options.flags.multi_line => Node::At(At::LineStart),
            '^' => Node::At(At::Start),
            '$' if self.options.flags.multi_line => Node::At(At::LineEnd),
            '$' => Node::At(At::EndOrNewline),
            '[' => self.class()?,
            '(' => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err("its groups nest too deeply".to_owned());
                }
                let group = self.group()?;
                self.depth -= 1;
                return Ok(group);
            }
            '*' | '+' | '?' => return Err(format!("nothing stands before `{letter}`")),
            other => self.letter(other),
        }))
    }

    /// Returns what stands for one letter: all of its bytes.
    fn letter(&self, letter: char) -> Node {
        if letter.is_ascii() {
            return self.byte(letter as u8);
        }
        let mut bytes = [0; 4];
        let bytes = letter.encode_utf8(&mut bytes).as_bytes();
        Node::Concat(bytes.iter().map(|&byte| Node::One(Set::of(byte))).collect())
    }

    fn byte(&self, byte: u8) -> Node {
        let mut set = Set::of(byte);
        if self.options.ignore_case {
            set.fold_case();
        }
        Node::One(set)
    }

    fn repeated(&mut self, atom: Node) -> Parsed {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces()? {
                Some(numbers) => numbers,
                None => return Ok(atom),
            },
            _ => return Ok(atom),
        };
        if matches!(atom, Node::At(_)) {
            return Err("nothing that could be repeated stands before a repetition".to_owned());
        }
        if !self.eat("{") {
            self.next();
        } else {
            self.rest = self.rest.split_once('}').map_or("", |(_, rest)| rest);
        }
        let greed = match () {
            () if self.eat("?") => Greed::Lazy,
            () if self.eat("+") => Greed::Possessive,
            () => Greed::Greedy,
        };
        if matches!(self.peek(), Some('*' | '+' | '?')) || self.peek() == Some('{') && self.braces()?.is_some() {
            return Err("a repetition follows a repetition".to_owned());
        }
        Ok(Node::Repeat { node: Box::new(atom), least, most, greed })
    }

    /// Looks at a brace: it repeats only when it holds numbers; else it is itself.
    fn braces(&self) -> Result<Option<(u32, Option<u32>)>, String> {
        let Some((inner, _)) = self.rest[1..].split_once('}') else { return Ok(None) };
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if inner.is_empty() || !digits(least) || !digits(most) {
            return Ok(None);
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number <= MOST_REPEATS => Ok(number),
            _ => Err(format!("it repeats more than {MOST_REPEATS} times")),
        };
        let least = if least.is_empty() { 0 } else { number(least)? };
        let most = if most.is_empty() { None } else { Some(number(most)?) };
        if most.is_some_and(|most| most < least) {
            return Err(format!("`{{{inner}}}` ends before it begins"));
        }
        Ok(Some((least, most)))
    }

    /// Reads a group after its `(`.
    fn group(&mut self) -> Result<Option<Node>, String> {
        let before = self.options;
        if self.eat("?#") {
            self.rest = self.rest.split_once(')').ok_or("a comment is not closed")?.1;
            return Ok(None);
        }
        let look = [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];
        let node = if let Some((_, behind, negative)) = look.into_iter().find(|(start, ..)| self.eat(start)) {
            Node::Look { behind, negative, node: Box::new(self.either()?) }
        } else if self.eat("?:") {
            self.either()?
        } else if self.eat("?>") {
            Node::Atomic(Box::new(self.either()?))
        } else if self.eat("?P=") {
            let name = self.name(')')?;
            self.options = before;
            return Ok(Some(Node::Again { group: self.numbered(&name)?, ignore_case: before.ignore_case }));
        } else if self.eat("?P<") || self.eat("?<") {
            let name = self.name('>')?;
            self.captured(Some(name))?
        } else if self.eat("?(") {
            let name = self.name(')')?;
            // A group may be asked for before it is written.
            let group = match name.parse() {
                Ok(number) if number > 0 => number,
                Ok(_) | Err(_) => self.numbered(&name)?,
            };
            self.asked = self.asked.max(group);
            self.condition(group)?
        } else if self.eat("?") {
            let end = self.rest.find([')', ':']).ok_or("a `(` is not closed")?;
            let (letters, rest) = self.rest.split_at(end);
            if letters.is_empty() || !letters.chars().all(|letter| "aiLmsux-".contains(letter)) {
                return Err(format!("`(?{letters}` means nothing in it"));
            }
            self.rest = rest;
            self.set_options(letters);
            if self.eat(")") {
                // From here to the end of the group around it.
                return Ok(None);
            }
            self.eat(":");
            self.either()?
        } else {
            self.captured(None)?
        };
        self.options = before;
        if self.eat(")") { Ok(Some(node)) } else { Err("a `(` is not closed".to_owned()) }
    }

    fn captured(&mut self, name: Option<String>) -> Parsed {
        if name.is_some() && self.names.contains(&name) {
            return Err(format!("two groups are named `{}`", name.unwrap_or_default()));
        }
        let number = self.names.len();
        self.names.push(name);
        Ok(Node::Group(number, Box::new(self.either()?)))
    }

    fn condition(&mut self, group: usize) -> Parsed {
        let yes = Box::new(self.branch()?);
        let no = Box::new(if self.eat("|") { self.branch()? } else { Node::Empty });
        if self.peek() == Some('|') {
            return Err("a condition has more than two branches".to_owned());
        }
        Ok(Node::Whether { group, yes, no })
    }

    fn name(&mut self, end: char) -> Result<String, String> {
        let (name, rest) = self.rest.split_once(end).ok_or("a group's name does not end")?;
        self.rest = rest;
        let word = |letter: char| letter.is_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(word) {
            return Err(format!("`{name}` is no name of a group"));
        }
        Ok(name.to_owned())
    }

    /// Returns the number of a group that is named or numbered.
    fn numbered(&self, name: &str) -> Result<usize, String> {
        let number = match name.parse() {
            Ok(number) if number > 0 && number < self.names.len() => Some(number),
            Ok(_) => None,
            Err(_) => self.names.iter().position(|other| other.as_deref() == Some(name)),
        };
        number.ok_or_else(|| format!("it has no group `{name}` before that place"))
    }

    /// Reads what a backslash outside a class stands for.
    fn escape(&mut self) -> Parsed {
        let letter = self.next().ok_or("it ends in a backslash")?;
        Ok(match letter {
            'A' => Node::At(At::Start),
            'Z' => Node::At(At::End),
            'b' => Node::At(At::Word),
            'B' => Node::At(At::NotWord),
            '0'..='9' => match self.octal(letter) {
                Some(byte) => self.byte(byte),
                None => {
                    let mut number = letter.to_string();
                    if let Some(digit @ '0'..='9') = self.peek() {
                        number.push(digit);
                        self.next();
                    }
                    Node::Again { group: self.numbered(&number)?, ignore_case: self.options.ignore_case }
                }
            },
            letter => match self.class_escape(letter, "")? {
                Member::Set(set) => Node::One(set),
                Member::Byte(byte) => self.byte(byte),
                Member::Letter(letter) => self.letter(letter),
            },
        })
    }

    /// Reads an octal escape after its first digit: `\0`, `\07`, `\177`.
    fn octal(&mut self, first: char) -> Option<u8> {
        let more = self.rest.bytes().take(2).take_while(|byte| (b'0'..b'8').contains(byte)).count();
        let first = first.to_digit(8)?;
        let digits = match (first, more) {
            (0, count) | (1..=3, count @ 2) => count,
            _ => return None,
        };
        let (more, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let value = more.bytes().fold(first, |value, digit| value * 8 + u32::from(digit - b'0'));
        u8::try_from(value).ok()
    }

    fn hexadecimal(&mut self, letter: char, digits: usize) -> Result<u32, String> {
        let value = self.rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = value.and_then(|text| u32::from_str_radix(text, 16).ok());
        let value = value.ok_or_else(|| format!(r"`\{letter}` takes {digits} hexadecimal digits"))?;
        self.rest = &self.rest[digits..];
        Ok(value)
    }

    /// Reads what means the same inside and outside a class.
    fn class_escape(&mut self, letter: char, place: &str) -> Result<Member, String> {
        let lower = letter.to_ascii_lowercase();
        if matches!(lower, 'd' | 's' | 'w') {
            let set = Set::named(lower as u8);
            return Ok(Member::Set(if letter == lower { set } else { set.inverted() }));
        }
        if let Some(byte) = super::escaped(letter).filter(|_| letter != 'b') {
            return Ok(Member::Byte(byte));
        }
        match letter {
            'x' => Ok(Member::Byte(self.hexadecimal(letter, 2)? as u8)),
            'u' | 'U' => {
                let value = self.hexadecimal(letter, if letter == 'u' { 4 } else { 8 })?;
                char::from_u32(value).map(Member::Letter).ok_or_else(|| format!("U+{value:04X} is no character"))
            }
            letter if letter.is_ascii_alphanumeric() => Err(format!(r"`\{letter}` means nothing {place}in it")),
            letter => Ok(Member::Letter(letter)),
        }
    }

    /// Reads a class after its `[`.
    fn class(&mut self) -> Parsed {
        let inverted = self.eat("^");
        let mut set = Set::default();
        let mut letters = Vec::new();
        let mut first = true;
        loop {
            if !first && self.eat("]") {
                break;
            }
            first = false;
            let start = self.member()?;
            let ranges = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let (low, high) = match start {
                Member::Set(other) => {
                    set.add(other);
                    continue;
                }
                Member::Letter(letter) if !letter.is_ascii() => {
                    if ranges {
                        return Err(format!("a range can't begin with `{letter}`: only ASCII can"));
                    }
                    letters.push(self.letter(letter));
                    continue;
                }
                Member::Letter(letter) => (letter as u8, ranges),
                Member::Byte(byte) => (byte, ranges),
            };
            let high = match high.then(|| self.range_end()).transpose()? {
                Some(high) if high < low => return Err("a range in it ends before it begins".to_owned()),
                Some(high) => high,
                None => low,
            };
            (low..=high).for_each(|byte| set.insert(byte));
        }
        if self.options.ignore_case {
            set.fold_case();
        }
        Ok(match (inverted, letters.is_empty()) {
            (false, true) => Node::One(set),
            (true, true) => Node::One(set.inverted()),
            (false, false) => {
                letters.push(Node::One(set));
                Node::Either(letters)
            }
            (true, false) => {
                let none = Node::Look { behind: false, negative: true, node: Box::new(Node::Either(letters)) };
                Node::Concat(vec![none, Node::One(set.inverted())])
            }
        })
    }

    fn range_end(&mut self) -> Result<u8, String> {
        self.eat("-");
        match self.member()? {
            Member::Byte(byte) => Ok(byte),
            Member::Letter(letter) if letter.is_ascii() => Ok(letter as u8),
            Member::Letter(_) | Member::Set(_) => Err("a range in it does not end in an ASCII character".to_owned()),
        }
    }

    fn member(&mut self) -> Result<Member, String> {
        let letter = self.next().ok_or("a `[` is not closed")?;
        if letter != '\\' {
            return Ok(Member::Letter(letter));
        }
        let letter = self.next().ok_or("it ends in a backslash")?;
        match letter {
            'b' => Ok(Member::Byte(8)),
            '0'..='7' => match self.octal(letter) {
                Some(byte) => Ok(Member::Byte(byte)),
                None => Err(format!(r"`\{letter}` means nothing inside `[…]`")),
            },
            letter => self.class_escape(letter, "inside `[…]` "),
        }
    }
}

/// What one place of a class, or an escape, stands for.
enum Member {
    Set(Set),
    Byte(u8),
    Letter(char),
}
