package machines

import (
	"os"
	"os/exec"
	"testing"
)

func TestHandleIsOfOneProcessOnly(t *testing.T) {
	own := HandleOf(os.Getpid())
	if !own.Alive() {
		t.Error("this process is said to be gone")
	}
	another := own
	another.Started += "1"
	if another.Alive() {
		t.Error("a later process of the same pid is taken for the first")
	}
	earlier := own
	earlier.BootID = "another boot"
	if earlier.Alive() {
		t.Error("a process of an earlier boot is said to live")
	}
	if (Handle{}).Alive() {
		t.Error("no process is said to live")
	}
}

func TestKillEndsThatProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	handle := HandleOf(cmd.Process.Pid)
	other := handle
	other.Started += "1"
	other.Kill()
	if !handle.Alive() {
		t.Fatal("a stale handle killed the process")
	}
	handle.Kill()
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if handle.Alive() {
		t.Error("the killed process is said to live")
	}
}
