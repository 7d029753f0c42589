//! Plans the network. If it no longer fits, the build fails, and the error names the tensors that take most memory.

fn main() -> Result<(), csdfc::BuildError> {
    csdfc::Build::new("builtin:resnet8").memory("400kB").module("classifier").emit()?;
    Ok(())
}
