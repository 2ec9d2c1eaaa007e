# `sh timed NAME COMMAND...` prints `took NAME MICROSECONDS`: the time from just before the fork until the shell knows of the
# program's end. The program's stdout is dropped, and its stderr is kept in /bench/errors.
name=$1
shift
start=$EPOCHREALTIME
"$@" > /dev/null 2> /bench/errors &
program=$!
# `timeout` sends SIGTERM to this shell, which then kills the program.
trap 'kill $program; sleep 1; killall -9 boxlaunch msb 2> /dev/null; exit 1' TERM
wait $program
status=$?
end=$EPOCHREALTIME
[ $status = 0 ] || exit $status
echo "took $name $((${end%.*}${end#*.} - ${start%.*}${start#*.}))"
