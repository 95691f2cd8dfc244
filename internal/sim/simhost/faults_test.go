package simhost_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
)

func TestAnUnreachableHostRefusesAndComesBackAtItsAddress(t *testing.T) {
	w := newWorld(t, nil)
	c, err := w.dial()
	if err != nil {
		t.Fatal(err)
	}
	w.Unreachable()
	if err := c.Wait(); err == nil {
		t.Error("a connection outlived it")
	}
	if _, err := w.dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
	w.Reachable()
	if _, code := w.sh("true", ""); code != 0 {
		t.Errorf("status %d", code)
	}
}

func TestAHungHostAnswersNothingAndBreaksNothing(t *testing.T) {
	w := newWorld(t, nil)
	c, err := w.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	w.Hang()
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a hung host answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	w.Thaw()
	if err := <-answered; err != nil {
		t.Errorf("after the thaw: %v", err)
	}
}

func TestACommandGoesOnWhenItsConnectionIsCut(t *testing.T) {
	w := newWorld(t, nil)
	c, err := w.dial()
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	w.CutAfter(4)
	s.Stdin = strings.NewReader("echo begin; echo more; sudo -n tee /run/mark </dev/null\n")
	out, err := s.Output("sh -s")
	if err == nil || string(out) != "begi" {
		t.Errorf("output %q, %v", out, err)
	}
	w.eventually("the effect", func() bool {
		_, err := w.Files().Stat("/run/mark", "root")
		return err == nil
	})
}

func TestAWrongHostKeyIsShown(t *testing.T) {
	w := newWorld(t, nil)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	w.WrongHostKey(other)
	if _, err := w.dial(); err == nil || !strings.Contains(err.Error(), "host key mismatch") {
		t.Errorf("dial: %v", err)
	}
}

func TestFaultsOfTheHostShowInItsCommands(t *testing.T) {
	for name, c := range map[string]struct {
		fault   func(*simhost.Host)
		command string
		code    int
		want    string
	}{
		"banner noise":          {func(h *simhost.Host) { h.Banner("Welcome!\n") }, "echo x", 0, "Welcome!\nx"},
		"podman missing":        {func(h *simhost.Host) { h.Uninstall("podman") }, "podman ps", 127, "not found"},
		"pidwait missing":       {func(h *simhost.Host) { h.Uninstall("pidwait") }, "command -v pidwait", 1, ""},
		"an empty answer":       {func(h *simhost.Host) { h.EmptyAnswers(1) }, "systemctl show gitlab-runner", 0, ""},
		"sudo refuses one":      {func(h *simhost.Host) { h.RefuseSudo("systemctl", "stop") }, "sudo -n systemctl stop gitlab-runner", 1, "sudo: a password is required"},
		"and lets others":       {func(h *simhost.Host) { h.RefuseSudo("systemctl", "stop") }, "sudo -n systemctl daemon-reload", 0, ""},
		"/run full":             {func(h *simhost.Host) { h.Files().Fill("/run") }, "echo x | sudo -n tee /run/x >/dev/null", 1, "No space left on device"},
		"/run read-only":        {func(h *simhost.Host) { h.Files().Protect("/run") }, "sudo -n mkdir /run/x", 1, "Read-only file system"},
		"unit missing":          {func(h *simhost.Host) { h.RemoveUnit() }, "systemctl cat gitlab-runner", 1, "No files found"},
		"not root":              {func(*simhost.Host) {}, "systemctl stop gitlab-runner", 1, "Interactive authentication required"},
		"not readable":          {func(h *simhost.Host) { _ = h.Files().Chown("/etc/gitlab-runner/config.toml", "root") }, "cat /etc/gitlab-runner/config.toml", 1, "Permission denied"},
		"from root's directory": {func(*simhost.Host) {}, "sudo -n sh -c 'cd /root; sudo -u fedora id'", 1, "cannot chdir"},
		"timeout":               {func(*simhost.Host) {}, "timeout -k 1 0.05 sleep 60", 124, ""},
		"a lock that is held":   {func(*simhost.Host) {}, "exec 9</run; flock 9; sh -c 'exec 8</run; flock -w 0.05 8'", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c.fault(w.Host)
			out, code := w.sh(c.command, "")
			if code != c.code || !strings.Contains(out, c.want) || c.want == "" && strings.TrimSpace(out) != "" {
				t.Errorf("status %d, want %d; output %q, want %q", code, c.code, out, c.want)
			}
		})
	}
}

func TestSudoersAllowWhatTheyList(t *testing.T) {
	w := newWorld(t, func(o *simhost.Options) {
		o.Sudoers = `Cmnd_Alias SLUICE = /usr/bin/systemctl daemon-reload, \
    /usr/bin/systemctl stop --no-block gitlab-runner.service, /usr/bin/tee /run/systemd/system/gitlab-runner.service.d/*.conf
Defaults!SLUICE !requiretty
fedora ALL=(root) NOPASSWD: SLUICE
`
	})
	for command, want := range map[string]int{
		"sudo -n systemctl daemon-reload":                         0,
		"sudo -n systemctl stop --no-block other.service":         1,
		"sudo -n systemctl stop gitlab-runner.service":            1,
		"sudo -n mkdir -p /run/x":                                 1,
		"sudo -n tee /etc/passwd </dev/null":                      1,
		"sudo -n systemctl stop --no-block gitlab-runner.service": 0,
		"sudo -n -l systemctl daemon-reload":                      0,
		"sudo -n -u root systemctl start gitlab-runner.service":   1,
	} {
		if out, code := w.sh(command, ""); code != want {
			t.Errorf("%s: status %d, want %d (%s)", command, code, want, out)
		}
	}
}
