//! The promises, in the order of SPECIFICATION.md, and the counts of tests that pages repeat.

use super::{Bound, Promise};

/// Declares the constants, and a list of them with their names.
macro_rules! promises {
    ($(#[$list_doc:meta])* $list:ident: $($(#[$doc:meta])* $name:ident = $bound:ident $number:literal $unit:literal, $held_by:literal,
       $what:literal $(, also in $file:literal as $text:literal)*;)*) => {
        $($(#[$doc])* pub const $name: Promise = Promise {
            what: $what,
            bound: Bound::$bound,
            number: $number,
            unit: $unit,
            held_by: $held_by,
            repeated: &[$(($file, $text)),*],
        };)*

        $(#[$list_doc])* pub const $list: &[(&str, Promise)] = &[$((stringify!($name), $name)),*];
    };
}

promises! {
    /// Every promise, with the name of its constant.
    ALL:
    /// The whole start of examples/hello with the lean kernel, if the box was verified before.
    HELLO_START = AtMost 115.0 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "examples/hello is ready with the lean kernel, after the launcher's first instruction; the box was verified before";
    /// The whole start of examples/hello with libkrunfw's kernel.
    KRUNFW_START = AtMost 310.0 "ms",
        "tests/boot/krunfw.rs::the_hello_box_starts_with_the_kernel_of_libkrunfw",
        "the same with libkrunfw's kernel";
    /// The phase `vmm` of examples/hello.
    HELLO_VMM = AtMost 23.0 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "with the lean kernel, phase `vmm`: the launcher, until the guest's kernel runs";
    /// The phase `jail` of examples/hello.
    HELLO_JAIL = AtMost 6.0 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "of this, phase `jail`: confining the process that runs the machine, also for libkrunfw's kernel";
    /// The phase `kernel` of examples/hello.
    HELLO_KERNEL = AtMost 75.0 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "of this, phase `kernel`: until box-init runs";
    /// The phase `init` of examples/hello.
    HELLO_INIT = AtMost 10.5 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "of this, phase `init`: until the agent is started";
    /// The phase `ready` of examples/hello.
    HELLO_READY = AtMost 5.8 "ms",
        "tests/boot/hello.rs::the_phases_keep_what_is_promised",
        "of this, phase `ready`: until its health check passes";
    /// The difference of the median of ten starts of examples/hello from the shortest.
    START_MEDIAN = AtMost 0.9 "%",
        "tests/boot/budget.rs::a_box_is_held_to_budgets_just_above_and_just_below_what_it_takes",
        "the median of ten starts in one run of `boxbuild budget`, beyond the shortest";
    /// The difference of the longest of ten starts of examples/hello from the shortest. Some layouts of the programs
    /// in memory let one start wait for a tick of the virtual host's kernel, which has 250 ticks in a second.
    START_SPREAD = AtMost 5.6 "%",
        "tests/boot/budget.rs::a_box_is_held_to_budgets_just_above_and_just_below_what_it_takes",
        "the longest of them: about one start in a hundred takes 4 ms longer, a tick of the host's kernel";
    /// The start of examples/hello as a multiple of the start of a kernel and an init alone.
    HELLO_OVER_FLOOR = AtMost 1.6 "",
        "tests/boot/hello.rs::the_start_is_near_the_floor",
        "examples/hello is ready, as a multiple of the floor: the same kernel and an init that only connects, without the jail";
    /// The time that a second CPU adds to the start of examples/hello.
    FURTHER_CPU = AtMost 7.5 "ms",
        "tests/boot/cost.rs::a_second_cpu_hardly_delays_the_start",
        "added to the start by a second CPU, though only one is emulated";
    /// The time that 16 files of a rootfs add to a start.
    SIXTEEN_SEGMENTS = AtMost 3.6 "%",
        "tests/boot/segments.rs::segments_delay_the_start_little",
        "examples/hello with a rootfs of 16 segments is ready, beyond the same rootfs in one file";
    /// The time that the maximum number of files of a rootfs adds to a start.
    MANY_SEGMENTS = AtMost 36.0 "%",
        "tests/boot/segments.rs::segments_delay_the_start_little",
        "the same with 254 segments, on a host whose soft limit of open files is 1024";
    /// The whole start of the Debian box.
    DEBIAN_TOTAL = AtMost 400.0 "ms",
        "tests/boot/debian.rs::python_gets_ready_and_node_runs_beside_it",
        "a box of two Debian images is ready: a web server in Python, beside Node.js (233 MiB)";
    /// The share of the launcher, the kernel and init in the start of the Debian box.
    DEBIAN_BEFORE_AGENT = AtMost 120.0 "ms",
        "tests/boot/debian.rs::python_gets_ready_and_node_runs_beside_it",
        "of this, until the agent is started: phases `vmm`, `jail`, `kernel` and `init`";
    /// The duration of a command in a running box, including the launcher.
    ENTER = AtMost 10.0 "ms",
        "tests/boot/running.rs::entering_a_box_takes_no_time",
        "`boxlaunch exec NAME true` in examples/hello, from the start of `boxlaunch` to its end";
    /// The time between the end of a box's budget and its stop.
    STOPPED_AFTER = AtMost 2.0 "ms",
        "tests/boot/hello.rs::an_agent_that_never_gets_ready_is_stopped_when_the_budget_is_used_up",
        "a box that is not ready is stopped after its budget's `total`";
    /// The duration of a command in a new box of a Debian image, including the launcher.
    RUN_TRUE = AtMost 145.0 "ms",
        "tests/boot/debian.rs::python_gets_ready_and_node_runs_beside_it",
        "`boxlaunch run BOX -- /bin/true` with a Debian image that was run before and the lean kernel, until it exits";
    /// The duration of the command of `RUN_TRUE` with libkrunfw's kernel, as a multiple of its duration in a bare libkrun.
    RUN_OVER_FLOOR = AtMost 1.3 "",
        "cargo run -p boxbuild-bench -- --start",
        "such a run with libkrunfw's kernel, as a multiple of the floor with it";
    /// The duration of the command of `RUN_TRUE` with libkrunfw's kernel, as a multiple of its duration in microsandbox.
    RUN_OVER_MICROSANDBOX = AtMost 0.45 "",
        "cargo run -p boxbuild-bench -- --start",
        "the same, as a multiple of `msb run` of the same image, which has that kernel, too";
    /// The time from the end of a command to the end of the launcher.
    RUN_END = AtMost 33.0 "ms",
        "tests/boot/cost.rs::a_run_ends_soon_after_its_command",
        "from the last output of a command in examples/hello to the end of `boxlaunch run`";

    /// The time by which a policy delays a command.
    POLICY_COST = AtMost 2.6 "ms",
        "tests/boot/policy.rs::a_policy_hardly_delays_a_command",
        "later, the end of a command in a box with `sandbox`";

    /// The duration of a build, as a multiple of inflating and hashing its layers.
    BUILD_OVER_FLOOR = AtMost 1.65 "",
        "cargo run -p boxbuild-bench",
        "a box of two full-size Debian images from an empty store, as a multiple of inflating and hashing their layers once";
    /// The duration of a build, as a multiple of microsandbox.
    BUILD_OVER_MICROSANDBOX = AtMost 0.75 "",
        "cargo run -p boxbuild-bench",
        "the same, as a multiple of `msb load` of both images";

    /// The memory of the host that an idle box takes in addition to its workload.
    IDLE_MEMORY = AtMost 51.0 "MiB",
        "tests/boot/cost.rs::an_idle_box_takes_little_memory",
        "memory of the host for examples/hello while its agent waits, all processes together, beyond that of its components";
    /// The peak memory of a build.
    BUILD_MEMORY = AtMost 90.0 "MiB",
        "cargo run -p boxbuild-bench",
        "peak memory of a build of these two images";
    /// The address space of an export, which is independent of the size of the box.
    EXPORT_MEMORY = AtMost 50.0 "MiB",
        "tests/export/forms.rs::memory_does_not_grow_with_the_data",
        "address space of `boxbuild export`, in every form, of a box with a file of 128 MiB";
    /// The peak memory for an image with arbitrary content.
    HOSTILE_MEMORY = AtMost 256.0 "MiB",
        "tests/hostile/bombs.rs::as_many_files_as_a_layer_may_have",
        "peak memory for an image that asks for much, up to the finished rootfs",
        also in "docs/hostile-input.md" as "below {} MiB";

    /// The peak memory of `boxbuild build` with 16 threads, for images with arbitrary content.
    HOSTILE_BUILD_MEMORY = AtMost 512.0 "MiB",
        "tests/hostile/builds.rs::nearly_as_many_files_as_a_build_may_have",
        "peak memory of `boxbuild build --jobs 16`, for images that ask for much together",
        also in "docs/hostile-input.md" as "at most {} MiB of memory";
    /// The peak memory of `boxbuild pull`, for a registry with arbitrary answers.
    HOSTILE_PULL_MEMORY = AtMost 176.0 "MiB",
        "tests/registry/hostile.rs::a_box_with_the_largest_windows_is_pulled",
        "peak memory of `boxbuild pull`, and of `boxbuild push` of a small box, whatever the registry answers",
        also in "docs/hostile-input.md" as "at most {} MiB of memory";
    /// The size of the store after one build of images with small blobs and arbitrary content.
    HOSTILE_BUILD_DISK = AtMost 1.9 "GiB",
        "tests/hostile/builds.rs::sixteen_windows_of_zstd",
        "the store after one build of images with small blobs, whatever they contain",
        also in "docs/hostile-input.md" as "at most {} GiB of the disk";

    /// The size of box-init, which is in every box.
    BOX_INIT_SIZE = AtMost 2700.0 "KiB",
        "tests/build/sizes.rs::the_static_programs_are_small",
        "box-init, in every box";
    /// The size of the launcher.
    BOXLAUNCH_SIZE = AtMost 23.0 "MiB",
        "tests/build/sizes.rs::the_static_programs_are_small",
        "boxlaunch, libkrun included";
    /// The size of the builder.
    BOXBUILD_SIZE = AtMost 18.0 "MiB",
        "cargo run -p boxbuild-bench",
        "boxbuild";
    /// The size of a box without its rootfs and its kernel.
    BOX_OVERHEAD = AtMost 2700.0 "KiB",
        "tests/build/sizes.rs::a_box_is_little_more_than_its_files",
        "a box beside its rootfs and kernel: box-init, manifest, run plan and listing, for few files";
    /// The size of the base that two images share, which is stored once.
    SHARED_BASE = AtLeast 70.0 "MiB",
        "tests/boot/debian.rs::python_gets_ready_and_node_runs_beside_it",
        "saved by storing the base of two Debian images once";

    /// The bytes that the first pull of a box saves.
    SHIP_FIRST = AtLeast 10.0 "%",
        "cargo run -p boxbuild-bench -- --ship",
        "saved by the first pull of a box of two full-size Debian images, kernel and init included, over their distinct gzip layers";
    /// The bytes that a second box on the same base takes on the network.
    SHIP_SECOND_FETCHED = AtMost 0.8 "MB",
        "cargo run -p boxbuild-bench -- --ship",
        "fetched for a second box on the base of a box that the host has";
    /// The bytes that a second box on the same base takes on the disk.
    SHIP_SECOND_STORED = AtMost 5.0 "MB",
        "cargo run -p boxbuild-bench -- --ship",
        "stored for it";
    /// The bytes that a box with an edited variable takes on the network.
    SHIP_VARIABLE = AtMost 8.0 "kB",
        "cargo run -p boxbuild-bench -- --ship",
        "fetched for the box of two images with one variable edited";
    /// The bytes that a box with an edited skill takes on the network.
    SHIP_SKILL = AtMost 7.5 "MB",
        "cargo run -p boxbuild-bench -- --ship",
        "fetched for it with one skill edited: the metadata of all its files";
    /// The requests of a push of a box that the registry has already.
    SHIP_AGAIN = Exactly 1.0 "",
        "cargo run -p boxbuild-bench -- --ship",
        "requests of a push of a box that the registry has";

    /// The capabilities of a workload.
    CAPABILITIES = Exactly 8.0 "",
        "tests/boot/hello.rs::a_component_cannot_mount_or_leave",
        "capabilities of a workload, unless the Boxfile adds some";
}

promises! {
    /// The counts of what tests try, with the names of their constants. No user relies on them, so they are on the pages that speak of the
    /// tests, and not in SPECIFICATION.md.
    COUNTS:
    /// The attempts that a hostile program makes in a component.
    COMPONENT_ATTEMPTS = Exactly 70.0 "",
        "tests/boot/isolation.rs::root_of_the_agent_succeeds_in_nothing",
        "attempts of root of a component to reach beyond it, of which none succeeds",
        also in "docs/status.md" as "none of {} attempts",
        also in "docs/security.md" as "It makes {} attempts";
    /// The attempts of a command to leave the policy of its box.
    POLICY_ATTEMPTS = Exactly 87.0 "",
        "tests/boot/policy.rs::a_command_does_not_leave_its_policy",
        "attempts of a command to leave its policy, of which none succeeds",
        also in "docs/command-policy.md" as "A test makes {} attempts",
        also in "docs/security.md" as "{} attempts to leave it",
        also in "docs/status.md" as "none of {} attempts to leave";
    /// The attempts of a hostile program in place of the VMM: half of them without a writable directory, half with one.
    VMM_ATTEMPTS = Exactly 54.0 "",
        "tests/boot/jail.rs::a_program_in_the_place_of_the_vmm_gets_nowhere",
        "attempts of a program in the VMM's place, which get `/dev/kvm` and nothing else",
        also in "docs/status.md" as "tries {} things",
        also in "docs/security.md" as "| {} attempts of a program";
    /// The attacks of a hostile guest kernel.
    KERNEL_ATTACKS = Exactly 41.0 "",
        "tests/boot/attacks.rs::forty_one_attacks_of_a_guests_kernel_get_nothing",
        "attacks of a guest's kernel on the directories that it is given, of which none reaches another file",
        also in "docs/status.md" as "makes {} attacks",
        also in "docs/security.md" as "| {} attacks of a guest's kernel";
    /// The cases of the hostile corpus.
    HOSTILE_CASES = Exactly 348.0 "",
        "tests/hostile/corpus.rs::no_layer_reaches_the_host_and_each_ends_as_it_must",
        "hostile archives that touch no path of the host",
        also in "docs/status.md" as "{} hostile archives",
        also in "docs/hostile-input.md" as "{} archives written field";
    /// The archives that are compared with other readers.
    RANDOM_ARCHIVES = Exactly 12000.0 "",
        "tests/hostile/differential.rs::other_readers_see_what_we_see",
        "archives changed at random: in those that are accepted, other readers see the same",
        also in "docs/hostile-input.md" as "{} archives made from the corpus";
    /// The real images whose trees are compared with umoci's.
    REAL_IMAGES = Exactly 15.0 "",
        "tests/oracle/real.rs::fifteen_debian_images_are_unpacked_alike",
        "real images that umoci unpacks to the same trees",
        also in "docs/status.md" as "{} real images";
    /// The random stacks of layers whose trees are compared with umoci's.
    RANDOM_STACKS = Exactly 500.0 "",
        "tests/oracle/stacks/mod.rs::half_of_500_random_stacks_are_unpacked_alike",
        "random stacks of layers that umoci unpacks to the same trees",
        also in "docs/status.md" as "{} random stacks";
}
