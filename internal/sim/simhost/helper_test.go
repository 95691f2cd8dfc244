package simhost_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one host joined to a GitLab, with a client that may log in.
type world struct {
	*simhost.Host
	t      *testing.T
	gitlab *simgitlab.Server
	url    string // of the GitLab
	signer ssh.Signer
}

// quick is a runner's timing for tests: the order of things is as measured,
// the waits are shorter.
func quick() simrunner.Timing {
	t := simrunner.Measured()
	t.Handlers, t.Container, t.Check, t.Trace = 5*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
	t.Died, t.Removed, t.Interrupt = 20*time.Millisecond, 10*time.Millisecond, 30*time.Millisecond
	return t
}

func newWorld(t *testing.T, change func(*simhost.Options)) *world {
	t.Helper()
	t.Parallel() // most of a test is waiting
	gl := simgitlab.New(simgitlab.Config{Now: time.Now, LongPoll: 50 * time.Second})
	hs := httptest.NewServer(gl)
	t.Cleanup(hs.CloseClientConnections)
	t.Cleanup(hs.Close)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	o := simhost.Options{
		Name: "runner-01", Clock: simclock.NewReal(time.Now), AuthorizedKey: signer.PublicKey(),
		GitLabURL: hs.URL, Token: simgitlab.DefaultRunnerToken, Timing: quick(), RestartSec: "100ms",
	}
	if change != nil {
		change(&o)
	}
	h, err := simhost.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Destroy)
	w := &world{Host: h, t: t, gitlab: gl, url: hs.URL, signer: signer}
	h.PowerOn()
	w.eventually("the host is up", h.Up)
	w.eventually("the runner runs", func() bool { return w.show("SubState") == "running" })
	return w
}

// dial logs in.
func (w *world) dial() (*ssh.Client, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(w.HostKey()))
	if err != nil {
		w.t.Fatal(err)
	}
	return ssh.Dial("tcp", w.Address(), &ssh.ClientConfig{
		User: "fedora", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.signer)},
		HostKeyCallback: ssh.FixedHostKey(key), Timeout: time.Second,
	})
}

// sh runs a command over SSH and yields its output and status.
func (w *world) sh(command, stdin string) (string, int) {
	w.t.Helper()
	var c *ssh.Client
	w.eventually("a login", func() bool {
		var err error
		c, err = w.dial()
		return err == nil
	})
	defer func() { _ = c.Close() }()
	s, err := c.NewSession()
	if err != nil {
		w.t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(stdin), &out, &complaints
	err = s.Run(command)
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		return out.String() + complaints.String(), exit.ExitStatus()
	}
	if err != nil {
		w.t.Fatalf("%s: %v (%s)", command, err, out.String())
	}
	return out.String() + complaints.String(), 0
}

// show is one property of the runner's unit, as the model has it.
func (w *world) show(name string) string {
	m := w.Systemd()
	if m == nil {
		return ""
	}
	for _, p := range m.Show("gitlab-runner.service") {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// job queues a job and waits until it runs in its container.
func (w *world) job(script, after time.Duration) int64 {
	w.t.Helper()
	id := w.gitlab.Enqueue(simgitlab.JobSpec{Duration: script, AfterDuration: after})
	w.eventually("the job's container", func() bool { return len(w.Containers()) > 0 })
	return id
}

func (w *world) record(id int64) simgitlab.JobRecord {
	w.t.Helper()
	rec, ok := w.gitlab.Job(id)
	if !ok {
		w.t.Fatalf("no job %d", id)
	}
	return rec
}

func (w *world) verdict(id int64) simgitlab.Verdict { return w.record(id).Verdict }

func (w *world) dropIn(settings ...string) {
	w.Files().Put("/run/systemd/system/gitlab-runner.service.d/zz-test.conf", "[Service]\n"+strings.Join(settings, "\n")+"\n", "root", 0o644)
	w.Systemd().Reload()
}

// graceful are the values of a drain.
var graceful = []string{"Restart=no", "TimeoutStopSec=infinity", "KillSignal=SIGQUIT", "KillMode=mixed", "TimeoutStopFailureMode=terminate", "ExecStop="}

func (w *world) logged(part string) bool {
	return slices.ContainsFunc(w.Journal(), func(l string) bool { return strings.Contains(l, part) })
}

// eventually polls for a condition; it fails the test after ten seconds.
func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("never came: %s", what)
		}
	}
}

// cancel cancels a job as a user does.
func (w *world) cancel(id int64) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, fmt.Sprintf("%s/api/v4/projects/%s/jobs/%d/cancel", w.url, url.PathEscape(w.record(id).Project), id), http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Private-Token", simgitlab.DefaultWriteToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated {
		w.t.Fatalf("cancel = %s", resp.Status)
	}
}
