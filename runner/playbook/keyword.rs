//! The keywords of plays, blocks, roles and tasks: which exist where, and what their values look like.

use std::fmt;

use crate::source::Place;
use crate::value::Value;

/// A keyword's value as written.
#[derive(Debug, Clone)]
pub struct Setting {
    pub value: Value,
    /// Where the value stands.
    pub place: Place,
}

/// The keywords that one play, block or task sets itself.
#[derive(Debug, Clone, Default)]
pub struct Keywords(Vec<(Keyword, Setting)>);

impl Keywords {
    pub fn get(&self, keyword: Keyword) -> Option<&Setting> {
        self.0.iter().find(|(other, _)| *other == keyword).map(|(_, setting)| setting)
    }

    pub fn set(&mut self, keyword: Keyword, setting: Setting) {
        self.0.retain(|(other, _)| *other != keyword);
        self.0.push((keyword, setting));
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Keyword, Setting)> {
        self.0.iter()
    }
}

/// What a keyword's value must look like where it holds no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Any,
    Bool,
    Int,
    Number,
    Text,
    /// A list of texts; a text alone is split at commas.
    Texts,
    /// A condition: a bare expression, a boolean, or a list of both.
    Condition,
    Mapping,
    /// A mapping, or a list of mappings.
    Mappings,
    List,
}

/// Where a keyword may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Where(u8);

impl Where {
    pub const PLAY: Where = Where(1);
    pub const BLOCK: Where = Where(2);
    pub const ROLE: Where = Where(4);
    pub const TASK: Where = Where(8);
    pub const HANDLER: Where = Where(16);
    const ALL: Where = Where(31);
    const TASKS: Where = Where(8 | 16);
    const INNER: Where = Where(2 | 4 | 8 | 16);

    pub fn includes(self, other: Where) -> bool {
        self.0 & other.0 != 0
    }
}

macro_rules! keywords {
    ($($variant:ident $name:literal $place:expr, $shape:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Keyword { $($variant,)* }

        impl Keyword {
            pub const ALL: &'static [Keyword] = &[$(Keyword::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Keyword::$variant => $name,)* }
            }

            pub fn places(self) -> Where {
                match self { $(Keyword::$variant => $place,)* }
            }

            pub fn shape(self) -> Shape {
                match self { $(Keyword::$variant => Shape::$shape,)* }
            }
        }
    };
}

keywords! {
    Name "name" Where::ALL, Text;
    // Of all of them.
    AnyErrorsFatal "any_errors_fatal" Where::ALL, Bool;
    Become "become" Where::ALL, Bool;
    BecomeExe "become_exe" Where::ALL, Text;
    BecomeFlags "become_flags" Where::ALL, Text;
    BecomeMethod "become_method" Where::ALL, Text;
    BecomeUser "become_user" Where::ALL, Text;
    CheckMode "check_mode" Where::ALL, Bool;
    Collections "collections" Where::ALL, Texts;
    Connection "connection" Where::ALL, Text;
    Debugger "debugger" Where::ALL, Text;
    Diff "diff" Where::ALL, Bool;
    Environment "environment" Where::ALL, Mappings;
    IgnoreErrors "ignore_errors" Where::ALL, Bool;
    IgnoreUnreachable "ignore_unreachable" Where::ALL, Bool;
    ModuleDefaults "module_defaults" Where::ALL, Mappings;
    NoLog "no_log" Where::ALL, Bool;
    Port "port" Where::ALL, Int;
    RemoteUser "remote_user" Where::ALL, Text;
    RunOnce "run_once" Where::ALL, Bool;
    Tags "tags" Where::ALL, Texts;
    Throttle "throttle" Where::ALL, Int;
    Timeout "timeout" Where::ALL, Int;
    // Of blocks, roles and tasks.
    DelegateFacts "delegate_facts" Where::INNER, Bool;
    DelegateTo "delegate_to" Where::INNER, Text;
    When "when" Where::INNER, Condition;
    // Of tasks.
    Async "async" Where::TASKS, Int;
    ChangedWhen "changed_when" Where::TASKS, Condition;
    Delay "delay" Where::TASKS, Number;
    FailedWhen "failed_when" Where::TASKS, Condition;
    Poll "poll" Where::TASKS, Int;
    Register "register" Where::TASKS, Text;
    Retries "retries" Where::TASKS, Int;
    Until "until" Where::TASKS, Condition;
    // Of plays.
    FactPath "fact_path" Where::PLAY, Text;
    ForceHandlers "force_handlers" Where::PLAY, Bool;
    GatherFacts "gather_facts" Where::PLAY, Bool;
    GatherSubset "gather_subset" Where::PLAY, Texts;
    GatherTimeout "gather_timeout" Where::PLAY, Int;
    MaxFailPercentage "max_fail_percentage" Where::PLAY, Number;
    Order "order" Where::PLAY, Text;
    Serial "serial" Where::PLAY, Any;
    Strategy "strategy" Where::PLAY, Text;
}

impl Keyword {
    /// Returns the keyword of this name that may stand there.
    pub fn of(name: &str, place: Where) -> Option<Keyword> {
        Keyword::ALL.iter().copied().find(|keyword| keyword.name() == name && keyword.places().includes(place))
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
