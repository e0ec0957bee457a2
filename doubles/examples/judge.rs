//! Judges requests for programs in other languages: one JSON object a line, `{"vendor", "path", "headers": [[name, value]…], "body"}`,
//! answered by one line each: why that vendor refuses it, empty if it does not.

use std::io::{self, BufRead as _, Write as _};

use farebox_doubles::{Request, WIRES, judge};
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
    let name = asked["vendor"].as_str().unwrap_or_default();
    let named = |wire: &&&farebox_doubles::Wire| wire.name.split(' ').next() == Some(name);
    let Some(wire) = WIRES.iter().find(named) else {
        return format!("no such vendor: {name}");
    };
    let headers: Vec<(String, String)> =
        serde_json::from_value(asked["headers"].clone()).unwrap_or_default();
    let body = asked["body"].to_string();
    let request = Request {
        path: asked["path"].as_str().unwrap_or_default(),
        headers: &headers,
        body: body.as_bytes(),
    };
    judge(wire.vendor, &request).map_or_else(|refusal| refusal.why, |()| String::new())
}
