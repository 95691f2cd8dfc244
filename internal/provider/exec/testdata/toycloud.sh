#!/bin/sh
# A cloud whose machines are directories under $TOY. Files there are its
# faults: fail-VERB (exit code, once), hold-VERB and hold-answer (wait while they exist, before and after the effect),
# lose-create (answer 5 and make the VM later), unready, keep-disks, linger
# (deletes are accepted and done later), blind (answers end in mid-word).
set -eu
cd "$TOY"
cat >"last-$SLUICE_VERB.json"
echo "$SLUICE_VERB ${SLUICE_VM-} ${SLUICE_INSTANCE-}" >>calls

wait_for() { # FILE
	while [ -e "$1" ]; do
		echo "waiting for $1" >&2
		sleep 0.02
	done
}
wait_for "hold-$SLUICE_VERB"
if [ -e "fail-$SLUICE_VERB" ]; then
	code=$(cat "fail-$SLUICE_VERB")
	rm "fail-$SLUICE_VERB"
	echo "the toy fails with $code" >&2
	exit "$code"
fi

if [ -e blind ] && [ "$SLUICE_VERB" != create ] && [ "$SLUICE_VERB" != delete ]; then
	printf '{"instances":['
	exit 0
fi

show() { # ID
	ready=true
	[ ! -e unready ] || ready=false
	labels="{\"sluice-operation\":\"$(cat "vms/$1/operation")\"}"
	[ -s "vms/$1/operation" ] || labels='{}'
	printf '{"id":"%s","vm":"%s","presence":"running","ready":%s,"address":"127.0.0.1:22","image":"%s","labels":%s,"created_at":"%s"}' \
		"$1" "$(cat "vms/$1/name")" "$ready" "$(cat "vms/$1/image")" "$labels" "$(cat "vms/$1/created")"
}

instances() { # [NAME]
	comma=''
	printf '{"version":1,"instances":['
	for dir in vms/*/; do
		[ -d "$dir" ] || continue
		id=$(basename "$dir")
		[ -z "${1-}" ] || [ "$(cat "vms/$id/name")" = "$1" ] || continue
		printf '%s' "$comma"
		show "$id"
		comma=,
	done
	printf ']}\n'
}

exact() { # IMAGE
	[ "$1" != newest ] || set -- toy-42
	[ -e "images/$1" ] || { echo "there is no image $1" >&2; exit 8; }
	echo "$1"
}

case $SLUICE_VERB in
list) instances ;;
describe) instances "$SLUICE_VM" ;;
prepare | check) image=$(exact "$SLUICE_IMAGE") && printf '{"image":"%s"}\n' "$image" ;;
create)
	image=$(exact "$SLUICE_IMAGE")
	id="i-$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"
	mkdir "new/$id"
	echo "$SLUICE_VM" >"new/$id/name"
	echo "$image" >"new/$id/image"
	printf '%s' "$SLUICE_OPERATION" >"new/$id/operation"
	date -u +%Y-%m-%dT%H:%M:%S.%NZ >"new/$id/created"
	if [ -e lose-create ]; then
		rm lose-create
		mv "new/$id" "late/$id"
		echo "no answer from the toy" >&2
		exit 5
	fi
	mv "new/$id" "vms/$id"
	wait_for hold-answer
	printf '{"instance":%s}\n' "$(show "$id")"
	;;
delete)
	[ -d "vms/$SLUICE_INSTANCE" ] || exit 3
	if [ -e linger ]; then
		echo "$SLUICE_INSTANCE" >>lingering
		echo '{}'
		exit 0
	fi
	[ ! -e keep-disks ] || echo "disk of $SLUICE_INSTANCE" >"disks/$SLUICE_INSTANCE"
	mv "vms/$SLUICE_INSTANCE" "gone/$SLUICE_INSTANCE"
	wait_for hold-answer
	echo '{}'
	;;
remains)
	if [ -e "disks/$SLUICE_INSTANCE" ]; then
		printf '{"remains":["%s"]}\n' "$(cat "disks/$SLUICE_INSTANCE")"
	else
		echo '{"remains":[]}'
	fi
	;;
esac
