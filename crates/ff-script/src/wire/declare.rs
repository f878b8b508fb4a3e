//! Macros for generated declarations. Each one writes the type, its codec and its samples.

use super::{DecodeError, Reader, Wire};

/// A struct encoded as a map of its fields.
macro_rules! wire_struct {
    ( $(#[$meta:meta])* $name:ident { $( $(#[$field_meta:meta])* $field:ident ($key:literal): $ty:ty, )* } ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[$field_meta])* pub $field: $ty, )* }

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                let present = 0 $( + usize::from(!$crate::wire::Wire::is_absent(&self.$field)) )*;
                $crate::wire::write_map_len(out, present);
                $(
                    if !$crate::wire::Wire::is_absent(&self.$field) {
                        $crate::wire::write_bytes(out, $key.as_bytes());
                        $crate::wire::Wire::write(&self.$field, out);
                    }
                )*
            }
            fn read(input: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::wire::DecodeError> {
                $( let mut $field: Option<$ty> = None; )*
                // Unknown fields are skipped: a newer library may send more.
                for _ in 0..input.map()? {
                    match input.text()? {
                        $( $key => $field = $crate::wire::field(input, $key)?, )*
                        _ => input.skip()?,
                    }
                }
                Ok(Self { $( $field: $crate::wire::present($field, $key)?, )* })
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                let _ = &rng;
                Self { $( $field: $crate::sample::Sample::sample(rng), )* }
            }
        }
    };
}

