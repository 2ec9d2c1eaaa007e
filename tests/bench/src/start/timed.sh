# `sh timed NAME COMMAND...` prints `took NAME MICROSECONDS`: from just before the fork until the
# program's end is known. What it prints is dropped, but for its errors.
name=$1
shift
start=$EPOCHREALTIME
"$@" > /dev/null 2> /bench/errors &
program=$!
# What does not end in time is ended with this shell, by SIGTERM.
trap 'kill $program; sleep 1; killall -9 boxlaunch msb 2> /dev/null; exit 1' TERM
wait $program
status=$?
end=$EPOCHREALTIME
[ $status = 0 ] || exit $status
echo "took $name $((${end%.*}${end#*.} - ${start%.*}${start#*.}))"
