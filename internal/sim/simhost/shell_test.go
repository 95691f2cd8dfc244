package simhost_test

import (
	"strings"
	"testing"
	"time"
)

func TestAScriptRunsOnTheHostAndNotHere(t *testing.T) {
	w := newWorld(t, nil)
	out, code := w.sh("sh -s -- a b", `
set -eu
umask 022
main() {
    cd /
    printf 'boot %s\n' "$(cat /proc/sys/kernel/random/boot_id)"
    printf 'user %s %s args %s\n' "$(id -un)" "$(id -u)" "$*"
    exec 9<"/run/systemd/system"
    flock -w 1 9 || exit 7
    exec 3>&1
    quiet=$({ printf 'x\n' | sed 's/^/line=/' >&3; } 2>&1)
    exec 3>&-
    exec 9<&-
    sudo -n tee /run/systemd/system/t.new <<EOF >/dev/null
hello $1
EOF
    sudo -n mv -f /run/systemd/system/t.new /run/systemd/system/t
    grep -c hello /run/systemd/system/t
    [ -e /etc/passwd ] && echo "the real machine shows through"
    if touch_root 2>/dev/null; then echo no; else echo "status $?"; fi
    { read -r stat <"/proc/1/stat"; } 2>/dev/null || true
    echo "$stat"
}
main "$@"
`)
	if code != 0 {
		t.Fatalf("status %d: %s", code, out)
	}
	for _, want := range []string{"boot " + w.BootID(), "user fedora 1000 args a b", "line=x", "\n1\n", "status 127", "1 (systemd) S"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "shows through") {
		t.Error("a script saw a file of the real machine")
	}
}

func TestAScriptThatArrivesInPartRunsOnlyWhatIsWhole(t *testing.T) {
	w := newWorld(t, nil)
	out, code := w.sh("sh -s", "echo one\nrun() {\n  echo two\n")
	if !strings.Contains(out, "one") || strings.Contains(out, "two") || code != 2 {
		t.Errorf("status %d: %s", code, out)
	}
}

func TestRootsContainerListIsEmptyAndLooksIdle(t *testing.T) {
	w := newWorld(t, nil)
	w.job(time.Second, 0)
	if out, code := w.sh("podman ps --format json", ""); code != 0 || !strings.Contains(out, `"runner-`) {
		t.Errorf("the user's list: status %d, %s", code, out)
	}
	if out, code := w.sh("sudo -n podman ps --format json", ""); code != 0 || strings.TrimSpace(out) != "[]" {
		t.Errorf("root's list: status %d, %s", code, out)
	}
}
