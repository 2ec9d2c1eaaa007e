# Runs on the virtual host as `sh /bench/script RUNS`. Downloads files from a server on loopback, on the host and in a box.
ifconfig lo 127.0.0.1 up; ifconfig lo:1 93.184.216.34 netmask 255.255.255.255
echo nameserver 127.0.0.1 >/etc/resolv.conf
mkdir /tmp/www
peers /tmp/www >/tmp/peers.log &
peers=$!
until grep -q ready /tmp/peers.log; do sleep 0.1; done
for way in proxy direct; do
    sh /bench/work host $way "$1" || exit
done
boxlaunch run -q -d --name net --network-local 127.0.0.2 /network.box >/dev/null || exit
for way in proxy direct; do
    boxlaunch exec -i net -- sh -s box $way "$1" </bench/work || exit
done
boxlaunch kill net >/dev/null
kill $peers
