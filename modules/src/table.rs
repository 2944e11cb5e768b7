//! The table of modules: a name, how to decode its arguments, and their schema.

#[cfg(feature = "schema")]
use schemars::Schema;

use crate::decode::arguments;
use crate::{DecodeError, Done, Error, Host, Module, Plan, host::Map};

/// A module whose arguments are decoded: ready to plan.
pub trait Decoded {
    /// See [`Module::CONVERGENT`].
    fn convergent(&self) -> bool;
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error>;
    fn report(&self, host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error>;
}

impl<T: Module> Decoded for T {
    fn convergent(&self) -> bool {
        T::CONVERGENT
    }
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        Module::plan(self, host)
    }
    fn report(&self, host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        Module::report(self, host, done, result)
    }
}

/// One module of the table.
pub struct Spec {
    pub name: &'static str,
    pub decode: fn(&Map) -> Result<Box<dyn Decoded>, DecodeError>,
    /// The JSON schema of its arguments; its description is the module's page.
    #[cfg(feature = "schema")]
    pub schema: fn() -> Schema,
}

impl Spec {
    pub(crate) const fn of<T: Module + schemars::JsonSchema + 'static>(name: &'static str) -> Spec {
        Spec {
            name,
            decode: |args| arguments::<T>(args).map(|module| Box::new(module) as Box<dyn Decoded>),
            #[cfg(feature = "schema")]
            schema: || schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>(),
        }
    }
}

macro_rules! modules {
    ($($(#[$meta:meta])* $name:ident)*) => {
        $($(#[$meta])* mod $name;)*

        /// Every module, in alphabetical order.
        pub const MODULES: &[Spec] = &[$($(#[$meta])* Spec::of::<$name::Args>(stringify!($name)),)*];
    };
}
pub(crate) use modules;

/// Returns the module of this name.
pub fn spec_of(name: &str) -> Option<&'static Spec> {
    crate::MODULES.iter().find(|spec| spec.name == name)
}
