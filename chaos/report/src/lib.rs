//! One offline HTML page about one simulated run: swim lanes, faults, messages, verdicts.
//!
//! [`html`] turns a [`Recording`] into a page that needs no network, no server and no library: the facts are embedded as
//! JSON, the scripts of `src/page` draw them. The page opens at the first finding.
//!
//! Invariant: no text of a recording can become markup or script. In the page's source every `<` of the data is escaped, and
//! the scripts write texts as texts only.
//! Invariant: the same recording gives the same page, byte by byte.

mod page;
mod recording;
mod thin;

pub use page::html;
pub use recording::{Call, Found, Host, Mark, Message, Recording, Span};
