# A host with Debian's systemd: /debian is its root file system, and /keep has what outlives a boot. Each step sources this file.
units=/usr/local/lib/systemd/system
# Starts systemd as process 1 of a PID namespace, and waits until it has started the units of multi-user.target.
boot() {
    unshare --mount --pid --fork sh /fleet/init.sh >>/out/console 2>&1 </dev/null &
    until pid=$(cat /proc/$!/task/$!/children 2>/dev/null) && [ "$pid" ]; do usleep 50000; done
    echo ${pid% } >/tmp/pid
    until in_host systemctl is-system-running 2>/dev/null | grep -E 'running|degraded'; do [ -d /proc/$(cat /tmp/pid) ] || return; usleep 300000; done
}
# Runs a command in the namespaces of systemd, with the variables of the service.
in_host() { BOXLAUNCH_STATE=/var/lib/boxbuild nsenter -t $(cat /tmp/pid) -m -p -- "$@"; }
# Ends everything at once, as a power cut does.
cut() { kill -9 $(cat /tmp/pid); while [ -d /proc/$(cat /tmp/pid) ]; do usleep 100000; done; }
# Gives the tag `stable` to another version, as a push does.
release() { tags=/tmp/registry/docker/registry/v2/repositories/acme/hello/_manifests/tags; cp $tags/$1/current/link $tags/stable/current/link; }
# Writes the file of a box, and starts its service whenever the host starts.
configure() {
    printf "BOX=localhost:5000/acme/hello:stable\nOPTIONS=$2\n" >/keep/etc/boxbuild/$1.env
    wants=/keep/etc/systemd/system/multi-user.target.wants; mkdir -p $wants; ln -s $units/boxbuild@.service $wants/boxbuild@$1.service
}
# Prints how the service is doing: its state, the result of its last end, and how often systemd has started it again.
state() { in_host systemctl show -P ActiveState -P SubState -P Result -P NRestarts boxbuild@$1 | tr '\n' ' '; echo; }
# Prints the last message of the service in the journal.
said() { in_host journalctl --no-pager -o cat -u boxbuild@$1 | grep -v systemd | grep -E 'error|updated|unchanged' | tail -n ${2:-1} | sed 's/[0-9a-f]\{64\}/N/g'; }
update() { in_host systemctl start boxbuild-update@$1 2>/dev/null; echo "update: $?"; }
get() { wget -qO- http://127.0.0.1:$1/ 2>/dev/null || echo refused; }
until_() { for i in $(seq 150); do [ "$($1)" = "$2" ] && break; usleep 100000; done; $1; }
main() { in_host systemctl show -P MainPID boxbuild@$1; }
# Prints the control groups of a service that have processes.
groups() { at=$(in_host systemctl show -P ControlGroup boxbuild@$1); [ "$at" ] && find /sys/fs/cgroup$at -name cgroup.procs | while read it; do [ "$(cat $it)" ] && dirname ${it#*service}; done | sed "s/[0-9a-f]\{16\}/N/" | sort; }
