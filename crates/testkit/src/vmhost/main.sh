# The second half of the init, inside the root that the command sees. $1 is the disk for the result.
cd /root
result=/vmhost/result
: > $result/stdout
: > $result/stderr
if [ -e /vmhost/live ]; then
    stty -F /dev/ttyS1 raw -echo
    stty -F /dev/ttyS2 raw -echo
    tail -f -n +1 -s 1 $result/stdout > /dev/ttyS1 &
    tail -f -n +1 -s 1 $result/stderr > /dev/ttyS2 &
fi
sh /vmhost/command < /dev/null >> $result/stdout 2>> $result/stderr
echo $? > $result/status
[ -e /vmhost/live ] && sleep 3
cut -d' ' -f1 /proc/uptime > $result/uptime
tar -c -f "$1" -C / vmhost/result out || echo "vmhost: the result does not fit its disk"
sync
poweroff -f
