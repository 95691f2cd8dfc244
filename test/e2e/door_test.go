//go:build e2e

package e2e_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/test/e2e/machines"
	"gitlab.com/sluice-runners/sluice/test/e2e/stage"
)

// Where the controller listens, seen from the machines and their jobs, whom id_tokens are
// made for, and whose jobs are let in.
const (
	doorListen   = machines.CloudAddress + ":8420"
	doorURL      = "http://" + doorListen
	doorAudience = "https://sluice.example.com"
	doorProject  = "acme/app"
)

// door is a scene whose controller lets jobs in, with the signer of their id_tokens.
type door struct {
	*scene
	signer *mockoidc.MockOIDC
	shell  bool
}

// jobsIn is how jobs run on a door's machines: they have the sluice binary, as the image
// of the component's job does, and reach the controller.
type jobsIn string

const (
	containers jobsIn = `executor = "custom"
  [runners.docker]
    network_mode = "host"
    volumes = ["/usr/local/bin/sluice:/usr/local/bin/sluice:ro"]
`
	shells jobsIn = "executor = \"shell\"\n"
)

// doorCap ends a job that waits for its own VM, and thereby the test.
const doorCap = 90 * time.Second

// newDoor opens a controller's door in front of machines of these names.
func newDoor(t *testing.T, jobs jobsIn, names ...string) *door {
	t.Helper()
	d := &door{scene: newStage(t), shell: jobs == shells}
	set := &d.World.Settings
	set.CLI = d.Program("sluice")
	set.RunnerConfig = strings.Replace(set.RunnerConfig, "executor = \"custom\"\n", string(jobs), 1)
	if err := d.World.Save(); err != nil {
		t.Fatal(err)
	}
	d.boot(names...)
	var err error
	if d.signer, err = mockoidc.NewServer(nil); err != nil {
		t.Fatal(err)
	}
	// The controller runs in the world's network: its loopback is this.
	listener, err := d.World.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.signer.Start(listener, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.signer.Shutdown() })
	d.configure(stage.Config{
		Fleet: fleetName, VMs: names, Cap: doorCap.String(),
		Door: &stage.Door{Listen: doorListen, Issuer: d.signer.Issuer(), Audience: doorAudience, Project: doorProject},
	})
	d.serve()
	return d
}

// asking is a job that asks to recreate VMs, at work on one of them.
type asking struct {
	door *door
	id   int64
}

// asks starts a job on a host that will run `sluice ci recreate` and end with it, but for
// its after_script, which waits until the VM drains. It asks as soon as it is let go.
func (d *door) asks(on *host, vms ...string) *asking {
	d.t.Helper()
	id := d.queue(on, simgitlab.JobSpec{
		Name: "recreate-runners", Project: doorProject,
		Script: []string{
			"until test -e /tmp/go-$CI_JOB_ID; do sleep 0.1; done",
			". /tmp/env-$CI_JOB_ID",
			fmt.Sprintf("sluice ci recreate --server %s --fleet %s --vms '%s' --image v2 --reports /tmp/sluice-$CI_JOB_ID", doorURL, fleetName, strings.Join(vms, " ")),
			"echo 'ci ended well'",
		},
		AfterScript: []string{"for i in $(seq 600); do if test -e /tmp/end-$CI_JOB_ID; then break; fi; sleep 0.1; done"},
	})
	if !d.shell {
		d.awaitContainer(on, id)
	}
	d.awaitJob(id, 15*time.Second, "begin", func(j simgitlab.JobRecord) bool { return !j.AssignedAt.IsZero() })
	return &asking{door: d, id: id}
}

