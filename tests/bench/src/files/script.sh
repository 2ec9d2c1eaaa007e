# Runs on the virtual host as `sh /bench/script RUNS`. Works in a directory of the host, and then in a box with the directory as
# a share. The only writable disk is the one for the result, which is written after the end of this script.
for disk in /sys/block/pmem*; do
    [ "$(cat "$disk/ro")" = 0 ] && disk=/dev/${disk##*/} && break
done
mkdir /shared
# A VM may have a quarter of the host's limit of files open.
echo 4000000 >/proc/sys/fs/file-max
/bench/mke2fs -q -t ext4 -N 600000 -O ^has_journal "$disk" || exit
mount -t ext4 "$disk" /shared || exit
cp /bench/work /shared
sh /bench/work host /shared "$1" &&
    boxlaunch run -q -v /shared:/shared:rw /files.box -- sh /shared/work box /shared "$1"
status=$?
umount /shared
exit $status
