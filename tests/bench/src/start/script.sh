# Runs on the virtual host as `sh /bench/script RUNS`. The programs run in turn. It prints lines for the benchmark:
# `fact NAME TEXT` and `took NAME MICROSECONDS`.
fail() {
    echo "$1" >&2
    cat /bench/errors >&2
    # The virtual host writes the result to the disk that is mounted at /home, so nothing may use it.
    killall -9 boxlaunch msb 2> /dev/null
    sleep 1
    umount /home
    exit 1
}

# The programs' files are on ext4, as on most hosts. microsandbox needs `user.*` attributes, which tmpfs has only since Linux
# 6.6. The only writable disk is the one for the result, which is written after the end of this script.
: > /bench/errors
for disk in /sys/block/pmem*; do
    [ "$(cat "$disk/ro")" = 0 ] && disk=/dev/${disk##*/} && break
done
mkdir /home
/bench/mke2fs -q -t ext4 -O ^has_journal "$disk" 2> /bench/errors || fail "no file system on $disk"
mount -t ext4 "$disk" /home || fail "$disk cannot be mounted"
export HOME=/home
cp -R /bench/krunfw.box /home
# The disk is too small for two boxes, so the blobs that both have are hard links. A blob's name is its digest.
cd /bench
find lean.box -type d | while read -r folder; do mkdir -p "/home/$folder"; done
find lean.box -type f | while read -r file; do
    case $file in */blobs/*) ln "/home/krunfw.box/${file#*/}" "/home/$file" 2> /dev/null && continue ;; esac
    cp "$file" "/home/$file"
done
cd /

msb=/bench/microsandbox/bin/msb
floor="boxlaunch floor /bench/kernel 1 512"
box="boxlaunch run /home/krunfw.box --"
lean="boxlaunch run /home/lean.box --"
peer="$msb run --quiet --no-stdin --no-net --cpus 1 --memory 512M --entrypoint"

# The first argument is the program's name in the report.
turn() {
    timeout -k 2 10 sh /bench/timed "$@" || fail "$1 failed"
}

echo "fact boxlaunch $(boxlaunch --version)"
echo "fact microsandbox $($msb --version)"

# Runs each program once to fill its caches: verifies the boxes, loads the image and creates its database.
for name in krunfw lean; do
    boxlaunch verify /home/$name.box > /dev/null 2> /bench/errors || fail "$name.box is not whole"
done
$msb load --quiet --input /bench/debian.tar 2> /bench/errors || fail "msb load failed"
$floor > /dev/null 2> /bench/errors || fail "boxlaunch floor failed"
kernel=$($box /bin/uname -r) || fail "boxlaunch failed"
echo "fact boxlaunch-kernel $kernel"
kernel=$($lean /bin/uname -r) || fail "boxlaunch failed"
echo "fact lean-kernel $kernel"
kernel=$($peer /bin/uname latest -- -r) || fail "msb run failed"
echo "fact microsandbox-kernel $kernel"

run=0
while [ $run -lt "$1" ]; do
    turn floor $floor
    turn boxlaunch $box /bin/true
    turn lean $lean /bin/true
    turn microsandbox $peer /bin/true latest
    run=$((run + 1))
done
umount /home || fail "something is left running"
