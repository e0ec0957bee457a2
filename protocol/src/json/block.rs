//! Scans JSON text 32 bytes at a time: where a string may end, and which kinds of bytes it contains.
//!
//! Every function answers with one bit for each byte, the lowest for the first.

use wide::u8x32;

use super::escape_length;

/// The bits below the lowest one that is set; all, if none is.
pub(super) fn below(bits: u32) -> u32 {
    (bits & bits.wrapping_neg()).wrapping_sub(1)
}

/// The bytes behind a backslash that is not itself escaped. `open` says whether the block before ended in one, then whether this
/// one does. Runs of backslashes are taken apart all at once: subtracting carries through each of them (after simdjson).
pub(super) fn escaped(backslashes: u32, open: &mut bool) -> u32 {
    const ODD: u32 = 0xaaaa_aaaa;
    let first = u32::from(*open);
    let begins = backslashes & !first;
    let series = ((begins << 1) | ODD).wrapping_sub(begins) ^ ODD;
    *open = series & backslashes & (1 << 31) != 0;
    series ^ (backslashes | first)
}

/// One block of text.
#[derive(Clone, Copy)]
pub(super) struct Block(u8x32);

impl Block {
    pub(super) const BYTES: usize = 32;

    pub(super) fn of(bytes: &[u8; Self::BYTES]) -> Self {
        Self(u8x32::new(*bytes))
    }

    fn are(self, byte: u8) -> u8x32 {
        self.0.simd_eq(u8x32::splat(byte))
    }

    pub(super) fn quotes(self) -> u32 {
        self.are(b'"').to_bitmask()
    }

    pub(super) fn controls(self) -> u32 {
        let last = u8x32::splat(0x1f);
        self.0.max(last).simd_eq(last).to_bitmask()
    }

    /// Bytes of characters that are not ASCII: those with the highest bit.
    pub(super) fn others(self) -> u32 {
        self.0.to_bitmask()
    }

    pub(super) fn backslashes(self) -> u32 {
        self.are(b'\\').to_bitmask()
    }

    /// What may follow a backslash, of these bytes at least. `at` is the block's place in `bytes`.
    pub(super) fn escapable(self, bytes: &[u8], at: usize, escaped: u32) -> u32 {
        let letters = self.are(b'n') | self.are(b'r') | self.are(b't') | self.are(b'b') | self.are(b'f');
        let mut good = (letters | self.are(b'"') | self.are(b'\\') | self.are(b'/')).to_bitmask();
        let mut rest = escaped & !good;
        while rest != 0 {
            let run = rest.trailing_zeros();
            if escape_length(bytes, (at + run as usize).wrapping_sub(1)).is_ok() {
                good |= 1 << run;
            }
            rest &= rest - 1;
        }
        good
    }
}
