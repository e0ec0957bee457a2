//! How typed values are read, on the command line and in bodies, each with words about what to type instead.

use farebox_ledger::{Amount, CustomerId, Gross, KeyId, Scope, search};

/// A value, or an explicit `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<T>(pub Option<T>);

/// A whole number above 0, or `none`.
pub fn number_or_none(text: &str) -> Result<Setting<u32>, String> {
    if text == "none" {
        return Ok(Setting(None));
    }
    match text.parse() {
        Ok(number) if number > 0 => Ok(Setting(Some(number))),
        _ => Err("write a whole number above 0, or none; to stop a key, block it".to_owned()),
    }
}

/// A key's id. Of a secret that was pasted instead, the id in it: a refusal would print the secret.
pub fn key_id(text: &str) -> Result<KeyId, String> {
    search::key_id(text).map_err(|error| error.to_string())
}

/// A customer's id.
pub fn customer_id(text: &str) -> Result<CustomerId, String> {
    text.parse::<CustomerId>()
        .map_err(|error| error.to_string())
}

/// A key's id, or a customer's.
pub fn scope(text: &str) -> Result<Scope, String> {
    if text.starts_with("c_") {
        customer_id(text).map(Scope::Customer)
    } else {
        key_id(text).map(Scope::Key)
    }
}

/// A text, or `none`.
pub fn setting_text(text: &str) -> Result<Setting<String>, String> {
    Ok(Setting((text != "none").then(|| text.to_owned())))
}

/// A slug that is not empty.
pub fn slug(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("write slugs with commas between them".to_owned())
    } else {
        Ok(text.trim().to_owned())
    }
}

/// A label that is not empty.
pub fn label(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("the label is empty; write who has this key".to_owned())
    } else {
        one_line(text)
    }
}

/// How a refusal of a text with control characters begins.
pub const ONE_LINE: &str = "write one line, without control characters";

/// A text without line ends and other control characters, which no table shows.
pub fn one_line(text: &str) -> Result<String, String> {
    match text.chars().find(|character| character.is_control()) {
        None => Ok(text.to_owned()),
        Some(control) => {
            let code = u32::from(control);
            Err(format!("{ONE_LINE}; this has U+{code:04X}"))
        }
    }
}

/// An amount that is paid; nothing is no payment.
pub fn payment(text: &str) -> Result<Amount, String> {
    match Amount::parse_payment(text) {
        Ok(Amount::ZERO) => Err("type more than zero, like 12.50".to_owned()),
        read => read.map_err(|error| error.to_string()),
    }
}

/// A correction: an amount with a sign; without a sign it is a credit.
pub fn correction(text: &str) -> Result<Amount, String> {
    let amount = Amount::parse_adjustment(text).map_err(|error| error.to_string())?;
    if amount == Amount::ZERO {
        Err("a correction of zero changes nothing".to_owned())
    } else {
        Ok(amount)
    }
}

/// An amount in a payment's currency.
pub fn gross(text: &str) -> Result<Gross, String> {
    Gross::parse(text).map_err(|error| error.to_string())
}

/// What was paid in.
pub fn currency(text: &str) -> Result<String, String> {
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(text.to_owned())
    } else {
        Err("write three capital letters, like EUR".to_owned())
    }
}
