//! Width and height of an inline picture, if every parser agrees about them.
//!
//! Parsers differ when a file bends the format: one skips a fill byte that another takes for a marker, and they find two sizes. So
//! the header is parsed strictly, and anything unusual has no size: the estimate then takes the largest.

/// The first bytes of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The size in pixels according to the beginning of a file; `whole`: nothing follows it.
pub(crate) fn size(head: &[u8], whole: bool) -> Option<(u32, u32)> {
    let size = match head {
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', rest @ ..] => gif(rest),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            rest @ ..,
        ] => webp(rest),
        [0xff, 0xd8, rest @ ..] => jpeg(rest),
        _ => png(head.strip_prefix(PNG)?, whole),
    };
    size.filter(|(width, height)| *width > 0 && *height > 0)
}

/// The header is the first chunk, and the only one of its kind before the picture's data: with two, parsers may take either.
fn png(mut rest: &[u8], whole: bool) -> Option<(u32, u32)> {
    let [
        0,
        0,
        0,
        13,
        b'I',
        b'H',
        b'D',
        b'R',
        w1,
        w2,
        w3,
        w4,
        h1,
        h2,
        h3,
        h4,
        ..,
    ] = rest
    else {
        return None;
    };
    let size = (
        u32::from_be_bytes([*w1, *w2, *w3, *w4]),
        u32::from_be_bytes([*h1, *h2, *h3, *h4]),
    );
    let mut first = true;
    while let [l1, l2, l3, l4, n1, n2, n3, n4, behind @ ..] = rest {
        let length = usize::try_from(u32::from_be_bytes([*l1, *l2, *l3, *l4])).ok()?;
        match &[*n1, *n2, *n3, *n4] {
            b"IDAT" => return Some(size),
            b"IHDR" if !std::mem::take(&mut first) => return None,
            _ => {}
        }
        // Each chunk ends in four bytes of checksum.
        rest = behind.get(length.checked_add(4)?..).unwrap_or_default();
    }
    whole.then_some(size)
}

/// Segments with a length, one after the other, up to the frame header.
fn jpeg(mut rest: &[u8]) -> Option<(u32, u32)> {
    while let [0xff, mark, l1, l2, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*l1, *l2])).checked_sub(2)?;
        match mark {
            // Tables, comments, and application data.
            0xc4 | 0xc8 | 0xcc | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => rest = behind.get(length..)?,
            0xc0..=0xcf => {
                let [_, h1, h2, w1, w2, ..] = behind else {
                    return None;
                };
                return Some((
                    u16::from_be_bytes([*w1, *w2]).into(),
                    u16::from_be_bytes([*h1, *h2]).into(),
                ));
            }
            _ => return None,
        }
    }
    None
}

/// The screen, or the first frame if it extends further: some parsers look at one, some at the other.
fn gif(rest: &[u8]) -> Option<(u32, u32)> {
    let [w1, w2, h1, h2, flags, _, _, rest @ ..] = rest else {
        return None;
    };
    let of = |low: &u8, high: &u8| u32::from(u16::from_le_bytes([*low, *high]));
    let colours = |flags: u8| {
        if flags & 0x80 == 0 {
            0
        } else {
            3 << ((flags & 7) + 1)
        }
    };
    let mut rest = rest.get(colours(*flags)..)?;
    loop {
        match rest {
            [b',', x1, x2, y1, y2, fw1, fw2, fh1, fh2, ..] => {
                return Some((
                    of(w1, w2).max(of(x1, x2) + of(fw1, fw2)),
                    of(h1, h2).max(of(y1, y2) + of(fh1, fh2)),
                ));
            }
            [b'!', _, blocks @ ..] => {
                rest = blocks;
                // Blocks with a one-byte length; the last one is empty.
                while let [length, behind @ ..] = rest
                    && *length > 0
                {
                    rest = behind.get(usize::from(*length)..)?;
                }
                rest = rest.strip_prefix(&[0])?;
            }
            _ => return None,
        }
    }
}

