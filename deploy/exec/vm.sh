#!/bin/sh
# Sluice's exec protocol (docs/providers/exec.md) around three plain scripts in
# $VM_SCRIPTS, which stay as they are:
#   create-vm.sh NAME, delete-vm.sh NAME
#   list-vms.sh, which prints a line for each VM of the fleet: NAME ID ADDRESS,
#   and nothing, with status 0, when there is none
# ID is never reused by the cloud (GCE: the numeric id; KubeVirt: the uid).
set -u
: "${VM_SCRIPTS:?where the scripts are}"
later() { echo "$1 failed with status $2" >&2; exit 5; } # whatever its status is: try later
lines=$("$VM_SCRIPTS/list-vms.sh" </dev/null) || later list-vms.sh $? # unknown is not absent
current=$(printf '%s\n' "$lines" | awk -v vm="${SLUICE_VM-}" '$1 == vm { print $2 }')

case $SLUICE_VERB in
list | describe) printf '%s\n' "$lines" | awk -v vm="${SLUICE_VM-}" -v notes="$SLUICE_STATE" '
	BEGIN { printf "{\"instances\":[" }
	NF >= 2 && (vm == "" || $1 == vm) {
		by = ""; getline by < (notes "/" $1 ".operation") # who made it, noted by create below
		printf "%s{\"id\":\"%s\",\"vm\":\"%s\",\"presence\":\"running\",", comma, $2, $1; comma = ","
		printf "\"ready\":%s,\"address\":\"%s\",", (NF > 2 ? "true" : "false"), $3
		printf "\"labels\":{%s}}", (by == "" ? "" : "\"sluice-operation\":\"" by "\"")
	}
	END { print "]}" }' ;;
prepare) [ -x "$VM_SCRIPTS/create-vm.sh" ] || exit 2 ;; # look the image up here: exit 8 if it is missing
create)
	[ -z "$current" ] || { echo "$SLUICE_VM is there already: $current" >&2; exit 4; }
	echo "$SLUICE_OPERATION" >"$SLUICE_STATE/$SLUICE_VM.operation" || exit 5
	VM_IMAGE="${SLUICE_IMAGE-}" "$VM_SCRIPTS/create-vm.sh" "$SLUICE_VM" </dev/null >&2 || later create-vm.sh $? ;;
delete)
	[ "$current" = "$SLUICE_INSTANCE" ] || { echo "$SLUICE_VM is not that instance: $current" >&2; exit 4; }
	"$VM_SCRIPTS/delete-vm.sh" "$SLUICE_VM" </dev/null >&2 || later delete-vm.sh $? ;;
esac
