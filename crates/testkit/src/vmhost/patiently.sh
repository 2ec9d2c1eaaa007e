#!/bin/sh
# patiently SECONDS COMMAND...: runs a command; if it has not ended after that long, on the machine's
# own clock, ends it and runs it once more, up to three times in all. Only the last attempt's
# output is passed on; what an earlier one had said is appended to /out/patiently.log.
#
# Why: QEMU 7.2's emulation of VMRUN (target/i386/tcg/sysemu/svm_helper.c, helper_vmrun) leaves
# exception_index set after it has injected an external interrupt. If one of the emulator's timers
# expires before the next #VMEXIT, the interrupt is delivered a second time, with interrupts
# disabled; then the guest's kernel waits forever for a lock that it holds itself (seen in a memory
# dump: the second frame on its interrupt stack has IF=0). About one boot in a hundred hangs so. Real
# CPUs do no such thing. Whoever uses this counts the lines "attempt" of the log, and fails where
# there are more than that rate explains.
limit=$1
shift
late=/tmp/patiently.late
for attempt in 1 2 3; do
    rm -f $late
    "$@" > /tmp/patiently.out 2> /tmp/patiently.err &
    command=$!
    (sleep "$limit"; : > $late; kill -TERM $command; sleep 5; kill -KILL $command) 2> /dev/null &
    watchdog=$!
    wait $command
    status=$?
    kill $watchdog 2> /dev/null
    [ -e $late ] || break
    {
        echo "attempt $attempt did not end within $limit s: $*"
        cat /tmp/patiently.err
    } >> /out/patiently.log
done
cat /tmp/patiently.out
cat /tmp/patiently.err >&2
exit $status
