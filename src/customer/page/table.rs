//! Tables: a column is described once, for its heading and, where the screen is narrow, for the name beside each of its cells.

use std::borrow::Cow;

use maud::{Markup, Render, html};

#[derive(Debug, Clone)]
pub(super) struct Column {
    heading: Cow<'static, str>,
    /// Of its cells; those of numbers begin with `number`.
    class: &'static str,
    /// Its cells name their rows.
    is_head: bool,
}

/// A column whose cells have this class.
pub(super) fn column(heading: impl Into<Cow<'static, str>>, class: &'static str) -> Column {
    Column {
        heading: heading.into(),
        class,
        is_head: false,
    }
}

/// The column whose cells name their rows.
pub(super) fn head(heading: &'static str) -> Column {
    Column {
        is_head: true,
        ..column(heading, "name")
    }
}

/// A table of rows with a cell for each column.
pub(super) fn table(
    class: &str,
    caption: impl Render,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    html! {
        table class=(class) role="table" {
            caption.hidden { (caption) }
            thead role="rowgroup" { tr role="row" { @for column in columns {
                th class=[column.class.starts_with("number").then_some("number")] scope="col" role="columnheader" { (column.heading) }
            } } }
            tbody role="rowgroup" { @for row in rows { tr role="row" {
                @for (column, cell) in columns.iter().zip(row) { (column.cell(&cell)) }
            } } }
        }
    }
}

impl Column {
    fn cell(&self, cell: &Markup) -> Markup {
        let class = Some(self.class).filter(|class| !class.is_empty());
        html! {
            @if self.is_head {
                th class=[class] scope="row" role="rowheader" { (cell) }
            } @else {
                td class=[class] role="cell" data-label=(self.heading.trim_end_matches(" (UTC)")) { (cell) }
            }
        }
    }
}
