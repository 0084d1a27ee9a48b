//! Two small macros that let our own enums be prost messages, so that the model needs no second set of wire structs.
//!
//! `wire_enum!` makes a field-less enum a message with one varint (tag 1); an unknown number is a decode error, because
//! to guess would make servers differ. `wire_oneof!` makes an enum of messages a message with a oneof: one field per
//! variant. An unknown field decodes to the variant without data, which the caller refuses.

/// The decode error for a number that this version does not know.
pub(crate) fn unknown_number(number: u32) -> prost::DecodeError {
    // Its successor is not public yet; a hand-written message has no other way to refuse a value.
    #[allow(deprecated)]
    prost::DecodeError::new(format!("unknown enumeration value {number}"))
}

/// Declares a field-less enum that is a prost message with the number in tag 1. The first variant is the default.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $number:literal => $variant:ident $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The stable word for this variant, as the API and the tools print it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// The variant with this word; `None` when there is none.
            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|variant| variant.as_str() == text)
            }

            fn number(self) -> u32 {
                match self {
                    $($name::$variant => $number,)+
                }
            }

            fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)+
                    _ => None,
                }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::ALL[0]
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl prost::Message for $name {
            fn encode_raw(&self, buf: &mut impl prost::bytes::BufMut) {
                prost::encoding::uint32::encode(1, &self.number(), buf);
            }

            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: prost::encoding::WireType,
                buf: &mut impl prost::bytes::Buf,
                ctx: prost::encoding::DecodeContext,
            ) -> Result<(), prost::DecodeError> {
                if tag != 1 {
                    return prost::encoding::skip_field(wire_type, tag, buf, ctx);
                }
                let mut number = 0;
                prost::encoding::uint32::merge(wire_type, &mut number, buf, ctx)?;
                *self = $name::from_number(number).ok_or_else(|| crate::wire::unknown_number(number))?;
                Ok(())
            }

            fn encoded_len(&self) -> usize {
                prost::encoding::uint32::encoded_len(1, &self.number())
            }

            fn clear(&mut self) {
                *self = $name::default();
            }
        }
    };
}

/// Declares an enum of messages that is itself a message with one field per variant, and one variant without data.
macro_rules! wire_oneof {
    (
        $(#[$meta:meta])* $name:ident, $(#[$nmeta:meta])* none $none:ident
        { $($(#[$vmeta:meta])* $tag:literal => $variant:ident($inner:ty),)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Default)]
        pub enum $name {
            $(#[$nmeta])*
            #[default]
            $none,
            $($(#[$vmeta])* $variant($inner),)+
        }

        impl $name {
            /// The names of all variants, the one without data first.
            pub const NAMES: &'static [&'static str] = &[stringify!($none), $(stringify!($variant),)+];

            /// The name of the variant, for logs, metrics and the audit.
            pub fn name(&self) -> &'static str {
                match self {
                    $name::$none => stringify!($none),
                    $($name::$variant(_) => stringify!($variant),)+
                }
            }

            /// The number of the variant on the wire; 0 for the one without data. Newer variants have higher ones.
            pub fn tag(&self) -> u32 {
                match self {
                    $name::$none => 0,
                    $($name::$variant(_) => $tag,)+
                }
            }
        }

        $(
            impl From<$inner> for $name {
                fn from(inner: $inner) -> $name {
                    $name::$variant(inner)
                }
            }
        )+

        impl prost::Message for $name {
            fn encode_raw(&self, buf: &mut impl prost::bytes::BufMut) {
                match self {
                    $name::$none => {}
                    $($name::$variant(inner) => prost::encoding::message::encode($tag, inner, buf),)+
                }
            }

            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: prost::encoding::WireType,
                buf: &mut impl prost::bytes::Buf,
                ctx: prost::encoding::DecodeContext,
            ) -> Result<(), prost::DecodeError> {
                match tag {
                    $($tag => {
                        let mut inner = <$inner>::default();
                        prost::encoding::message::merge(wire_type, &mut inner, buf, ctx)?;
                        *self = $name::$variant(inner);
                        Ok(())
                    })+
                    _ => prost::encoding::skip_field(wire_type, tag, buf, ctx),
                }
            }

            fn encoded_len(&self) -> usize {
                match self {
                    $name::$none => 0,
                    $($name::$variant(inner) => prost::encoding::message::encoded_len($tag, inner),)+
                }
            }

            fn clear(&mut self) {
                *self = $name::$none;
            }
        }
    };
}

pub(crate) use {wire_enum, wire_oneof};
