//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

func TestServiceIsRestartedInMidCreateAndInMidDrainAndStopsClean(t *testing.T) {
	s := newStage(t)
	s.World.Settings.CLI = s.Program("sluice")
	s.must(s.World.Save())
	s.boot("one")
	one := s.host("one")
	c := s.newService()
	c.show("one", "")
	c.root("systemctl start sluice")
	c.awaitReady()
	c.createsOverARestart("two")
	op := c.drainsOverARestart(one)

	c.root("systemctl stop sluice")
	c.mustHaveStoppedClean()
	c.root("systemctl start sluice")
	c.awaitReady()
	s.mustMention(c.sluice("op show "+op), "succeeded")
}

// createsOverARestart makes a VM by a command that outlives the service: it waits for the
// machine, which is there only after the restart.
func (c *service) createsOverARestart(vm string) {
	s := c.scene
	s.t.Helper()
	op := operationIn(s.t, c.sluice("create lab/"+vm+" --detach --yes"))
	creates := func() string { return c.root("cat /var/lib/sluice/creates 2>/dev/null || :") }
	s.await(20*time.Second, "the create to be under way", func() (bool, error) { return creates() != "", nil })
	c.root("systemctl restart sluice")
	c.awaitReady()
	s.boot(vm)
	s.host(vm)
	c.show(vm, op)
	c.sluice("op watch " + op)
	if got := creates(); got != op {
		s.t.Errorf("the create command ran for %q, want once for %s", got, op)
	}
}

// drainsOverARestart drains a VM, restarts the service while the job is waited for, and
// gives intake back when it was drained.
func (c *service) drainsOverARestart(h *host) (operation string) {
	s := c.scene
	s.t.Helper()
	id := s.begin(h, longJob(20*time.Second))
	op := operationIn(s.t, c.sluice("drain lab/"+h.Name+" --detach --yes"))
	h.await("deactivating")
	c.root("systemctl restart sluice")
	c.awaitReady()
	if j, err := s.GitLab.Job(s.ctx, id); err != nil || finished(j) {
		s.t.Fatalf("the job had ended before the restart: %+v, %v", j, err)
	}
	c.sluice("op watch " + op)
	s.mustHaveSucceeded(id)
	c.sluice("undrain lab/" + h.Name + " --yes")
	s.mustServeAgain(h)
	return op
}

// serviceConfig is the controller, set up as in docs/operating.md:
// secrets as systemd credentials, the provider's commands as a script.
const serviceConfig = `
gitlab: {url: "%s", token: {credential: gitlab-read}}
fleets:
  lab:
    runner: {id: %d, token: {credential: runner-token}}
    vms: {names: [one, two]}
    provider:
      exec:
        list: [/bin/sh, /etc/sluice/vm.sh]
        describe: [/bin/sh, /etc/sluice/vm.sh]
        prepare: [/bin/sh, /etc/sluice/vm.sh]
        create: [/bin/sh, /etc/sluice/vm.sh]
        delete: [/bin/sh, /etc/sluice/vm.sh]
    host: {user: fedora, runner_user: fedora, key: {credential: ssh-key}, host_keys: provider}
store: {sqlite: /var/lib/sluice/sluice.db}
server:
  listen: ":8420"
  tokens: [{name: people, sha256: %x}]
`

// serviceProvider knows the machines that it is shown; its create waits for one.
const serviceProvider = `one=$(cat /etc/sluice/one.json)
two=$(cat /var/lib/sluice/two.json 2>/dev/null)
case $SLUICE_VERB:${SLUICE_VM-} in
list:) echo "{\"instances\": [$one${two:+, $two}]}" ;;
describe:one) echo "{\"instances\": [$one]}" ;;
describe:two) echo "{\"instances\": [$two]}" ;;
prepare:*) echo '{"image": "v1"}' ;;
create:two)
    echo "$SLUICE_OPERATION" >> /var/lib/sluice/creates
    until test -e /etc/sluice/two.json; do sleep 0.2; done
    cp /etc/sluice/two.json /var/lib/sluice/two.json
    echo "{\"instance\": $(cat /var/lib/sluice/two.json)}" ;;
*) exit 9 ;;
esac
`

// service is a machine with deploy/systemd/sluice.service.
type service struct{ *host }

