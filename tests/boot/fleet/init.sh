# Makes the root file system of the host of host.sh, and becomes its systemd.
mount -t tmpfs tmpfs /debian/run; mount -t tmpfs tmpfs /debian/tmp
for kept in etc var; do mount --bind /keep/$kept /debian/$kept; done
mount --bind /local /debian/usr/local
mount --rbind /sys /debian/sys; mount --rbind /dev /debian/dev; mount -t proc proc /debian/proc
cd /debian; pivot_root . mnt
exec chroot . /bin/sh -c 'umount -l /mnt; exec env -i container=other PATH=/usr/local/bin:/usr/bin:/usr/sbin /lib/systemd/systemd --unit=multi-user.target --show-status=no'
