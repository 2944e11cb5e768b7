//! Lookups of variables.

use super::files::terms;
use crate::template::call::{Call, Lookup, callable};
use crate::template::live::{Live, Result, Undefined, settled};

pub(super) const LOOKUPS: &[Lookup] = &[callable("vars", &["*", "default"], vars).tolerant()];

fn vars(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let default = call.get(0);
    let context = call.context().clone();
    let each = terms(call)?.into_iter().map(|name| match context.templar.inner.variables.get(&name) {
        Some(value) => settled(&value, &context),
        None => match &default {
            Some(default) => Ok(default.clone()),
            None => Ok(Undefined {
                code: Some(call.evaluator.code.clone()),
                ..Undefined::new(name.clone(), format!("'{name}' is undefined"))
            }
            .into()),
        },
    });
    each.collect()
}
