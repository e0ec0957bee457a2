//! The Config screen: the running configuration, every mistake in the files with its caret, the differences, and the books.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::app::ConsoleApp;
use crate::app::config_page::lines;
use crate::{format, sanitize};

pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let title = match &app.gateway.status {
        Some(status) => format!(
            "Config · running {}: generation {}, catalog {}, routes {}",
            format::clock_of(&status.loaded_at),
            status.generation,
            hash(&status.catalog_hash),
            hash(&status.routes_hash)
        ),
        None => "Config".to_owned(),
    };
    let inner = pen.frame(area, &title);
    let lines = lines(app);
    let height = usize::from(inner.height);
    let first = app.config.selected.min(lines.len().saturating_sub(height));
    for (y, (text, tone)) in (0..inner.height).zip(lines.iter().skip(first)) {
        pen.text(inner, 0, y, text, pen.theme.tone(*tone));
    }
    pen.extent(area, (first, height, lines.len()), "");
}

fn hash(text: &str) -> String {
    sanitize::cut(text, 7)
}
