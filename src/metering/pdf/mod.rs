//! Reads a PDF for the most tokens that its pages may cost. Pure, and bounded: 64 MiB inflated, 256 MiB scanned, no trees.
//!
//! PDF libraries build a tree of every object, which a small file can make arbitrarily large. And a reader that follows the file's
//! own index counts what the index lists, while a provider's reader may repair the file and find more. So the index is ignored:
//! every object in the file counts, in each of its revisions and in object streams too. Where two readers could differ, the larger
//! count wins; what cannot be read at all is `None`, and costs the whole context.

mod count;
mod file;
mod filters;
mod objects;
mod strings;
mod syntax;

use count::PdfCounter;
use file::PdfFile;
use syntax::name;

/// The most tokens of a document: for each page its picture and the bytes of its text, at least 3,000.
pub fn tokens(pdf: &[u8]) -> Option<u64> {
    let head = pdf.get(..1_024).unwrap_or(pdf);
    memchr::memmem::find(head, b"%PDF-")?;
    if is_encrypted(pdf) {
        return None;
    }
    let mut file = PdfFile::new(pdf);
    file.find_objects()?;
    let facts = file.facts()?;
    PdfCounter::new(file, facts).count()
}

/// Whether the name `Encrypt` occurs anywhere, also with `#xx` in place of letters.
fn is_encrypted(pdf: &[u8]) -> bool {
    let escaped = |at: usize| {
        let before = pdf
            .get(at.saturating_sub(b"/Encryp".len())..at)
            .unwrap_or_default();
        let slash = before
            .iter()
            .rposition(|byte| *byte == b'/')
            .map(|place| at.saturating_sub(before.len()).saturating_add(place));
        let found = slash.and_then(|slash| syntax::token(pdf, slash));
        found.is_some_and(|(item, _)| name(item.bytes).as_ref() == b"Encrypt")
    };
    memchr::memmem::find(pdf, b"/Encrypt").is_some() || memchr::memchr_iter(b'#', pdf).any(escaped)
}

#[cfg(test)]
mod tests;
