//! Long numbers in groups of three digits, as reports and starter files show them.

/// `200000` as `200,000`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
