//! Checks with names, so that tests can leave out one at a time.
//!
//! A check that no test needs may be gone tomorrow. So the tests leave out each check in turn, and
//! each time their hostile input must get through. A program that is not a test has all of them.
#![forbid(unsafe_code)]

/// Declares the checks of a crate as an enum, and when they can be left out: in builds with the
/// configuration `$testing`, on the thread that calls `without`.
#[macro_export]
macro_rules! guards {
    (
        #[cfg($testing:meta)]
        $(#[$about:meta])*
        $vis:vis enum $name:ident { $($(#[$meaning:meta])* $guard:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name { $($(#[$meaning])* $guard,)+ }

        impl $name {
            /// Returns `bad`, except where a test leaves this check out.
            #[inline]
            $vis fn catches(self, bad: bool) -> bool {
                bad && self.is_on()
            }

            #[cfg(not($testing))]
            const fn is_on(self) -> bool {
                true
            }
        }

        #[cfg($testing)]
        std::thread_local! {
            static LEFT_OUT: std::cell::Cell<Option<$name>> = const { std::cell::Cell::new(None) };
        }

        #[cfg($testing)]
        impl $name {
            /// Every check, in the order of declaration.
            $vis const ALL: &[Self] = &[$(Self::$guard),+];

            fn is_on(self) -> bool {
                LEFT_OUT.get() != Some(self)
            }

            /// Runs `body` without this check on this thread.
            $vis fn without<T>(self, body: impl FnOnce() -> T) -> T {
                LEFT_OUT.set(Some(self));
                let result = body();
                LEFT_OUT.set(None);
                result
            }
        }
    };
}

#[cfg(test)]
mod tests {
    guards! {
        #[cfg(test)]
        enum Guard {
            First,
            Second,
        }
    }

    #[test]
    fn one_check_is_left_out_at_a_time() {
        for left_out in Guard::ALL {
            let caught =
                left_out.without(|| Guard::ALL.iter().filter(|it| it.catches(true)).count());
            assert_eq!(caught, 1);
            assert!(left_out.catches(true) && !left_out.catches(false));
        }
    }
}
