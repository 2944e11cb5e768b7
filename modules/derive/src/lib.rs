//! `#[derive(Arguments)]`: a table of a type's fields, and a function that takes each of them from what was given.
//!
//! It reads the attributes that `#[derive(Deserialize)]` reads, of which it knows those that arguments use. What serde
//! writes out for every field is kept once in the crate instead, in `decode/arguments.rs`: the agent is a fifth smaller.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, LitStr, Path, Result, Type};

#[proc_macro_derive(Arguments, attributes(serde))]
pub fn arguments(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    derive(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// What a field is when it is not given.
enum Absent {
    Missing,
    Default,
    Function(Path),
}

/// What the attributes say of a field.
struct Said {
    name: String,
    aliases: Vec<String>,
    absent: Absent,
    skip: bool,
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let strict = input.attrs.iter().filter(|attribute| attribute.path().is_ident("serde"));
    let mut denies = false;
    for attribute in strict {
        attribute.parse_nested_meta(|meta| {
            denies |= meta.path.is_ident("deny_unknown_fields");
            if denies { Ok(()) } else { Err(meta.error("arguments know of `deny_unknown_fields` only")) }
        })?;
    }
    let (Data::Struct(data), true) = (&input.data, denies) else {
        return Err(Error::new_spanned(&input.ident, "arguments are a struct with `#[serde(deny_unknown_fields)]`"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "arguments have names"));
    };
    let mut rows = Vec::new();
    let mut takes = Vec::new();
    for field in &fields.named {
        let ident = field.ident.as_ref().expect("a named field has a name");
        let (row, take) = row_and_take(field, ident)?;
        rows.extend(row);
        takes.push(quote! { #ident: #take });
    }
    let of = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl crate::decode::Arguments for #of {
            const ROWS: &'static [crate::decode::Row] = &[#(#rows),*];
            fn take(given: &crate::decode::Given<'_>) -> Self {
                #of { #(#takes),* }
            }
        }
    })
}

/// Returns a field's row, unless it is skipped, and how it is taken.
fn row_and_take(field: &Field, ident: &Ident) -> Result<(Option<TokenStream>, TokenStream)> {
    let said = said(&field.attrs, ident)?;
    let of = &field.ty;
    let name = &said.name;
    if said.skip {
        return Ok((None, quote! { ::core::default::Default::default() }));
    }
    if name.starts_with('+') {
        let row = quote! { crate::decode::Row::Block(<#of as crate::decode::Arguments>::ROWS) };
        return Ok((Some(row), quote! { <#of as crate::decode::Arguments>::take(given) }));
    }
    let (required, take) = match said.absent {
        Absent::Missing if is_option(of) => (false, quote! { given.optional(#name) }),
        Absent::Missing => (true, quote! { given.required(#name) }),
        Absent::Default => (false, quote! { given.optional(#name) }),
        Absent::Function(path) => (false, quote! { given.or(#name, #path) }),
    };
    let aliases = &said.aliases;
    let row = quote! { crate::decode::Row::of::<#of>(&[#name, #(#aliases),*], #required) };
    Ok((Some(row), take))
}

fn said(attributes: &[Attribute], ident: &Ident) -> Result<Said> {
    let mut said = Said { name: ident.unraw().to_string(), aliases: Vec::new(), absent: Absent::Missing, skip: false };
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                said.skip = true;
            } else if meta.path.is_ident("rename") {
                said.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("alias") {
                said.aliases.push(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("default") && meta.input.peek(syn::Token![=]) {
                said.absent = Absent::Function(meta.value()?.parse::<LitStr>()?.parse()?);
            } else if meta.path.is_ident("default") {
                said.absent = Absent::Default;
            } else {
                return Err(meta.error("arguments know of `alias`, `default`, `rename` and `skip` only"));
            }
            Ok(())
        })?;
    }
    Ok(said)
}

/// Whether a type is written as an `Option`, which is `None` when it is not given.
fn is_option(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}
