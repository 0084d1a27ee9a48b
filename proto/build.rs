//! Compiles the .proto files in pure Rust (protox): no protoc needs to be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "proto/agent.proto",
        "proto/cluster.proto",
        "proto/node.proto",
        "proto/raft.proto",
        "proto/volume.proto",
        "proto/workload.proto",
    ];
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(files, ["proto"])?;
    // These hold secrets, or whatever people send: how they are printed is said in src/debug.rs.
    let guarded = [
        ".cara.agent.EnrollRequest",
        ".cara.cluster.JoinRequest",
        ".cara.cluster.JoinResponse",
        ".cara.cluster.HttpRequest",
        ".cara.cluster.HttpPart",
        ".cara.cluster.Header",
        ".cara.cluster.PullSealingKeyResponse",
        ".cara.cluster.RecoverTokenResponse",
        ".cara.workload.EnvVar",
    ];
    tonic_prost_build::configure()
        .bytes(".cara.raft")
        .bytes(".cara.volume")
        .btree_map(".")
        .codec_path("crate::codec::SmallBuffers")
        .skip_debug(guarded)
        .compile_fds(descriptors)?;
    Ok(())
}
