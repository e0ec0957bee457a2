//! What a running answer is due before its provider has counted it.

use super::*;

#[test]
fn a_stream_is_due_no_more_than_its_limit_and_at_the_price_that_it_can_have() {
    let model = Arc::clone(&meter().model);
    let start = Start {
        cache_marked: false,
        output_limit: 400,
        ..START
    };
    let mut meter = Meter::new(model, start);
    let (input, all) = (1_000 * 3_000_000, 400 * 15_000_000);
    assert_eq!(meter.cost_due().picos(), input, "no write was asked for");
    assert_eq!(meter.cost_at_most().picos(), 1_000 * 3_750_000);
    assert_eq!(meter.cost_at_limit().unwrap().picos(), input + all);
    // 2,100 bytes may be 2,100 tokens, but the target was told to stop at 400.
    meter.observe(&shows(2_100), &WireUsage::default());
    assert!(meter.may_exceed_limit());
    assert_eq!(meter.cost_if_dense().picos(), input + all);
    meter.weigh(meter.shown(), 390);
    assert_eq!(meter.cost_due().picos(), input + 397 * 15_000_000);
    assert!(!meter.may_exceed_limit());
    // A target that a tokenizer finds an eighth beyond its limit ignores it.
    meter.weigh(meter.shown(), 500);
    assert_eq!(meter.cost_at_limit(), None);
    assert_eq!(meter.cost_due().picos(), input + 510 * 15_000_000);
}