fn webp(rest: &[u8]) -> Option<(u32, u32)> {
    let kind = rest.get(..4)?;
    match (kind, rest.get(8..)?) {
        (b"VP8X", [_, _, _, _, w1, w2, w3, h1, h2, h3, ..]) => {
            let of = |low: &u8, middle: &u8, high: &u8| {
                u32::from_le_bytes([*low, *middle, *high, 0]) + 1
            };
            Some((of(w1, w2, w3), of(h1, h2, h3)))
        }
        (b"VP8L", [0x2f, b1, b2, b3, b4, ..]) => {
            let bits = u32::from_le_bytes([*b1, *b2, *b3, *b4]);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        // The upper two bits of each side are a scale.
        (b"VP8 ", [_, _, _, 0x9d, 1, 0x2a, w1, w2, h1, h2, ..]) => {
            let of = |low: &u8, high: &u8| u32::from(u16::from_le_bytes([*low, *high]) & 0x3fff);
            Some((of(w1, w2), of(h1, h2)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(width: u16, height: u16) -> Vec<u8> {
        [
            &[0xff, 0xc0, 0, 17, 8][..],
            &height.to_be_bytes(),
            &width.to_be_bytes(),
            &[3, 1, 17, 0, 2, 17, 0, 3, 17, 0],
        ]
        .concat()
    }

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes()[..], name, data, &[0; 4]].concat()
    }

    fn header(width: u32, height: u32) -> Vec<u8> {
        chunk(
            b"IHDR",
            &[
                &width.to_be_bytes()[..],
                &height.to_be_bytes(),
                &[8, 2, 0, 0, 0],
            ]
            .concat(),
        )
    }

    #[test]
    fn a_jpeg_has_the_size_of_its_frame_unless_readers_could_differ() {
        let of = |segments: &[&[u8]]| size(&[&[0xff, 0xd8][..], &segments.concat()].concat(), true);
        let comment: &[u8] = &[0xff, 0xfe, 0, 4, b'x', b'y'];
        assert_eq!(of(&[comment, &frame(640, 480)]), Some((640, 480)));
        assert_eq!(
            of(&[
                &[0xff],
                &frame(2_048, 768),
                &vec![0; 49_152 - 18],
                &frame(8, 8)
            ]),
            None,
            "a fill byte"
        );
        assert_eq!(
            of(&[
                &[0xff, 1, 0, 8, 0xff, 0xfe, 0, 21],
                &frame(8, 8),
                &frame(9, 9)
            ]),
            None,
            "a mark without a length"
        );
        assert_eq!(of(&[&[0xff, 0xd0], &frame(8, 8)]), None);
        assert_eq!(of(&[comment]), None, "cut before its frame");
        assert_eq!(of(&[&frame(640, 0)]), None, "the height comes later");
    }

    #[test]
    fn a_png_has_one_header() {
        let of = |chunks: &[Vec<u8>], whole| size(&[PNG, &chunks.concat()].concat(), whole);
        let text = chunk(b"tEXt", &[b'x'; 40]);
        assert_eq!(
            of(
                &[header(640, 480), text.clone(), chunk(b"IDAT", &[])],
                false
            ),
            Some((640, 480))
        );
        assert_eq!(
            of(&[header(640, 480), text.clone()], true),
            Some((640, 480))
        );
        assert_eq!(
            of(&[header(640, 480), text.clone()], false),
            None,
            "another header may follow"
        );
        assert_eq!(
            of(&[header(8, 8), header(640, 480), chunk(b"IDAT", &[])], true),
            None
        );
        assert_eq!(of(&[text, header(8, 8)], true), None);
    }

    #[test]
    fn a_gif_is_as_large_as_its_first_frame() {
        let screen = [b"GIF89a".as_slice(), &[1, 0, 1, 0, 0x80, 0, 0], &[9; 6]].concat();
        let of = |rest: &[u8]| size(&[&screen[..], rest].concat(), true);
        let first = [b',', 2, 0, 0, 0, 0, 8, 0, 3, 0];
        assert_eq!(of(&first), Some((2_050, 768)));
        assert_eq!(
            of(&[&[b'!', 0xf9, 4, 0, 0, 0, 0, 0], &first[..]].concat()),
            Some((2_050, 768))
        );
        assert_eq!((of(b"!\xf9\x04"), of(b""), of(b";")), (None, None, None));
    }

    #[test]
    fn a_webp_of_each_kind_says_its_size() {
        let of = |kind: &[u8; 4], data: &[u8]| {
            size(
                &[b"RIFF\0\0\0\0WEBP", &kind[..], &[0; 4], data].concat(),
                true,
            )
        };
        assert_eq!(
            of(b"VP8X", &[0, 0, 0, 0, 99, 0, 0, 49, 0, 0]),
            Some((100, 50))
        );
        assert_eq!(of(b"VP8L", &[0x2f, 99, 0x40, 0x0c, 0]), Some((100, 50)));
        assert_eq!(
            of(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 100, 0x40, 50, 0]),
            Some((100, 50))
        );
        assert_eq!(of(b"ALPH", &[0; 10]), None);
    }
}