// newService sets the machine up; the service does not run yet.
func (s *scene) newService() *service {
	s.t.Helper()
	root, err := stage.ModuleRoot(s.ctx)
	s.must(err)
	unit, err := os.ReadFile(filepath.Join(root, "deploy", "systemd", "sluice.service"))
	s.must(err)
	key, err := os.ReadFile(s.Path("id_ed25519"))
	s.must(err)
	set := s.World.Settings
	_, err = s.World.Create(s.ctx, machines.Spec{Name: "controller", Image: "v1", Files: map[string]string{
		"/etc/systemd/system/sluice.service": string(unit), "/etc/sluice/vm.sh": serviceProvider,
		"/etc/sluice/sluice.yaml": fmt.Sprintf(serviceConfig, stage.GitLabURL, set.RunnerID, sha256.Sum256([]byte("nobody's"))),
	}})
	s.must(err)
	c := &service{s.host("controller")}
	for name, secret := range map[string]string{"gitlab-read": set.GitLabToken, "runner-token": set.RunnerToken, "ssh-key": strings.TrimSpace(string(key))} {
		c.write("/etc/sluice/secrets/"+name, secret)
		c.root("chmod 0600 /etc/sluice/secrets/" + name)
	}
	c.root("systemctl disable --quiet --now gitlab-runner") // it is no VM of the fleet
	return c
}

// show lets the provider see a machine, made by an operation.
func (c *service) show(vm, operation string) {
	c.scene.t.Helper()
	m := c.scene.machine(vm)
	text, err := json.Marshal(map[string]any{
		"id": m.ID, "vm": m.Name, "presence": "running", "ready": true, "address": m.Address, "host_keys": m.HostKeys,
		"image": m.Image, "created_at": m.CreatedAt, "labels": map[string]string{"sluice-operation": operation},
	})
	c.scene.must(err)
	c.write("/etc/sluice/"+vm+".json", string(text))
}

// write writes a file of root's, whole or not at all.
func (c *service) write(path, content string) {
	c.scene.t.Helper()
	c.root(fmt.Sprintf("mkdir -p $(dirname %[1]s); cat > %[1]s.new <<'END'\n%[2]s\nEND\nmv %[1]s.new %[1]s", path, content))
}

// must ends the test on an error.
func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// sluice runs a command as root on the service's machine: a client of its socket.
func (c *service) sluice(args string) string {
	c.scene.t.Helper()
	return c.root("sluice --config /etc/sluice/sluice.yaml " + args)
}

// awaitReady waits until the service says over TCP that it is ready.
func (c *service) awaitReady() {
	c.scene.t.Helper()
	asker := &http.Client{Transport: &http.Transport{DialContext: c.scene.World.DialContext, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	c.scene.await(20*time.Second, "the service to be ready", func() (bool, error) {
		request, err := http.NewRequestWithContext(c.scene.ctx, http.MethodGet, "http://"+c.Address+":8420/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		resp, err := asker.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// mustHaveStoppedClean fails unless the stopped service left nothing behind but what is
// its own in its state directory.
func (c *service) mustHaveStoppedClean() {
	c.scene.t.Helper()
	for what, want := range map[string]struct{ script, said string }{
		"the unit": {
			"systemctl show --property ActiveState,Result,ExecMainStatus,NRestarts sluice | sort | paste -sd ' '",
			"ActiveState=inactive ExecMainStatus=0 NRestarts=0 Result=success",
		},
		"its processes":                 {"pgrep --list-full --euid sluice || :", ""},
		"its socket":                    {"ls /var/lib/sluice/*.sock 2>/dev/null || :", ""},
		"its credentials":               {"ls -d /run/credentials/sluice.service 2>/dev/null || :", ""},
		"strangers' files in its state": {"find /var/lib/sluice '!' -user sluice", ""},
		"files in its state for others": {"find /var/lib/sluice '!' -type l -perm /077", ""},
		"its database":                  {"ls /var/lib/sluice/sluice.db", "/var/lib/sluice/sluice.db"},
	} {
		if got := c.root(want.script); got != want.said {
			c.scene.t.Errorf("%s after the stop: %q, want %q", what, got, want.said)
		}
	}
}
