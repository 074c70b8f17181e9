//! One description of an object for its type, reader, writer and schema.

/// Declares an object of a form.
///
/// `open` objects keep members that they do not know, take `null` for an absent optional member,
/// and can be written; `strict` ones are only read, and refuse what they do not know. A line is
/// `"name" => field: Type, Shape;`. In front of these stand members that are not
/// kept: `const "name" = "value";` in open objects, `ignored "name";` in strict ones. Those that are
/// `pub` can be compared.
///
/// A struct that `sets` a builder has the names of the builder's methods for its fields, and `apply` calls
/// them. Members under `beside` are only kept.
///
/// A struct `for` another type is read into that. `[INLINE TAKES_NULLS]` sets these of its
/// [`Members`](crate::read::Members).
#[doc(hidden)]
#[macro_export]
macro_rules! __object {
    (
        open
        $(#[doc = $doc:literal])*
        $(#[derive($derive:ident)])?
        pub struct $name:ident {
            $(const $const_name:literal = $const_value:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
            /// Members that the form does not know.
            pub extra: $crate::Extra,
        }

        impl $crate::read::Members for $name {
            const CLOSED: bool = false;
            const TAKES_NULLS: bool = true;

            fn names() -> ::std::borrow::Cow<'static, [&'static str]> {
                const NAMES: &[&str] = &[$($const_name,)* $($wire,)*];
                NAMES.into()
            }

            fn take(
                object: &mut $crate::read::Object<'_>,
                faults: &mut $crate::read::Faults,
            ) -> Option<Self> {
                $(object.constant($const_name, $const_value, faults);)*
                $(let $field = object.field::<$shape>($wire, faults);)*
                let extra = object.rest();
                Some(Self { $($field: $field?,)* extra })
            }

            $crate::read::with_schema! {
                fn describe(
                    schema: &mut $crate::read::ObjectSchema,
                    generator: &mut $crate::read::schemars::SchemaGenerator,
                ) {
                    $(schema.constant($const_name, $const_value);)*
                    $(schema.field::<$shape>(generator, $wire, concat!($($field_doc),*));)*
                }
            }
        }

        $crate::read::object! { @shape $name [Self] [$($doc),*]
            fn or(mut own: Self, other: Self) -> Self {
                $(own.$field = <$shape as $crate::read::Shape>::or(own.$field, other.$field);)*
                own
            }
        }

        impl $crate::read::Write for $name {
            fn write(value: &Self) -> impl $crate::read::serde::Serialize {
                value
            }
        }

        impl $crate::read::serde::Serialize for $name {
            fn serialize<S: $crate::read::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use $crate::read::serde::ser::SerializeMap as _;
                use $crate::read::Write as _;
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($const_name, $const_value)?;)*
                $(
                    if !<$shape>::is_absent(&self.$field) {
                        map.serialize_entry($wire, &<$shape>::write(&self.$field))?;
                    }
                )*
                for (name, value) in self.extra.iter() {
                    let written = match name {
                        $($const_name => true,)*
                        $($wire => !<$shape>::is_absent(&self.$field),)*
                        _ => false,
                    };
                    if !written {
                        map.serialize_entry(name, value)?;
                    }
                }
                map.end()
            }
        }
    };
    (
        strict $([$($flag:ident)*])? $(#[doc = $doc:literal])*
        struct $name:ident for $target:ty { $($body:tt)* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        $crate::read::object! { @reader $name [$target] [$($($flag)*)?] [$($doc),*] { $($body)* } }
    };
    (strict $([$($flag:ident)*])? $(#[doc = $doc:literal])* struct $name:ident $body:tt) => {
        $crate::read::object! { @struct [pub(crate)] [] [$($doc),*] $name $body }
        $crate::read::object! { @reader $name [Self] [$($($flag)*)?] [$($doc),*] $body }
    };
    (strict $(#[doc = $doc:literal])* pub struct $name:ident $body:tt) => {
        $crate::read::object! {
            @struct [pub] [#[derive(PartialEq)] #[non_exhaustive]] [$($doc),*] $name $body
        }
        $crate::read::object! { @reader $name [Self] [] [$($doc),*] $body }
    };
    (
        strict $(#[doc = $doc:literal])* pub struct $name:ident sets $builder:ty {
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty $(= $default:tt)?;
            )*
            $(beside { $($beside:tt)* })?
            $(also { $($also:tt)* })?
        }
    ) => {
        $crate::read::object! {
            strict $(#[doc = $doc])* pub struct $name {
                $($(#[doc = $field_doc])* $wire => $field: $type, $shape $(= $default)?;)*
                $($($beside)*)?
                $(also { $($also)* })?
            }
        }

        impl $name {
            /// Calls the builder's method of the same name for each value that is there.
            pub fn apply(&self, mut builder: $builder) -> $builder {
                $(
                    if let Some(value) = Clone::clone(&self.$field) {
                        builder = builder.$field(value);
                    }
                )*
                builder
            }
        }
    };
    (strict $(#[doc = $doc:literal])* root struct $name:ident $body:tt) => {
        $crate::read::object! { @struct [pub] [#[non_exhaustive]] [$($doc),*] $name $body }
        $crate::read::object! { @reader $name [Self] [] [$($doc),*] $body }
        $crate::read::object! { @differing $name $body }
    };
    (
        @differing $name:ident {
            $(ignored $ignored:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty $(= $default:tt)?;
            )*
            $(.. $($rest:tt)*)?
        }
    ) => {
        impl $name {
            /// The keys with another value in `other`.
            pub fn differing(&self, other: &Self) -> impl Iterator<Item = &'static str> {
                let keys = [$(($wire, self.$field != other.$field),)*];
                keys.into_iter().filter_map(|(key, differs)| differs.then_some(key))
            }
        }
    };
    (
        @struct [$vis:vis] [$(#[$meta:meta])*] [$($doc:literal),*] $name:ident {
            $(ignored $ignored:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty $(= $default:tt)?;
            )*
            $(also { $($also:tt)* })?
            $(..
                $(#[doc = $part_doc:literal])*
                $part:ident: $part_type:ty, $part_shape:ty $(=> $build:path)?;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default)]
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $field_doc])* $vis $field: $type,)*
            $($(#[doc = $part_doc])* $vis $part: $part_type,)*
        }
    };
    (
        @reader $name:ident [$target:ty] [$($flag:ident)*] [$($doc:literal),*] {
            $(ignored $ignored:literal;)*
            $(
                $(#[doc = $field_doc:literal])*
                $wire:literal => $field:ident: $type:ty, $shape:ty $(= $default:tt)?;
            )*
            $(also { $(
                $(#[doc = $also_doc:literal])*
                $also:literal => $of:ident, $also_shape:ty;
            )* })?
            $(..
                $(#[doc = $part_doc:literal])*
                $part:ident: $part_type:ty, $part_shape:ty $(=> $build:path)?;
            )*
        }
    ) => {
        impl $crate::read::Members for $name {
            $(const $flag: bool = true;)*

            fn names() -> ::std::borrow::Cow<'static, [&'static str]> {
                let own: &[&str] = &[$($ignored,)* $($wire,)* $($($also,)*)?];
                [own, $(&*<$part_shape as $crate::read::Members>::names(),)*].concat().into()
            }

            fn take(
                object: &mut $crate::read::Object<'_>,
                faults: &mut $crate::read::Faults,
            ) -> Option<Self::Value> {
                $(object.field::<$crate::read::Ignored>($ignored, faults);)*
                $(let $field = object.field::<$shape>($wire, faults);)*
                $($(let $of = object.also::<$also_shape, _>($also, stringify!($of), $of, faults);)*)?
                $(let $part = <$part_shape as $crate::read::Members>::take(object, faults);)*
                $($(let $part = $part.map(|read| $build(read, faults));)?)*
                let mut value = <Self::Value as Default>::default();
                // What could not be read stays as it is by default, and the rest is kept.
                $(if let Some(read) = $field { value.$field = read; })*
                $(if let Some(read) = $part { value.$part = read; })*
                Some(value)
            }

            $crate::read::with_schema! {
                fn describe(
                    schema: &mut $crate::read::ObjectSchema,
                    generator: &mut $crate::read::schemars::SchemaGenerator,
                ) {
                    $(schema.ignored(generator, $ignored);)*
                    $(
                        schema.field::<$shape>(generator, $wire, concat!($($field_doc),*));
                        $(schema.default($wire, $crate::read::json!($default));)?
                    )*
                    $($(
                        schema.field::<$also_shape>(generator, $also, concat!($($also_doc),*));
                    )*)?
                    $(<$part_shape as $crate::read::Members>::describe(schema, generator);)*
                }
            }
        }

        $crate::read::object! { @shape $name [$target] [$($doc),*]
            fn or(mut own: Self::Value, other: Self::Value) -> Self::Value {
                $(own.$field = <$shape as $crate::read::Shape>::or(own.$field, other.$field);)*
                own
            }
        }
    };
    (@shape $name:ident [$target:ty] [$($doc:literal),*] $($item:item)?) => {
        impl $crate::read::Shape for $name {
            type Value = $target;

            fn expected() -> ::std::borrow::Cow<'static, str> {
                "an object".into()
            }

            fn read(
                node: &$crate::read::Node<'_>,
                faults: &mut $crate::read::Faults,
            ) -> Option<Self::Value> {
                $crate::read::members::<Self>(node, faults)
            }

            $($item)?

            $crate::read::with_schema! {
                fn schema(
                    generator: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    generator.subschema_for::<Self>()
                }
            }
        }

        $crate::read::with_schema! {
        impl $crate::read::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                <Self as $crate::read::Members>::INLINE
            }

            fn json_schema(generator: &mut $crate::read::schemars::SchemaGenerator) -> $crate::read::schemars::Schema {
                use $crate::read::Members;
                $crate::read::ObjectSchema::of(
                    concat!($($doc),*),
                    Self::CLOSED,
                    Self::TAKES_NULLS,
                    |schema| Self::describe(schema, generator),
                )
            }
        }
        }
    };
}

/// Keeps what follows if schemas are made. The feature is this crate's: a crate that uses these macros
/// need not have one of that name.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_schema {
    ($($item:tt)*) => { $($item)* };
}

#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_schema {
    ($($item:tt)*) => {};
}

pub use {__object as object, __with_schema as with_schema};
