//! What real clients were recorded to send to a vendor's own paths is accepted by its double: they send it to the real service too.

use std::path::Path;

use farebox_doubles::{defined_by, judge_body, wire};
use serde_json::Value;

#[test]
fn recorded_requests_of_real_clients_are_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/clients");
    let (mut judged, mut refused) = (0, Vec::new());
    for entry in folder.read_dir().unwrap() {
        let file = entry.unwrap().path();
        let recorded: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let target = recorded["target"].as_str().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let vendor = defined_by(path);
        if recorded["body"].is_object() && wire(vendor, path).is_some() {
            judged += 1;
            // They name the gateway's slug, which says nothing about a vendor's model.
            let mut body = recorded["body"].clone();
            body["model"] = Value::from("a-model");
            let body = body.to_string();
            refused.extend(
                judge_body(vendor, path, body.as_bytes())
                    .err()
                    .map(|no| (file, no.why)),
            );
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(judged > 30, "{judged}");
}
