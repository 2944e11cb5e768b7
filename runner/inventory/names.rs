//! Names of groups: those that are no names of variables may be changed to ones that are.

use super::{ALL, Inventory, UNGROUPED};
use crate::source::{Diagnostic, Place};

/// What becomes of such names: `force_valid_group_names`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GroupNames {
    /// They stay, and nothing is said.
    #[default]
    Kept,
    /// They stay, and a warning says so.
    Told,
    /// They are changed, and a warning says so.
    Changed,
    /// They are changed.
    ChangedSilently,
}

/// Returns a name with `_` for each character that no name of a variable has.
pub fn group_name(name: &str) -> String {
    let fits = |nth: usize, c: char| (c.is_alphanumeric() || c == '_') && !(nth == 0 && c.is_ascii_digit());
    name.chars().enumerate().map(|(nth, c)| if fits(nth, c) { c } else { '_' }).collect()
}

impl Inventory {
    /// Returns the name that a group gets where it is called so.
    pub(super) fn safe(&mut self, name: &str) -> String {
        match self.names {
            GroupNames::Kept | GroupNames::Told => name.to_owned(),
            GroupNames::Changed | GroupNames::ChangedSilently => {
                let safe = group_name(name);
                self.renamed |= safe != name;
                safe
            }
        }
    }

    /// Returns what there is to say of the groups' names.
    pub(super) fn about_names(&self) -> Option<Diagnostic> {
        let odd =
            || self.groups.keys().find(|name| !matches!(&***name, ALL | UNGROUPED) && group_name(name) != ***name);
        let message = match self.names {
            GroupNames::Kept | GroupNames::ChangedSilently => return None,
            GroupNames::Told => format!("Invalid characters were found in group names but not replaced: `{}`", odd()?),
            GroupNames::Changed if !self.renamed => return None,
            GroupNames::Changed => "Invalid characters were found in group names and automatically replaced".to_owned(),
        };
        Some(Diagnostic::warning(Place::default(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::group_name;

    #[test]
    fn names_become_those_of_variables() {
        assert_eq!(group_name("a-b c.d"), "a_b_c_d");
        assert_eq!(group_name("9lives"), "_lives");
        assert_eq!(group_name("zone_9"), "zone_9");
    }
}
