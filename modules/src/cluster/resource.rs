//! Which path of the API serves a kind of object.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Api, listed, text};
use crate::{Error, ErrorKind};

/// A kind as an API server serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    pub(crate) root: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Further names by which people call it: singular and short ones.
    names: Vec<String>,
}

impl Resource {
    pub(crate) fn new(api_version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
        Resource { root: root_of(api_version), plural: plural.into(), kind: kind.into(), namespaced, names: Vec::new() }
    }

    /// The path of all objects of this kind, of one namespace where it is given.
    pub(crate) fn list_path(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.root, self.plural),
            None => format!("{}/{}", self.root, self.plural),
        }
    }

    pub(crate) fn path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{name}", self.list_path(namespace))
    }
}

fn root_of(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

/// The kinds of a server, each group and version asked for once.
pub(crate) struct Discovery<'a> {
    api: &'a Api<'a>,
    known: RefCell<BTreeMap<String, Option<Vec<Resource>>>>,
}

impl<'a> Discovery<'a> {
    pub(crate) fn new(api: &'a Api<'a>) -> Discovery<'a> {
        Discovery { api, known: RefCell::default() }
    }

    fn served(&self, api_version: &str) -> Result<Option<Vec<Resource>>, Error> {
        if let Some(known) = self.known.borrow().get(api_version) {
            return Ok(known.clone());
        }
        let body = self.api.get(&root_of(api_version))?;
        let found = body.map(|body| {
            let resources = body["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
            resources.iter().filter_map(|resource| resource_of(api_version, resource)).collect::<Vec<_>>()
        });
        self.known.borrow_mut().insert(api_version.to_owned(), found.clone());
        Ok(found)
    }

    /// Returns how a kind is served; `None` when it is not.
    ///
    /// # Errors
    /// Whatever the request reports.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Result<Option<Resource>, Error> {
        Ok(self.served(api_version)?.and_then(|served| served.into_iter().find(|resource| resource.kind == kind)))
    }

    /// As [`Discovery::find`], by any name and in any case: `pods`, `po`, `pod`, `Pod`.
    ///
    /// # Errors
    /// Whatever the request reports.
    pub(crate) fn find_by_any_name(&self, api_version: &str, name: &str) -> Result<Option<Resource>, Error> {
        let called = |resource: &Resource| {
            [&resource.kind, &resource.plural]
                .into_iter()
                .chain(&resource.names)
                .any(|own| own.eq_ignore_ascii_case(name))
        };
        Ok(self.served(api_version)?.and_then(|served| served.into_iter().find(called)))
    }

    /// Forgets what a server was said not to have: a new definition may have brought it.
    pub(crate) fn forget(&self, api_version: &str) {
        self.known.borrow_mut().remove(api_version);
    }

    /// Says that a kind is not served, and what is.
    pub(crate) fn missing(&self, api_version: &str, kind: &str) -> Error {
        let has = match self.served(api_version) {
            Ok(Some(served)) => {
                let kinds: Vec<&str> = served.iter().map(|resource| resource.kind.as_str()).collect();
                match kinds.iter().find(|known| known.eq_ignore_ascii_case(kind)) {
                    Some(known) => format!("; did you mean `{known}`?"),
                    None => format!(", which has {}", listed(&kinds)),
                }
            }
            Ok(None) | Err(_) => match self.versions_of(api_version) {
                Some(versions) if !versions.is_empty() => format!("; it serves {}", listed(&versions)),
                _ => ": no such group; is its CustomResourceDefinition to be applied first?".to_owned(),
            },
        };
        Error::new(ErrorKind::Host, format!("the API server has no `{kind}` in `{api_version}`{has}"))
    }

    fn versions_of(&self, api_version: &str) -> Option<Vec<String>> {
        let (group, _) = api_version.split_once('/')?;
        let body = self.api.get(&format!("/apis/{group}")).ok()??;
        let versions = body["versions"].as_array()?;
        Some(versions.iter().map(|version| text(version, "/groupVersion").to_owned()).collect())
    }
}

fn resource_of(api_version: &str, value: &Value) -> Option<Resource> {
    let plural = value["name"].as_str()?;
    // `pods/status` and the like are parts of another resource.
    if plural.contains('/') {
        return None;
    }
    let mut resource =
        Resource::new(api_version, plural, value["kind"].as_str()?, value["namespaced"].as_bool().unwrap_or(false));
    let short = value["shortNames"].as_array().map(Vec::as_slice).unwrap_or_default();
    resource.names =
        short.iter().chain(value.get("singularName")).filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    resource.names.retain(|name| !name.is_empty());
    Some(resource)
}
