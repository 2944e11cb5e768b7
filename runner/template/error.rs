//! What goes wrong in a template, and where it was written.

use std::fmt;

use crate::source::{Diagnostic, Place};

/// A template could not be read or rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// A lowercase fragment, names in backticks or quoted as Ansible quotes them.
    pub message: String,
    /// Where the faulty part of the template was written.
    pub place: Place,
    /// The variable or attribute that is not there, when that is the fault.
    pub undefined: Option<String>,
    /// What to do.
    pub help: Option<String>,
    /// The uses through which it got there, innermost first.
    pub related: Vec<(Place, String)>,
}

impl TemplateError {
    pub fn new(place: Place, message: impl Into<String>) -> TemplateError {
        TemplateError { message: message.into(), place, undefined: None, help: None, related: Vec::new() }
    }

    /// Returns the mistake as it is shown, with its place and how evaluation came there.
    pub fn diagnostic(&self) -> Diagnostic {
        self.clone().into()
    }

    pub(super) fn undefined(place: Place, name: impl Into<String>, message: impl Into<String>) -> TemplateError {
        TemplateError { undefined: Some(name.into()), ..TemplateError::new(place, message) }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> TemplateError {
        self.help = Some(help.into());
        self
    }

    /// Adds a use through which evaluation came here; a place that is known already is not repeated.
    #[must_use]
    pub(super) fn through(mut self, place: Place, says: impl Into<String>) -> TemplateError {
        if !place.is_nowhere() && place != self.place && self.related.iter().all(|(known, _)| *known != place) {
            self.related.push((place, says.into()));
        }
        self
    }

    /// Fills in a place where there is none yet.
    #[must_use]
    pub(super) fn or_at(mut self, place: Place) -> TemplateError {
        if self.place.is_nowhere() {
            self.place = place;
        }
        self
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

impl From<TemplateError> for Diagnostic {
    fn from(error: TemplateError) -> Diagnostic {
        Diagnostic { related: error.related, help: error.help, ..Diagnostic::error(error.place, error.message) }
    }
}