// letGo hands the job what GitLab puts into its environment (the id_token holds the job's
// id, so it is made only when there is one), and lets it ask.
func (a *asking) letGo(on *host) {
	a.door.t.Helper()
	j := a.record()
	var env strings.Builder
	for name, value := range map[string]string{
		"GITLAB_CI": "true", "CI_SERVER_URL": stage.GitLabURL, "CI_PROJECT_ID": strconv.FormatInt(j.ProjectID, 10), "CI_PIPELINE_ID": "1001",
		"CI_JOB_NAME": j.Name, "CI_JOB_URL": fmt.Sprintf("%s/%s/-/jobs/%d", stage.GitLabURL, doorProject, j.ID), "SLUICE_ID_TOKEN": a.door.idToken(j),
	} {
		_, _ = fmt.Fprintf(&env, "export %s='%s'\n", name, value)
	}
	a.inside(on, "cat > /tmp/env-$CI_JOB_ID; touch /tmp/go-$CI_JOB_ID", env.String())
}

// inside runs a script where the job runs.
func (a *asking) inside(on *host, script, input string) {
	a.door.t.Helper()
	shell := fmt.Sprintf("CI_JOB_ID=%d sh", a.id)
	if !a.door.shell {
		shell = "podman exec --interactive " + jobContainer(a.id) + " sh"
	}
	on.run(fmt.Sprintf("%s -c '%s' <<'END'\n%sEND\n", shell, script, input))
}

func (a *asking) record() simgitlab.JobRecord {
	a.door.t.Helper()
	j, err := a.door.GitLab.Job(a.door.ctx, a.id)
	if err != nil {
		a.door.t.Fatal(err)
	}
	return j
}

// idToken is what GitLab signs for a job.
func (d *door) idToken(j simgitlab.JobRecord) string {
	d.t.Helper()
	now := time.Now()
	token, err := d.signer.Keypair.SignJWT(jwt.MapClaims{
		"iss": d.signer.Issuer(), "aud": doorAudience, "sub": "project_path:" + doorProject + ":ref_type:branch:ref:main",
		"iat": now.Unix(), "nbf": now.Add(-5 * time.Second).Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "job-" + strconv.FormatInt(j.ID, 10),
		"project_id": strconv.FormatInt(j.ProjectID, 10), "project_path": j.Project, "namespace_id": "7", "namespace_path": "acme",
		"pipeline_id": "1001", "pipeline_source": "push", "job_id": strconv.FormatInt(j.ID, 10), "ref": "main", "ref_type": "branch",
		"ref_path": "refs/heads/main", "ref_protected": "true", "user_login": "ada",
		"runner_id": simgitlab.DefaultRunnerID, "runner_environment": "self-hosted",
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return token
}

// endsInMidDrain waits until the VM drains and the job has ended then, by itself and well,
// and yields what it said.
func (a *asking) endsInMidDrain(on *host, limit time.Duration) (simgitlab.JobRecord, string) {
	a.door.t.Helper()
	began := time.Now()
	a.door.await(limit, "the asking job's VM to drain", func() (bool, error) { return on.unit("ActiveState") == "deactivating", nil })
	a.inside(on, "touch /tmp/end-$CI_JOB_ID", "")
	a.door.awaitJob(a.id, limit-time.Since(began), "end", finished)
	j := a.door.mustHaveSucceeded(a.id)
	said, err := a.door.GitLab.Trace(a.door.ctx, j)
	if err != nil {
		a.door.t.Fatal(err)
	}
	a.door.t.Logf("the job said:\n%s", said)
	return j, said
}

// operationOn finds which operation a job's log says it has on a VM.
func operationOn(t *testing.T, vm, said string) string {
	t.Helper()
	found := regexp.MustCompile(fleetName + "/" + vm + `: operation (op-[0-9a-z]{12})\b`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("no operation on %s is named in:\n%s", vm, said)
	}
	return found[1]
}

// succeeds follows an operation to its end, and fails unless it ended well after a drain
// that took its course.
func (d *door) succeeds(id string) client.Operation {
	d.t.Helper()
	d.start("op", "watch", id).wait(2*time.Minute, exitDone)
	op := d.operation(id)
	if op.Phase != client.OperationPhaseSucceeded || op.Verdict == nil || *op.Verdict != "drained" || op.CutJobs != nil {
		d.t.Errorf("%s on %s: %s, verdict %v, cut jobs %v", op.Id, op.Vm, op.Phase, op.Verdict, op.CutJobs)
	}
	return op
}
