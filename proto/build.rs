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
    tonic_prost_build::configure().bytes(".cara.raft").bytes(".cara.volume").btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
