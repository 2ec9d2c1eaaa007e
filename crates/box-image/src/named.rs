//! Enums whose variants have names.

/// Declares an enum with a name for each variant, the list `ALL` and the method `name`, so that no
/// list of it can miss one.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        pub enum $enum:ident { $($(#[$meaning:meta])* $variant:ident $name:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $enum { $($(#[$meaning])* $variant,)+ }

        impl $enum {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name as documents and people spell it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
