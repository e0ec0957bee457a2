//! Which file does what a route asks for.

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::table::ApiTask;
use super::{auto_top_up, customers, keys, money, papers, reads, vouchers};

/// Answers a call.
pub(super) async fn run(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    match call.route.task {
        ApiTask::OpenApi | ApiTask::Reserved => Err(ApiError::new(
            501,
            "not_built",
            "this name is kept for a later version",
        )),
        ApiTask::Customers => customers::list(call).await,
        ApiTask::CreateCustomer => customers::create(call).await,
        ApiTask::Customer => customers::show(call).await,
        ApiTask::EditCustomer => customers::edit(call).await,
        ApiTask::Suspend | ApiTask::Resume | ApiTask::Erase => customers::change(call).await,
        ApiTask::Close => customers::close(call).await,
        ApiTask::KeysOf => keys::list(call).await,
        ApiTask::CreateKey => keys::create(call).await,
        ApiTask::Key => keys::show(call).await,
        ApiTask::EditKey => keys::edit(call).await,
        ApiTask::Block | ApiTask::Unblock => keys::change(call).await,
        ApiTask::Revoke => keys::revoke(call).await,
        ApiTask::Rotate => keys::rotate(call).await,
        ApiTask::Reissue => keys::reissue(call).await,
        ApiTask::Link => keys::link(call).await,
        ApiTask::CapsOfCustomer | ApiTask::CapsOfKey => keys::caps(call).await,
        ApiTask::SetCapOfCustomer | ApiTask::SetCapOfKey => keys::set_cap(call).await,
        ApiTask::ClearCapOfCustomer | ApiTask::ClearCapOfKey => keys::clear_cap(call).await,
        ApiTask::SetAutoTopUp => auto_top_up::set(call).await,
        ApiTask::ClearAutoTopUp => auto_top_up::clear(call).await,
        ApiTask::TopUpFailed => auto_top_up::failed(call).await,
        ApiTask::TopUp => money::top_up(call).await,
        ApiTask::Reverse => money::reverse(call).await,
        ApiTask::Adjust => money::adjust(call).await,
        ApiTask::Move => money::give(call).await,
        ApiTask::Assign | ApiTask::Return => money::end_unapplied(call).await,
        ApiTask::Refund => money::refund(call).await,
        ApiTask::EntriesOf | ApiTask::Entries => reads::entries(call).await,
        ApiTask::UsageOf => reads::usage(call).await,
        ApiTask::Events => reads::events(call).await,
        ApiTask::Payments => reads::unapplied(call).await,
        ApiTask::Payment => reads::payment(call).await,
        ApiTask::Receipts => papers::receipts(call).await,
        ApiTask::Receipt => papers::receipt(call).await,
        ApiTask::Statement => papers::statement(call).await,
        ApiTask::Request => reads::request(call).await,
        ApiTask::CreateLot => vouchers::create(call).await,
        ApiTask::Lots => vouchers::list(call).await,
        ApiTask::VoidLot => vouchers::void(call).await,
        ApiTask::Models => Ok(reads::models(call)),
        ApiTask::Margin => reads::margin(call).await,
    }
}
