//! One description of a value for its type, reader and schema.

/// Declares a shape: its value, its name in faults, its reader, and its schema.
///
/// A reader of the source alone gives `None` for what is no such value, and that is reported. One
/// of the node and the faults reports faults itself. A shape `as` another one is called and described
/// as that is; what follows its reader are further items of it.
#[doc(hidden)]
#[macro_export]
macro_rules! __shape {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? => $value:ty, $expected:expr,
        |$source:ident| $read:expr, $schema:tt
    ) => {
        $crate::read::shape! {
            $(#[$meta])*
            $vis $name $(<$(const $limit: $of),+>)? => $value, $expected,
            |node, faults| {
                let $source = node.source;
                ($read).or_else(|| node.refuse(<Self as $crate::read::Shape>::expected(), faults))
            },
            $schema
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, $schema:tt
    ) => {
        $crate::read::shape! {
            $(#[$meta])*
            $vis $name $(<$(const $limit: $of),+>)? => $value, $expected,
            |$node, $faults| $read, |_| $schema
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, |$generator:pat_param| $schema:tt
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$(const $limit: $of),+>)?;

        $crate::read::shape! {
            @impl [$(<$(const $limit: $of),+>)?] [$name $(<$($limit),+>)?] => $value, $expected,
            |$node, $faults| $read, |$generator| $crate::read::schemars::json_schema!($schema),
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident<$inner:ident> => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, |$generator:ident| $schema:tt
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name<$inner>(::std::marker::PhantomData<$inner>);

        $crate::read::shape! {
            @impl [<$inner: $crate::read::Shape>] [$name<$inner>] => $value, $expected,
            |$node, $faults| $read, |$generator| $crate::read::schemars::json_schema!($schema),
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident<$inner:ident> $(where { $($bound:tt)* })? as $like:ty => $value:ty,
        |$node:ident, $faults:ident| $read:expr $(, $($item:tt)*)?
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name<$inner>(::std::marker::PhantomData<$inner>);

        $crate::read::shape! {
            @impl [<$inner: $crate::read::Shape>] [$name<$inner> $(where $($bound)*)?] => $value,
            <$like as $crate::read::Shape>::expected(), |$node, $faults| $read,
            |generator| <$like as $crate::read::Shape>::schema(generator), $($($item)*)?
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident $(<$(const $limit:ident: $of:ty),+>)? as $like:ty => $value:ty,
        |$node:ident, $faults:ident| $read:expr
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$(const $limit: $of),+>)?;

        $crate::read::shape! {
            @impl [$(<$(const $limit: $of),+>)?] [$name $(<$($limit),+>)?] => $value,
            <$like as $crate::read::Shape>::expected(), |$node, $faults| $read,
            |generator| <$like as $crate::read::Shape>::schema(generator),
        }
    };
    (
        @impl [$($generics:tt)*] [$($name:tt)*] => $value:ty, $expected:expr,
        |$node:ident, $faults:ident| $read:expr, |$generator:pat_param| $schema:expr, $($item:tt)*
    ) => {
        impl $($generics)* $crate::read::Shape for $($name)* {
            type Value = $value;

            fn expected() -> ::std::borrow::Cow<'static, str> {
                $expected.into()
            }

            fn read(
                $node: &$crate::read::Node<'_>,
                $faults: &mut $crate::read::Faults,
            ) -> Option<$value> {
                $read
            }

            $($item)*

            $crate::read::with_schema! {
                fn schema(
                    $generator: &mut $crate::read::schemars::SchemaGenerator,
                ) -> $crate::read::schemars::Schema {
                    $schema
                }
            }
        }
    };
}

pub use __shape as shape;
