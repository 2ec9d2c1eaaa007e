# `sh work NAME DIRECTORY RUNS` prints `took NAME WORK MICROSECONDS` for each work and run.
cd "$2" || exit
took() {
    end=$EPOCHREALTIME
    echo "took $1 $2 $((${end%.*}${end#*.} - ${start%.*}${start#*.}))"
    start=$EPOCHREALTIME
}
run=0
while [ $run -lt "$3" ]; do
    start=$EPOCHREALTIME
    dd if=/dev/zero of=large bs=1M count=SIZE conv=fsync 2>/dev/null
    took "$1" write
    dd if=large of=/dev/null bs=1M 2>/dev/null
    took "$1" read
    rm large
    mkdir small
    start=$EPOCHREALTIME
    file=0
    while [ $file -lt COUNT ]; do
        echo $file >small/$file
        file=$((file + 1))
    done
    took "$1" make
    ls -l small >/dev/null
    took "$1" list
    find small -type f -exec cat {} + >/dev/null
    took "$1" read-small
    rm -r small
    took "$1" remove
    run=$((run + 1))
done
