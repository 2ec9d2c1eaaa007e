//! The forms of KDL: comments, texts, line ends.

use super::good;

#[test]
fn kdl_comments_texts_and_line_ends_are_understood() {
    let parsed = good(
        "\u{feff}/- kdl-version 2\r
         // a line { that means nothing\r
         box /* a /* nested */ one { */ \"b\" /-\"c\" /- d=1\r
         /- agent { image \"oci:other\"; }\r
         /-
         // in between
         vm cpus=99
         agent { /- image \"oci:other\"
             image \\ // continued
                 #\"oci:raw\\path\"#
             args \"\"\"
               two
                 lines }
               \"\"\" \"\\u{1F600}\\t\\\"\" --bare #\"\"\"
               raw \"\"
               \"\"\"#
         } /- { image \"oci:other\"; }
         ;",
    );
    let component = parsed.agent.component;
    assert_eq!(parsed.name, "b");
    assert_eq!(component.image.unwrap().value.to_string(), "oci:raw\\path");
    let args = ["two\n  lines }", "\u{1F600}\t\"", "--bare", "raw \"\""];
    assert_eq!(component.args.unwrap(), args);
}