/// A struct with some optional fields in a separate map under the key `apart`.
macro_rules! wire_split_struct {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$field_meta:meta])* $field:ident ($key:literal): $ty:ty, )* }
        apart ($apart:literal) { $( $(#[$rare_meta:meta])* $rare:ident ($rare_key:literal): $rare_ty:ty, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )*
            $( $(#[$rare_meta])* pub $rare: $rare_ty, )*
        }

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                let rare = 0 $( + usize::from(!$crate::wire::Wire::is_absent(&self.$rare)) )*;
                let present = usize::from(rare > 0) $( + usize::from(!$crate::wire::Wire::is_absent(&self.$field)) )*;
                $crate::wire::write_map_len(out, present);
                $(
                    if !$crate::wire::Wire::is_absent(&self.$field) {
                        $crate::wire::write_bytes(out, $key.as_bytes());
                        $crate::wire::Wire::write(&self.$field, out);
                    }
                )*
                if rare > 0 {
                    $crate::wire::write_bytes(out, $apart.as_bytes());
                    $crate::wire::write_map_len(out, rare);
                    $(
                        if !$crate::wire::Wire::is_absent(&self.$rare) {
                            $crate::wire::write_bytes(out, $rare_key.as_bytes());
                            $crate::wire::Wire::write(&self.$rare, out);
                        }
                    )*
                }
            }
            fn read(input: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::wire::DecodeError> {
                $( let mut $field: Option<$ty> = None; )*
                $( let mut $rare: Option<$rare_ty> = None; )*
                for _ in 0..input.map()? {
                    match input.text()? {
                        $( $key => $field = $crate::wire::field(input, $key)?, )*
                        $apart => {
                            for _ in 0..input.map()? {
                                match input.text()? {
                                    $( $rare_key => $rare = $crate::wire::field(input, $rare_key)?, )*
                                    _ => input.skip()?,
                                }
                            }
                        }
                        _ => input.skip()?,
                    }
                }
                Ok(Self {
                    $( $field: $crate::wire::present($field, $key)?, )*
                    $( $rare: $crate::wire::present($rare, $rare_key)?, )*
                })
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                Self {
                    $( $field: $crate::sample::Sample::sample(rng), )*
                    $( $rare: $crate::sample::Sample::sample(rng), )*
                }
            }
        }
    };
}

/// An enum whose values are words.
macro_rules! wire_words {
    ( $(#[$meta:meta])* $name:ident { $( $variant:ident = $word:literal, )+ } ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( #[doc = concat!("`", $word, "`")] $variant, )+ }

        impl $name {
            /// All values, in declaration order.
            pub const ALL: &'static [$name] = &[$( $name::$variant, )+];

            /// The word of this value everywhere.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = ff_core::types::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $word => Ok($name::$variant), )+
                    _ => Err(ff_core::types::UnknownWord { what: stringify!($name), value: text.to_owned() }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|_| {
                    let words: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    serde::de::Error::custom(format_args!("unknown word, expected one of {}", words.join(", ")))
                })
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                ff_core::openapi::words($name::ALL.iter().map(|word| word.as_str()))
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        $crate::wire::declare::wire_word_codec!($name);
    };
}

/// The codec of an enum of words, declared here or in `ff-core`.
macro_rules! wire_word_codec {
    ( $name:ty ) => {
        $crate::rules::always_within!($name);

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::wire::write_bytes(out, self.as_str().as_bytes());
            }
            fn read(input: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::wire::DecodeError> {
                input
                    .text()?
                    .parse()
                    .map_err(|error: ff_core::types::UnknownWord| $crate::wire::DecodeError::new(error.to_string()))
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                Self::ALL[rng.below(Self::ALL.len() as u64) as usize]
            }
        }
    };
}

/// A word enum of `ff-core` with the words of its contract. It compiles only if both lists are the same.
macro_rules! wire_core_words {
    ( $(#[$meta:meta])* $name:ident { $( $variant:ident = $word:literal, )+ } ) => {
        $crate::wire::declare::wire_word_codec!($name);

        const _: () = {
            let _exhaustive = |value: $name| match value { $( $name::$variant => $word, )+ };
            $( assert!($crate::wire::same_text($name::$variant.as_str(), $word)); )+
        };
    };
}

/// The reply of a function: the name of its outcome, then its fields.
macro_rules! wire_reply {
    (
        $(#[$meta:meta])*
        $name:ident { $( $variant:ident ($word:literal) $( { $( $field:ident ($key:literal): $ty:ty, )* } )?, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`")]
                $variant $( { $( #[doc = concat!("`", $key, "`")] $field: $ty, )* } )?,
            )+
        }

        impl $crate::wire::Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( $name::$variant $( { $( $field, )* } )? => {
                        $crate::wire::write_bytes(out, $word.as_bytes());
                        let present = 0 $( $( + usize::from(!$crate::wire::Wire::is_absent($field)) )* )?;
                        $crate::wire::write_map_len(out, present);
                        $( $(
                            if !$crate::wire::Wire::is_absent($field) {
                                $crate::wire::write_bytes(out, $key.as_bytes());
                                $crate::wire::Wire::write($field, out);
                            }
                        )* )?
                    } )+
                }
            }
            fn read(input: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::wire::DecodeError> {
                match input.text()? {
                    $( $word => {
                        $( $( let mut $field: Option<$ty> = None; )* )?
                        let fields = if input.nil() { 0 } else { input.map()? };
                        for _ in 0..fields {
                            match input.text()? {
                                $( $( $key => $field = $crate::wire::field(input, $key)?, )* )?
                                _ => input.skip()?,
                            }
                        }
                        Ok($name::$variant $( { $( $field: $crate::wire::present($field, $key)?, )* } )?)
                    } )+
                    other => Err($crate::wire::DecodeError::new(format!("unknown outcome {other:?}"))),
                }
            }
        }

        #[cfg(any(test, feature = "samples"))]
        impl $crate::sample::Sample for $name {
            fn sample(rng: &mut $crate::sample::Rng) -> Self {
                let variants: &[fn(&mut $crate::sample::Rng) -> Self] = &[
                    $( |rng| { let _ = &rng; $name::$variant $( { $( $field: $crate::sample::Sample::sample(rng), )* } )? }, )+
                ];
                variants[rng.below(variants.len() as u64) as usize](rng)
            }
        }
    };
}

/// A stored record: an array of its values. Values in brackets share one position, which may be absent.
macro_rules! wire_record {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $field:ident ($key:literal): $ty:ty, )*
            $( [ $( $within:ident ($within_key:literal): $within_ty:ty, )* ] )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $( #[doc = concat!("`", $key, "`")] pub $field: $ty, )*
            $( $( #[doc = concat!("`", $within_key, "`")] pub $within: $within_ty, )* )*
        }

        impl $name {
            /// The place of each field: its position, and its index in the group that shares the position.
            pub const FIELDS: &[(&str, usize, Option<usize>)] = &{
                let mut fields = [("", 0, None); [$( $key, )* $( $( $within_key, )* )*].len()];
                let (mut at, mut position) = (0, 0);
                $( fields[at] = ($key, position, None); at += 1; position += 1; )*
                $(
                    let mut place = 0;
                    $( fields[at] = ($within_key, position, Some(place)); at += 1; place += 1; )*
                    let _ = place;
                    position += 1;
                )*
                let _ = (at, position);
                fields
            };

            /// The record in its stored form.
            #[must_use]
            pub fn write(&self) -> Vec<u8> {
                let mut out = Vec::new();
                let positions = [$( $key, )* $( [$( $within_key, )*][0], )*].len();
                $crate::wire::write_array_len(&mut out, positions);
                $( $crate::wire::declare::value(&mut out, &self.$field); )*
                $(
                    if [$( $crate::wire::Wire::is_absent(&self.$within), )*].iter().all(|absent| *absent) {
                        $crate::wire::Wire::write(&false, &mut out);
                    } else {
                        $crate::wire::write_array_len(&mut out, [$( $within_key, )*].len());
                        $( $crate::wire::declare::value(&mut out, &self.$within); )*
                    }
                )*
                out
            }

            /// Reads a stored record. Values that a newer library added are skipped.
            pub fn read(bytes: &[u8]) -> Result<Self, $crate::wire::DecodeError> {
                let mut input = $crate::wire::Reader::new(bytes);
                let mut left = input.list()?;
                $(
                    let $field: Option<$ty> = $crate::wire::declare::position(&mut input, &mut left, $key)?;
                )*
                $(
                    $( let mut $within: Option<$within_ty> = None; )*
                    let mut members = $crate::wire::declare::group(&mut input, &mut left)?;
                    $(
                        if members > 0 {
                            members -= 1;
                            $within = $crate::wire::declare::member(&mut input, $within_key)?;
                        }
                    )*
                    for _ in 0..members {
                        input.skip()?;
                    }
                )*
                for _ in 0..left {
                    input.skip()?;
                }
                input.finish()?;
                Ok(Self {
                    $( $field: $crate::wire::present($field, $key)?, )*
                    $( $( $within: $crate::wire::present($within, $within_key)?, )* )*
                })
            }
        }
    };
}

/// Writes a value of a record; an absent one is false.
pub(crate) fn value<T: Wire>(out: &mut Vec<u8>, value: &T) {
    if value.is_absent() { false.write(out) } else { value.write(out) }
}

/// The value at the next position of a record; `None` if the record ends before it or the value is absent.
pub(crate) fn position<T: Wire>(
    input: &mut Reader<'_>,
    left: &mut usize,
    name: &'static str,
) -> Result<Option<T>, DecodeError> {
    if *left == 0 {
        return Ok(None);
    }
    *left -= 1;
    member(input, name)
}

/// The number of values in the group at the next position.
pub(crate) fn group(input: &mut Reader<'_>, left: &mut usize) -> Result<usize, DecodeError> {
    if *left == 0 {
        return Ok(0);
    }
    *left -= 1;
    if input.absent() { Ok(0) } else { input.list() }
}

/// The next value of a group.
pub(crate) fn member<T: Wire>(input: &mut Reader<'_>, name: &'static str) -> Result<Option<T>, DecodeError> {
    if input.absent() { Ok(None) } else { T::read(input).map(Some).map_err(|error| error.within(name)) }
}

/// A function of the library: its arguments are a [`crate::Call`].
macro_rules! wire_call {
    ( $name:ident -> $reply:ident, $function:literal, read_only: $read_only:literal $(, weight: $weight:ident )? ) => {
        impl $crate::call::Call for $name {
            const FUNCTION: &'static str = $function;
            const READ_ONLY: bool = $read_only;
            type Reply = $reply;
            fn encode(&self) -> Vec<u8> {
                let mut out = Vec::new();
                $crate::wire::Wire::write(self, &mut out);
                out
            }
            fn decode_reply(input: &mut $crate::wire::Reader<'_>) -> Result<$reply, $crate::wire::DecodeError> {
                $crate::wire::Wire::read(input)
            }
            fn check(&self) -> Result<(), $crate::rules::Problem> {
                $crate::rules::Bounded::within(self, &$crate::rules::Rule::Own)
            }
            $(
                fn weight(&self) -> usize {
                    usize::try_from(self.$weight).unwrap_or(1).max(1)
                }
            )?
        }
    };
}

pub(crate) use {
    wire_call, wire_core_words, wire_record, wire_reply, wire_split_struct, wire_struct, wire_word_codec, wire_words,
};
