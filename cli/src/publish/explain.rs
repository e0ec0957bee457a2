//! `farebox check --explain PROVIDER`: each setting of a provider, or of a kind of one, and where it comes from.

use std::iter::repeat;

use serde_json::json;

use super::check;
use crate::args::{Args, OutputFormat};
use crate::output::{self, CommandFailed};
use farebox::config::{
    ExplainedSetting, SettingOrigin, Source, hide_secrets, nearest_models, preset, presets,
};

/// With the two columns before it, what fits into a terminal of 80.
const WIDEST_VALUE: usize = 47;

pub(crate) fn run(args: &Args, name: &str) -> Result<(), CommandFailed> {
    // A kind can be explained before there are files.
    let config = match check::load(args) {
        Err(failed) if args.routes.exists() => return Err(failed),
        loaded => loaded.ok(),
    };
    let provider = config.as_ref().and_then(|config| config.provider(name));
    let (title, kind, settings) = if let Some(provider) = provider {
        let file = Source::read(&args.routes)
            .map_err(|error| CommandFailed::configuration(error.problem))?;
        let title = format!("provider {name}; lines are those of {}", file.name);
        (title, provider.preset, provider.explained(&file.text))
    } else if let Some(kind) = preset(name) {
        (format!("kind {name}"), Some(kind), kind.explained())
    } else {
        let providers = config.iter().flat_map(|config| &config.providers);
        let known = providers.map(|provider| &*provider.name);
        let known = known.chain(presets().iter().map(|kind| &*kind.name));
        return Err(CommandFailed::usage(format!(
            "no provider of {} and no kind is named {:?}; the nearest: {}",
            args.routes.display(),
            hide_secrets(name),
            nearest_models(name, known).join(", ")
        )));
    };
    if args.format() == OutputFormat::Json {
        let kind = kind.map(|kind| &kind.name);
        let provider = provider.map(|provider| &provider.name);
        output::print_json(&json!({ "provider": provider, "kind": kind, "settings": settings }));
    } else {
        let rows: Vec<_> = settings.iter().flat_map(rows).collect();
        output::print(&title);
        output::print(&output::table(&["setting", "from", "value"], &rows));
    }
    Ok(())
}

/// A setting, with as many rows as its value needs.
fn rows(setting: &ExplainedSetting) -> Vec<Vec<String>> {
    let from = match setting.from {
        SettingOrigin::Line(line) => format!("line {line}"),
        SettingOrigin::Kind => "kind".to_owned(),
        SettingOrigin::Library => "library".to_owned(),
        SettingOrigin::Default => "default".to_owned(),
    };
    let value = output::plain(&setting.value);
    let (mut lines, mut rest) = (Vec::new(), value.as_str());
    while let Some((end, _)) = rest.char_indices().nth(WIDEST_VALUE) {
        let (line, _) = rest.split_at(end);
        let (line, after) = rest.split_at(line.rfind(' ').unwrap_or(end));
        lines.push(line);
        rest = after.trim_start();
    }
    lines.push(rest);
    let names = [(&*setting.setting, &*from)]
        .into_iter()
        .chain(repeat(("", "")));
    let cells = names
        .zip(lines)
        .map(|((name, from), line)| [name, from, line]);
    cells.map(|row| row.map(str::to_owned).to_vec()).collect()
}
