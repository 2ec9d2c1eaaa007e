# Runs the box of examples/assistant beside its model. The directory OUT gets a copy of the project, the agent's result,
# and what everybody has said and when. CERTIFICATES has the root certificate of the model's server, and the shell is busybox's.
out=$1 example=$2 box=$3 model=$4 certificates=$5
cd "$out" || exit 1
export BOXLAUNCH_STATE="$out/state"
now() { set -- "$EPOCHREALTIME"; echo "${1%???}" | tr -d .; }

cp -r "$example/project" project
echo key-of-the-demo >key
"$model" 127.0.0.1:4180 key >model.log &
model=$!
trap 'kill $model 2>/dev/null' EXIT
until grep -qs ready model.log; do kill -0 $model || exit 1; sleep 0.01; done

now >started
SSL_CERT_FILE=$certificates boxlaunch run --json --name assistant --budget report --result result.json --share project=project \
    --network-local 127.0.0.1:4180 --secret MODEL_KEY=file:key --skill house-rules="$example/skills/house-rules" "$box" >report 2>notices
status=$?
now >ended
boxlaunch logs --json assistant >steps
diff -ruN "$example/project" project >changes
boxlaunch rm assistant >/dev/null
exit $status
