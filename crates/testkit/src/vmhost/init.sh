#!/bin/busybox sh
# The init of the virtual host: prepares the machine, runs /vmhost/command, leaves the result on
# the first disk, and powers off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux

mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm /tmp /run /root /out /vmhost/result /vmhost/root
mount -t devpts devpts /dev/pts
chmod 1777 /tmp /dev/shm
ip link set lo up
for module in /vmhost/modules/*; do
    insmod "$module" || echo "vmhost: cannot load $module"
done

# The kernel numbers the memory-backed disks in no order that it promises: sort them by address.
disks=$(for disk in /sys/block/pmem*; do
    echo "$(($(cat "$disk/device/resource"))) ${disk##*/}"
done | sort -n | cut -d' ' -f2)
set -- $disks
result=/dev/$1
shift
while read -r number kind path; do
    if [ "$kind" = dir ]; then
        mkdir -p "$path"
        mount -t erofs -o ro "/dev/$1" "$path" || echo "vmhost: no disk at $path"
    else
        mkdir -p "/vmhost/disk/$number" "${path%/*}"
        : > "$path"
        mount -t erofs -o ro "/dev/$1" "/vmhost/disk/$number" &&
            mount --bind "/vmhost/disk/$number/content" "$path" || echo "vmhost: no disk at $path"
    fi
    shift
done < /vmhost/disks

# pivot_root(2) refuses to leave the initramfs itself; from a bind mount of it, it works.
mount --rbind / /vmhost/root
cd /vmhost/root || exit
mount --move . /
exec chroot . /bin/sh /vmhost/main "/dev/${result##*/}"
