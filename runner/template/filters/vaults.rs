//! Texts into a vault and out of it.

use crate::report::secrets;
use crate::template::TemplateError;
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::Value;
use crate::vault::{self, Vault};

/// The id of what a filter encrypts.
const ID: &str = "filter_default";

pub(super) const FILTERS: &[Filter] = &[
    callable("vault", &["secret", "salt", "vault_id", "wrap_object", "vaultid"], vault),
    callable("unvault", &["secret", "vault_id", "vaultid"], unvault),
    callable(vault::LATE, &[], late),
];

fn secret(call: &Call<'_>) -> Result<String> {
    match call.required(0)?.force()? {
        Value::Str(secret) => Ok(secret.as_str().to_owned()),
        other => Err(call.fault(format!("Secret passed is required to be a string, instead we got {}", other.kind()))),
    }
}

fn vault(call: &mut Call<'_>) -> Result<Live> {
    let secret = secret(call)?;
    let Value::Str(plain) = call.value()? else {
        return Err(call.fault(format!("Can only vault strings, instead we got {}", call.value()?.kind())));
    };
    if call.bool_or(3, false)? {
        return Err(call.fault("`wrap_object` is not supported: leave it out, and write `!vault |` before the text"));
    }
    let id = call.text_at(4)?.map_or_else(|| call.text_or(2, ID), Ok)?;
    let salt = call.text_at(1)?.filter(|salt| !salt.is_empty());
    secrets::register(plain.as_str());
    let text = vault::encrypt(plain.as_str().as_bytes(), &id, &secret, salt.as_ref().map(String::as_bytes));
    text.map(Live::from).map_err(|message| call.fault(message))
}

fn unvault(call: &mut Call<'_>) -> Result<Live> {
    let secret = secret(call)?;
    let text = match call.value()? {
        Value::Str(text) => text.as_str().to_owned(),
        other => {
            return Err(call.fault(format!("Vault should be in the form of a string, instead we got {}", other.kind())));
        }
    };
    if !vault::is_vaulted(text.as_bytes()) {
        return Ok(text.into());
    }
    let mut opener = Vault::default();
    opener.add(&call.text_or(1, ID)?, &secret);
    let plain = opener.decrypt(&text).map_err(|message| call.fault(format!("Unable to decrypt: {message}")))?;
    let plain = String::from_utf8(plain).map_err(|_| call.fault("what comes out is not UTF-8"))?;
    secrets::register(&plain);
    Ok(plain.into())
}

/// Opens a value that could not be opened when it was read.
fn late(call: &mut Call<'_>) -> Result<Live> {
    let fault = |message: String| TemplateError::new(Default::default(), message);
    let plain = vault::current().decrypt(&vault::unlate(&call.text()?)).map_err(fault)?;
    let plain = String::from_utf8(plain).map_err(|_| fault("the decrypted text is not UTF-8".to_owned()))?;
    secrets::register(&plain);
    Ok(plain.into())
}
