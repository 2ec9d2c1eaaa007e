# `sh work NAME WAY RUNS` prints `took NAME WORK MICROSECONDS` for each work and run. WAY is `proxy` or `direct`. On the host
# they are the same, because it has no proxy.
[ "$2" = direct ] && unset http_proxy HTTP_PROXY
took() {
    end=$EPOCHREALTIME
    echo "took $1 $2 $((${end%.*}${end#*.} - ${start%.*}${start#*.}))"
}
run=0
while [ $run -lt "$3" ]; do
    start=$EPOCHREALTIME
    wget -qO- http://a.test.example/bytes/SIZE >/dev/null || exit
    took "$1" "$2"-large
    start=$EPOCHREALTIME
    request=0
    while [ $request -lt COUNT ]; do
        wget -qO- http://a.test.example/bytes/10 >/dev/null || exit
        request=$((request + 1))
    done
    took "$1" "$2"-small
    run=$((run + 1))
done
