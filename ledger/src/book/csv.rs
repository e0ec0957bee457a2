//! Rows for spreadsheets, for every program that writes them. No cell is ever executed: text that begins like a formula gets an
//! apostrophe in front; control characters and those that change text direction become spaces.

use crate::value::text::shown;

/// What a formula begins with, also in full width, which spreadsheets read as the same.
const SIGNS: [char; 12] = [
    '=', '+', '-', '@', '|', '%', '＝', '＋', '－', '＠', '｜', '％',
];

/// A whole document: a header and its rows.
pub fn document(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = line(header.iter().copied());
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str)));
    }
    text
}

/// One row with its line end.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    cells.into_iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n"
}

fn cell(cell: &str) -> String {
    let text: String = shown(cell)
        .map(|(c, is_shown)| if is_shown { c } else { ' ' })
        .collect();
    let number = text
        .strip_prefix('-')
        .unwrap_or(&text)
        .chars()
        .all(|c| c.is_ascii_digit() || c == '.');
    let formula = !number && text.trim_start().starts_with(SIGNS);
    let text = if formula { format!("'{text}") } else { text };
    if text.contains([',', ';', '"', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spreadsheet_executes_a_cell() {
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
        assert_eq!(cell("@SUM(A1)"), "\"'@SUM(A1)\"");
        for sign in SIGNS {
            let formula = format!("{sign}SUM(A1)");
            assert_eq!(cell(&formula), format!("\"'{formula}\""));
        }
        assert_eq!(cell("\t=1"), "\"' =1\"");
        assert_eq!(cell("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
        assert_eq!(cell("-0.5"), "-0.5");
        assert_eq!(cell("a,\"b\"\n"), "\"a,\"\"b\"\" \"");
        assert_eq!(
            document(&["a", "b"], &[vec!["1".to_owned(), String::new()]]),
            "a,b\r\n1,\r\n"
        );
    }
}
