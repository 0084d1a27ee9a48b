//! Everything that can be wrong with a machine's enrolment, found out while its join token is unspent.

use cara_proto::agent::{EnrollRequest, EnrollResponse};

use super::dial_back;
use crate::api::Api;
use crate::error::ApiError;
use crate::pki::{BACKDATE, Issued};
use crate::wire::millis;

/// What to do about an address that the leader can't dial.
const UNREACHABLE: &str = "give the agent an address with --advertise that the servers can dial, and open the port of \
    --volume-listen; without --advertise its volumes travel through the servers";

/// What the log would say, whether the machine answers where it says that it does, and the time here. The signed
/// certificate was only made to see that its request can be signed; it is thrown away, and nobody trusts it.
pub(super) async fn check(
    api: &Api,
    request: &EnrollRequest,
    token_hash: &str,
    issued: &Issued,
) -> Result<EnrollResponse, ApiError> {
    let now_ms = api.env.clock.wall_ms();
    api.read_local(|state| {
        cara_core::enrolment::preflight(state, token_hash, &issued.key_hash, &request.node_name, now_ms)
    })?;
    if !request.volume_address.is_empty() {
        dial_back(api, "node", &request.volume_address, UNREACHABLE).await?;
    }
    let now_ms = api.env.clock.wall_ms();
    Ok(EnrollResponse {
        servers: api.server_addresses(),
        server_time_ms: now_ms,
        not_before_ms: now_ms.saturating_sub(millis(BACKDATE)),
        not_after_ms: issued.not_after_ms,
        ..EnrollResponse::default()
    })
}
