//! Protobuf as tonic has it, with small buffers.
//!
//! tonic's own takes 8 KiB for each direction of each call, for as long as the call is open. A leader has a call open with
//! each agent all the time, ten thousand of them, and most of their messages have a few dozen bytes. Buffers grow for longer
//! ones by themselves.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::ProstCodec;

/// What a buffer begins with: a heartbeat or its answer, a few times over.
const BUFFER: usize = 512;
/// Messages of a stream that are ready at the same time are sent together up to so many bytes; tonic's own number.
const TOGETHER: usize = 32 << 10;

/// See the module.
#[derive(Debug, Clone)]
pub struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(BUFFER, TOGETHER))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER, TOGETHER))
    }
}
