//! Judges requests for programs in other languages: one JSON object a line, `{"vendor", "path", "headers": [[name, value]…], "body"}`,
//! answered by one line each: why that vendor refuses it, empty if it does not. With `"seal"`, `signature` or `encrypted`, the line is
//! what that vendor seals its thoughts with in an answer to this request; `"thought"` are its words.

use std::io::{self, BufRead as _, Write as _};

use farebox_doubles::{ArrivedRequest, WIRES, defined_by, judge, judge_body, seal, wire};
use serde_json::Value;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", verdict(&asked).replace('\n', " "))?;
        out.flush()?;
    }
    Ok(())
}

fn verdict(asked: &Value) -> String {
    match asked["seal"].as_str() {
        Some("signature") => {
            let thought = asked["thought"].as_str().unwrap_or_default();
            return seal::signature(&asked["body"], &[], thought);
        }
        Some(_) => return seal::encrypted(&seal::answer_name(&asked["body"])),
        None => {}
    }
    let name = asked["vendor"].as_str().unwrap_or_default();
    let named = |wire: &&&farebox_doubles::Wire| wire.name.split(' ').next() == Some(name);
    let Some(named) = WIRES.iter().find(named) else {
        return format!("no such vendor: {name}");
    };
    let path = asked["path"].as_str().unwrap_or_default();
    let body = asked["body"].to_string();
    let verdict = if wire(named.vendor, path).is_none() {
        // A copy of another vendor's wire has no table of its own, and other headers.
        judge_body(defined_by(path), path, body.as_bytes())
    } else {
        let headers: Vec<(String, String)> =
            serde_json::from_value(asked["headers"].clone()).unwrap_or_default();
        let request = ArrivedRequest {
            path,
            headers: &headers,
            body: body.as_bytes(),
        };
        judge(named.vendor, &request)
    };
    verdict.map_or_else(|refusal| refusal.why, |()| String::new())
}
