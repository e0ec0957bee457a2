//! The pictures of the console in the README and in its manual: drawn from screens, and compared, so that they never show a console of
//! the past.
//! `FAREBOX_BLESS=1 cargo test -p farebox-console picture` draws it anew.

use std::fmt::Write as _;
use std::path::Path;

use farebox_ledger::Customer;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::bench::Bench;
use super::fixture::keys;
use crate::view::Theme;

/// Pixels of a cell. Text is stretched to them, so that any monospaced font keeps the columns.
const CELL: (usize, usize) = (8, 17);
const MARGIN: usize = 10;
const PAPER: &str = "#1b1e24";
const INK: &str = "#d7dae0";

/// A picture: its file, what it shows, its size in cells, and the keys that show it.
type Picture = (&'static str, &'static str, (u16, u16), &'static str);

const PICTURES: &[Picture] = &[
    (
        "console.svg",
        "farebox-console: the keys, and one of them",
        (170, 26),
        "jjj",
    ),
    (
        "console-80x24.svg",
        "farebox-console at 80x24: three marked keys",
        (80, 24),
        "<space><space>jj<space>",
    ),
    (
        "console-customers.svg",
        "farebox-console at 80x24: customers, and the keys of one of them",
        (80, 24),
        "U<space>jj",
    ),
    (
        "console-customer.svg",
        "farebox-console at 120x30: a customer with its keys, its cap and a payment that was not booked",
        (120, 30),
        "U<enter>]]]]",
    ),
    (
        "console-120x40.svg",
        "farebox-console at 120x40: what all keys spend",
        (120, 40),
        "8",
    ),
    (
        "console-200x50.svg",
        "farebox-console at 200x50: the keys, and the charts of one of them",
        (200, 50),
        "jjj<enter>[",
    ),
];

#[test]
fn the_pictures_are_what_the_console_shows() {
    let plain = |label: &str| label.is_ascii() && !label.contains(char::is_control);
    let shown: Vec<_> = keys()
        .into_iter()
        .filter(|key| plain(&key.settings.label))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let mut old = Vec::new();
    for (name, title, (width, height), keys) in PICTURES {
        let mut bench = Bench::with(*width, *height, shown.clone(), || 1).live();
        let label = |customer: &Customer| plain(&customer.settings.label);
        bench.customers.retain(label);
        bench.press(keys);
        let terminal = bench.terminal(Theme::Dark);
        let drawn = drawing(terminal.backend().buffer(), title);
        let file = folder.join(name);
        if std::env::var_os("FAREBOX_BLESS").is_some() {
            std::fs::write(&file, &drawn).unwrap();
        }
        if std::fs::read_to_string(&file).unwrap_or_default() != drawn {
            old.push(*name);
        }
    }
    assert!(
        old.is_empty(),
        "out of date: {old:?}; FAREBOX_BLESS=1 cargo test -p farebox-console picture"
    );
}

/// A screen as an SVG document.
fn drawing(screen: &Buffer, title: &str) -> String {
    let (columns, rows) = (
        usize::from(screen.area.width),
        usize::from(screen.area.height),
    );
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, rows * CELL.1 + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for (row, cells) in screen.content.chunks(columns).enumerate() {
        let mut column = 0;
        for run in cells.chunk_by(|one, next| look(one) == look(next)) {
            draw_run(&mut svg, (column, row), run);
            column += run.len();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

type Look = (Color, Modifier);

fn look(cell: &Cell) -> Look {
    (cell.fg, cell.modifier)
}

/// Neighbouring cells that look the same.
fn draw_run(svg: &mut String, (column, row): (usize, usize), run: &[Cell]) {
    let (color, modifier) = look(&run[0]);
    let text: String = run.iter().map(Cell::symbol).collect();
    let (x, y) = (MARGIN + column * CELL.0, MARGIN + row * CELL.1);
    let length = run.len() * CELL.0;
    let mut ink = ink(color);
    if modifier.contains(Modifier::REVERSED) {
        let height = CELL.1;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{length}\" height=\"{height}\" fill=\"{ink}\"/>"
        );
        ink = PAPER;
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if modifier.contains(Modifier::BOLD) {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let dim = if modifier.contains(Modifier::DIM) {
        " opacity=\"0.6\""
    } else {
        ""
    };
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        // Ordinary spaces that follow each other are drawn as one.
        .replace(' ', "\u{a0}");
    let base = y + 13;
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{base}\" textLength=\"{length}\" fill=\"{ink}\"{weight}{dim}>{text}</text>"
    );
}

const fn ink(color: Color) -> &'static str {
    match color {
        Color::Cyan => "#56b6c2",
        Color::Green => "#98c379",
        Color::Yellow => "#e5c07b",
        Color::Red => "#e06c75",
        _ => INK,
    }
}
