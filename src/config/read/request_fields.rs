//! Reads what a provider's table says about the fields of requests: `pass`, `drop`, `pin` and `customer_id`. Warns where a drop changes
//! what a customer gets or pays.

use farebox_protocol::{CallKind, Family, WirePath, translate};
use farebox_toml::{Code, Entry, Fields, KEYS, Placed, Report, shorten};

use crate::config::{Preset, ProviderFields};

/// Without these there is no request.
const NEEDED: &[&str] = &["model", "messages", "input", "stream"];
const LONGEST: usize = 100;

/// The words for `customer_id`.
const CUSTOMER_IDS: [(&str, bool); 2] = [("none", false), ("hashed", true)];
/// Where a service that nobody knows may read for whom a request is: the fields of its families that are known the longest.
const COMMON: [(WirePath, &str); 4] = [
    (WirePath::Family(Family::Chat), "user"),
    (WirePath::Family(Family::Responses), "user"),
    (WirePath::Family(Family::Messages), "metadata.user_id"),
    (WirePath::Call(CallKind::Embeddings), "user"),
];

/// Reads all four; the preset's where the file has nothing. `families`: those that the provider speaks, if they are known.
pub(super) fn read_request_fields(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    preset: Option<&Preset>,
    families: Option<&[Family]>,
) -> Option<ProviderFields> {
    let pass = fields.given(report, "pass", read_flags);
    let drop = fields.given(report, "drop", |value, report| {
        read_drop(value, report, families.unwrap_or_default())
    });
    let pin = fields.given(report, "pin", read_pin);
    let customer_id = fields.given(report, "customer_id", |value, report| {
        read_customer_id(value, report, &fields.what, preset)
    });
    Some(ProviderFields {
        pass: pass?.unwrap_or_else(|| preset.map(|preset| preset.pass.clone()).unwrap_or_default()),
        drop: drop?.unwrap_or_default(),
        pin: pin?.unwrap_or_else(|| preset.map(Preset::pin).unwrap_or_default()),
        customer_id: customer_id?.unwrap_or_default(),
    })
}

/// Reads `customer_id = "hashed"`: the field of each path in which the service is sent an id of the customer.
fn read_customer_id(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    preset: Option<&Preset>,
) -> Option<Vec<(WirePath, &'static str)>> {
    if !value.word(report, &CUSTOMER_IDS)? {
        return Some(Vec::new());
    }
    let fields = preset.map_or_else(|| COMMON.to_vec(), Preset::customer_id_in);
    if fields.is_empty() {
        report
            .add(
                Code::Contradiction,
                value.span(),
                format!("{what} has no field for an id of a customer"),
            )
            .help(
                "leave `customer_id` out: this service is not known to read for whom a request is",
            );
        return None;
    }
    Some(fields)
}

/// Reads `pin = { service_tier = "default" }`: the fields of classes in which a provider's account must not decide. Each family writes
/// its own word for the standard, so either one will do here.
pub(super) fn read_pin(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<&'static str>> {
    let fields = value.fields(report, "`pin`", &KEYS.pin)?;
    let mut pinned = Vec::new();
    for name in KEYS.pin.names() {
        let words: &[(&str, ())] = match name {
            "service_tier" => &[("default", ()), ("standard_only", ())],
            "speed" => &[("standard", ())],
            _ => &[("global", ())],
        };
        if let Some(value) = fields.get(name) {
            value.word(report, words)?;
            pinned.push(name);
        }
    }
    Some(pinned)
}

/// Reads `drop = ["context_management", "tools.eager_input_streaming"]`; `None` if something in it is wrong.
fn read_drop(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    families: &[Family],
) -> Option<Vec<String>> {
    let paths = value.each(report, "names of fields", read_path)?;
    for Placed { value: path, span } in &paths {
        if let Some(changes) = changes(path, families) {
            report
                .add(
                    Code::DropChanges,
                    *span,
                    format!("leaving out `{path}` changes {changes}"),
                )
                .help("customers read it in x-farebox-lost and on their receipts; keep it only if the provider refuses the field");
        }
    }
    Some(
        paths
            .into_iter()
            .map(|path| path.value.to_owned())
            .collect(),
    )
}

fn read_path<'r>(value: Entry<'r, '_>, report: &mut Report<'_>) -> Option<Placed<&'r str>> {
    let path = value.printable(report, LONGEST)?;
    if NEEDED.contains(&path.value) {
        report
            .add(
                Code::UnknownWord,
                path.span,
                format!("`{}` cannot be left out: no request is one without it", path.value),
            )
            .help("name fields that the provider refuses: drop = [\"context_management\", \"tools.strict\"]");
        return None;
    }
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !name.is_empty() && name.bytes().all(plain)
    };
    if path.value.split('.').all(is_name) {
        return Some(path);
    }
    report
        .add(
            Code::BadText,
            path.span,
            format!("`{}` is not the name of a field", shorten(path.value)),
        )
        .help("write a name, or names with dots between them: \"tools.strict\" is `strict` in each tool");
    None
}

/// What a customer gets otherwise without a field, if anything.
fn changes(path: &str, families: &[Family]) -> Option<&'static str> {
    if KEYS.pin.has(path) {
        return Some("what requests cost: the provider's account decides about the class");
    }
    if path.split('.').next_back() == Some("cache_control") {
        return Some("what requests cost: nothing is written to a cache");
    }
    families
        .iter()
        .any(|family| translate::fates::changes_answer(*family, path))
        .then_some("the answers")
}

/// A list of words.
pub(super) fn read_flags(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    value.each(report, "strings", |member, report| {
        let word = member.printable(report, LONGEST)?;
        Some(word.value.to_owned())
    })
}
