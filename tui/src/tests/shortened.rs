//! A gateway whose token the console could not read: it shows no ids, and the screens say why.

use super::bench::Bench;
use super::fixture::status;
use crate::admin::StatusReport;
use crate::app::message::Message;

#[test]
fn a_gateway_that_leaves_ids_out_is_marked() {
    let mut bench = Bench::new(120, 24).live();
    let whole = bench.press("2").screen();
    assert!(!whole.contains("left out"), "{whole}");
    let shortened = StatusReport {
        shortened: true,
        ..status()
    };
    bench.tell(Message::Status(Ok(Box::new(shortened))));
    let live = bench.screen();
    assert!(live.contains("key ids are left out, see 7"), "{live}");
    let config = bench.press("7").screen();
    assert!(config.contains("this console could not read"), "{config}");
}
