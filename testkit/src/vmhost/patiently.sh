#!/bin/sh
# patiently SECONDS COMMAND...: runs a command; if it has not ended after that long, on the machine's
# own clock, ends it and runs it once more, up to three times in all. Only the last run's output
# is shown; a line on standard error says that there was an earlier one.
#
# Why: QEMU 7.2's emulation of VMRUN (target/i386/tcg/sysemu/svm_helper.c, helper_vmrun) leaves
# exception_index set after it has injected an external interrupt. If one of the emulator's timers
# expires before the next #VMEXIT, the interrupt is delivered a second time, with interrupts
# disabled; then the guest's kernel waits forever for a lock that it holds itself. One boot in
# about a hundred hangs so. Real CPUs do no such thing, and a hang has no other known cause.
limit=$1
shift
for attempt in 1 2 3; do
    timeout "$limit" "$@" > /tmp/patiently.out 2> /tmp/patiently.err
    status=$?
    [ $status -eq 143 ] || break
done
cat /tmp/patiently.out
cat /tmp/patiently.err >&2
[ "$attempt" -eq 1 ] || echo "patiently: this was attempt $attempt" >&2
exit $status
