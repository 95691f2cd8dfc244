package simsystemd

import (
	"syscall"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

func TestTimeSpansAreReadAndPrintedAsSystemdDoes(t *testing.T) {
	for text, want := range map[string]string{
		"45": "45s", "45s": "45s", "1min 30s": "1min 30s", "infinity": "infinity", "120": "2min", "0": "0", "100ms": "100ms", "2h": "2h",
	} {
		if got := formatSpan(span(text, time.Hour)); got != want {
			t.Errorf("%q is printed as %q, want %q", text, got, want)
		}
	}
	if got := span("soon", time.Hour); got != time.Hour {
		t.Errorf("junk is %s, want the default", got)
	}
}

func TestDropInsMergeByNameAndAnEmptyValueClears(t *testing.T) {
	f := memfs.New(time.Now)
	put := func(name, text string) { f.Put(name, text, memfs.Root, 0o644) }
	put("/usr/lib/systemd/system/x.service", "[Service]\nExecStart=/bin/lib\n")
	put("/etc/systemd/system/x.service", "[Unit]\nRestart=no\n[Service]\nExecStart=/bin/etc a\nExecStop=/bin/one\nRestart=always\n")
	put("/usr/lib/systemd/system/service.d/10-all.conf", "[Service]\nTimeoutStopFailureMode=abort\nTimeoutStopSec=9\n")
	put("/run/systemd/system/x.service.d/50-a.conf", "[Service]\nExecStop=\nExecStop=/bin/two\n")
	put("/etc/systemd/system/x.service.d/50-a.conf", "[Service]\nExecStop=/bin/masks-the-one-in-run\n")
	put("/run/systemd/system/x.service.d/zz.conf", "[Service]\n# a comment\nKillSignal=SIGQUIT\nTimeoutStopSec=infinity\n")
	put("/run/systemd/system/x.service.d/ignored.txt", "[Service]\nRestart=no\n")
	c := load(f, "x.service")
	if c.fragment != "/etc/systemd/system/x.service" || len(c.dropIns) != 3 {
		t.Fatalf("fragment %s, drop-ins %v", c.fragment, c.dropIns)
	}
	if stop := c.values["ExecStop"]; len(stop) != 2 || stop[1] != "/bin/masks-the-one-in-run" {
		t.Errorf("ExecStop = %q", stop)
	}
	if c.killSignal() != syscall.SIGQUIT || c.stopLimit(0) != Infinity || c.failureMode() != "abort" || c.restart() != "always" {
		t.Errorf("%v %v %v %v", c.killSignal(), c.stopLimit(0), c.failureMode(), c.restart())
	}
	if load(f, "y.service") != nil {
		t.Error("a unit that does not exist was loaded")
	}
}
