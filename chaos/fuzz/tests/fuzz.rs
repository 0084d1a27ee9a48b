//! Every property over random bytes and over all inputs that were ever worth keeping.

/// One test for each property, with the name that `make fuzz` calls it by.
macro_rules! fuzz {
    ($($name:ident => $property:path,)+) => {
        $(
            #[test]
            fn $name() {
                bolero::check!().for_each($property);
            }
        )+
    };
}

fuzz! {
    log_entry => cara_fuzz::log::entry,
    log_bent_entry => cara_fuzz::log::bent_entry,
    log_outcome => cara_fuzz::log::outcome,
    log_stored => cara_fuzz::log::stored,
    wire_from_agent => cara_fuzz::wire::from_agent,
    wire_from_server => cara_fuzz::wire::from_server,
    wire_volumes => cara_fuzz::wire::volumes,
    wire_replication => cara_fuzz::wire::replication,
    wire_report => cara_fuzz::wire::report,
    body_node => cara_fuzz::bodies::node,
    body_workload => cara_fuzz::bodies::workload,
    body_requests => cara_fuzz::bodies::requests,
    body_words => cara_fuzz::bodies::words,
    manifest => cara_fuzz::manifest::manifest,
    file_node_identity => cara_fuzz::files::node_identity,
    file_server_identity => cara_fuzz::files::server_identity,
    file_ledger => cara_fuzz::files::ledger,
    join_token => cara_fuzz::files::join_token,
    certificate => cara_fuzz::files::certificate,
}
