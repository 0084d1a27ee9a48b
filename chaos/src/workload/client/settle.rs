//! One change of the API: sent again under the same Idempotency-Key until an answer settles it, and noted for the judge of the
//! audit log.

use std::time::Duration;

use cara_checker::audit::{Answer, Asked};
use http::{Method, StatusCode};

use super::super::bodies::finds_it_so;
use super::super::rest::{Ask, Told};
use super::Client;

/// All attempts of one operation. Long enough to outlast any fault, so that few outcomes stay unknown.
const OPERATION: Duration = Duration::from_secs(45);

/// How an operation ended.
pub(super) enum Settled {
    Done(Told),
    Refused(Told),
    Unknown,
}

impl Client {
    /// Asks one server after the other until there is an answer that settles it.
    pub(super) async fn settle(&self, mut ask: Ask) -> Settled {
        let key = cara_env::hex(&*self.env.rng, 8);
        ask.key = Some(key.clone());
        let settled = self.try_until_settled(&ask).await;
        let answer = match &settled {
            // Making something changes something for certain; replacing may find it as it shall be.
            Settled::Done(_) if ask.method == Method::POST && !finds_it_so(&ask.path) => Answer::Done(None),
            // A change that changes nothing is not recorded, and clients are not told the difference.
            Settled::Done(_) | Settled::Unknown => Answer::Unknown,
            Settled::Refused(told) if told.is_late => Answer::Unknown,
            Settled::Refused(_) => Answer::Refused,
        };
        let mut history = self.shared.history();
        history.acknowledged += u64::from(matches!(settled, Settled::Done(_)));
        history.asked.push(Asked { at: self.now(), client: self.name.clone(), request: key, answer });
        settled
    }

    async fn try_until_settled(&self, ask: &Ask) -> Settled {
        let what = format!("{} {}", ask.method, ask.path);
        let until = self.now() + OPERATION;
        let mut is_late = false;
        while self.now() < until {
            if let Ok(told) = self.rest.ask(&self.server(), ask, self.patience()).await {
                let told = Told { is_late, ..told };
                if told.status.is_success() {
                    return Settled::Done(told);
                }
                if told.status.is_client_error() {
                    return Settled::Refused(told);
                }
                // No leader at the moment, or one without room; nothing was done, or it is safe to do it again.
                let later = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE];
                if !later.contains(&told.status) {
                    self.strange(&what, &told);
                }
            }
            is_late = true;
            self.env.clock.sleep(Duration::from_millis(50 + self.env.rng.below(300))).await;
        }
        Settled::Unknown
    }
}
