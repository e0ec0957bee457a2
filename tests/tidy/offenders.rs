//! Files and functions that are longer than the rules allow: what rustfmt's default width brought to light.
//!
//! The list only shrinks. An offender may not grow, and one that has become short enough must leave the list.

/// Functions over 70 lines: file, name, lines.
pub(crate) const FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Files over 600 lines: path, lines.
pub(crate) const FILES: &[(&str, usize)] = &[];

/// What the rule says of something measured: `None` within the rule, or within what the list grants.
pub(crate) fn too_long(lines: usize, most: usize, granted: Option<usize>) -> Option<String> {
    match granted {
        Some(_) if lines <= most => {
            Some("is short enough: take it off the list in tests/tidy/offenders.rs".to_owned())
        }
        Some(granted) if lines <= granted => None,
        _ if lines <= most => None,
        _ => Some(format!("has {lines} lines; at most {most}")),
    }
}

/// Offenders that no longer exist.
pub(crate) fn gone(listed: impl Iterator<Item = String>, seen: &[String]) -> Vec<String> {
    listed
        .filter(|name| !seen.contains(name))
        .map(|name| format!("{name} is gone: take it off the list in tests/tidy/offenders.rs"))
        .collect()
}

#[test]
fn the_list_only_shrinks() {
    assert_eq!(too_long(70, 70, None), None);
    assert_eq!(too_long(80, 70, Some(80)), None);
    for (lines, granted) in [(71, None), (81, Some(80)), (70, Some(80))] {
        assert!(
            too_long(lines, 70, granted).is_some(),
            "{lines} {granted:?}"
        );
    }
}
