//! Sizes on the command line.

use box_contract::size::{of_option, written};

/// Returns the clap parser for a size of `least` to `most` bytes, with a unit: `512MiB`, `512m` or `4G`. A number alone is in the unit
/// `of_number`, in bytes, or an error if there is none.
pub fn size_between(
    least: u64,
    most: u64,
    of_number: Option<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = || text.parse::<u64>().ok()?.checked_mul(of_number?);
        let bytes = of_option(text).or_else(number).filter(|it| (least..=most).contains(it));
        bytes.ok_or_else(|| form(least, most))
    }
}

/// Describes the sizes from `least` to `most`. The example is a size that is common and possible.
fn form(least: u64, most: u64) -> String {
    let example = written((64 << 20).clamp(least, most));
    format!("write a size from {} to {}, such as {example}", written(least), written(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_bounds_and_an_error_names_them() {
        let memory = size_between(64 << 20, 64 << 30, Some(1 << 20));
        for (text, mib) in
            [("512", 512), ("512m", 512), ("512MiB", 512), ("4GiB", 4096), ("1g", 1024)]
        {
            assert_eq!(memory(text), Ok(mib << 20), "{text}");
        }
        for bad in ["", "63", "65537", "1T", "-1", "1.5g", "lots", "99999999999999999999", "512 m"]
        {
            let form = "write a size from 64MiB to 64GiB, such as 64MiB";
            assert_eq!(memory(bad).unwrap_err(), form, "{bad}");
        }
        let volume = size_between(8 << 20, 1 << 40, None);
        assert_eq!(volume("1T"), Ok(1 << 40));
        assert_eq!(volume("64").unwrap_err(), "write a size from 8MiB to 1024GiB, such as 64MiB");
    }
}
