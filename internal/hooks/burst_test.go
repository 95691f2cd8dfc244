package hooks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/app"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// serveWhole is `sluice serve` on a fleet of ten VMs, and one that is not
// serving and uses the budget up: operations are asked for, taken over and kept
// in line, and none begins.
func serveWhole(in instructions) error {
	signing := filepath.Join(filepath.Dir(in.Journal), "signing")
	if err := os.WriteFile(signing, []byte(signingNew), 0o600); err != nil {
		return err
	}
	if err := useUpTheBudget(in.Journal); err != nil {
		return err
	}
	spec := fleet.Spec{Name: "gcp", RunnerID: 7, HasGitLab: true, Drain: fleet.DefaultDrainPolicy()}
	for i := range 10 {
		spec.VMs = append(spec.VMs, fmt.Sprintf("runner-%02d", i))
	}
	members := spec.VMs
	spec.VMs = append(spec.VMs, "away")
	c := &config.Config{
		Store:    config.Store{SQLite: in.Journal},
		Server:   config.Server{Socket: strings.TrimSuffix(in.Journal, ".db") + ".sock", Listen: "127.0.0.1:0"},
		Log:      config.Log{Level: "info", Format: "text"},
		Webhooks: config.Webhooks{GitLab: config.GitLabWebhook{SigningTokens: []*config.Secret{{File: signing}}}},
		Triggers: []config.Trigger{{Name: "t", On: "pipeline", Status: "success", ProjectID: project, Fleet: "gcp", VMs: members, Image: "runner-{{ .SHA }}"}},
	}
	ctx := context.Background()
	a, err := app.Open(ctx, app.Options{
		Config: c, Role: app.RoleServe, Command: "burst", Version: "test", Log: &listening{},
		Fleets: map[string]*engine.Fleet{"gcp": {Spec: spec}},
	})
	if err != nil {
		return err
	}
	return a.Serve(ctx)
}

func useUpTheBudget(journal string) error {
	s, err := store.Open(context.Background(), store.Options{Path: journal, Clock: wall{}})
	if err != nil {
		return err
	}
	vm := &fleet.VM{Ref: fleet.Ref{Fleet: "gcp", VM: "away"}, Intake: fleet.IntakeServing, Missing: true}
	return errors.Join(s.SaveVM(context.Background(), vm), s.Close())
}

// listening prints the address that the log tells.
type listening struct{ told bool }

var addressed = regexp.MustCompile(`msg=listening.* address=(\S+)`)

func (l *listening) Write(line []byte) (int, error) {
	if found := addressed.FindSubmatch(line); found != nil && !l.told {
		l.told = true
		fmt.Printf("%s\n", found[1])
	}
	return len(line), nil
}

// burst is a stream of deliveries, as a busy group's hook sends them: mostly
// jobs, then pushes to other branches; one in fifty is the success of a pipeline
// that the trigger waits for, and recreates ten VMs.
type burst struct {
	*world
	bodies map[string][]byte
}

func newBurst(w *world) *burst {
	b := &burst{world: w, bodies: map[string][]byte{}}
	for _, name := range []string{"job", "push", "pipeline"} {
		b.bodies[name] = fixture(w, name)
	}
	return b
}

// firstKey gives every number the same digits: a newer image is called by a
// greater name.
const firstKey = 100000

// request makes the n-th delivery.
func (b *burst) request(n int) *http.Request {
	id := fmt.Sprint(firstKey + n)
	body := b.bodies["job"]
	switch {
	case n%50 == 0:
		commit := strings.Repeat("c", 40-len(id)) + id
		body = bytes.ReplaceAll(b.bodies["pipeline"], []byte(sha), []byte(commit))
		body = bytes.Replace(body, []byte(`"id": 3100`), []byte(`"id": `+id), 1)
	case n%10 < 4:
		body = bytes.Replace(b.bodies["push"], []byte("refs/heads/main"), []byte("refs/heads/topic-"+id), 1)
	default:
		body = bytes.Replace(body, []byte(`"build_id": 901`), []byte(`"build_id": `+id), 1)
	}
	return b.signed(body, "burst-"+id, signingNew, time.Now())
}

// send sends so many deliveries at so many a second and yields which were
// acknowledged, by number, and how long each took from when it was due.
func (b *burst) send(p *process, from, count, perSecond int) (acknowledged map[int]bool, took []time.Duration) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	acknowledged = map[int]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for n := from; n < from+count; n++ {
		<-ticker.C
		due, request := time.Now(), b.request(n)
		all.Go(func() {
			status := p.post(client, request)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(due))
			if status/100 == 2 {
				acknowledged[n] = true
			}
		})
	}
	all.Wait()
	return acknowledged, took
}

// killInMidBurst sends deliveries and kills the server in their midst; what got
// no answer is sent again to the next one. It yields how many were acknowledged
// before the end and how many of those the journal does not have, and checks that
// none is there twice.
func killInMidBurst(t testing.TB, count, perSecond int) (acknowledged, lost int) {
	t.Helper()
	w := newWorld(t, nil)
	b := newBurst(w)
	journal := journalIn(t)
	p := startProcess(t, instructions{Journal: journal, Whole: true})
	timer := time.AfterFunc(time.Duration(count)*time.Second/time.Duration(perSecond)/2, p.die)
	defer timer.Stop()
	first, _ := b.send(p, 0, count, perSecond)
	p.kill()
	s, err := store.OpenReader(t.Context(), store.Options{Path: journal, Clock: wall{}})
	w.must(err)
	defer func() { w.must(s.Close()) }()
	lost = len(first) - len(stored(t, s, first))
	next := startProcess(t, instructions{Journal: journal, Whole: true})
	client := &http.Client{Timeout: 10 * time.Second}
	for n := range count {
		if !first[n] && next.post(client, b.request(n))/100 != 2 {
			t.Fatalf("delivery %d was not taken after the restart\n%s", n, next.stderr.String())
		}
	}
	await(t, "all work is done", func() bool {
		ids, err := s.PendingDeliveries(t.Context())
		return err == nil && len(ids) == 0
	})
	list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{Limit: 10 * count})
	w.must(err)
	if len(list) != count {
		t.Errorf("%d deliveries are stored, %d were sent", len(list), count)
	}
	newestCounts(t, s, list)
	return len(first), lost
}

// stored says which deliveries are in the journal.
func stored(t testing.TB, s *store.Store, which map[int]bool) map[int]bool {
	t.Helper()
	list, err := s.Deliveries(t.Context(), fleet.DeliveryFilter{Limit: 100000})
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]bool{}
	for _, d := range list {
		n, err := strconv.Atoi(strings.TrimPrefix(d.Key, "burst-"))
		if err != nil {
			t.Fatal(err)
		}
		if which[n-firstKey] {
			found[n-firstKey] = true
		}
	}
	return found
}

// newestCounts checks that every VM is to have the newest pipeline's image, by
// one operation.
func newestCounts(t testing.TB, s *store.Store, list []fleet.Delivery) {
	t.Helper()
	newest := ""
	for _, d := range list {
		if len(d.Tasks) == 1 && d.Tasks[0].Image > newest {
			newest = d.Tasks[0].Image
		}
	}
	ops, err := s.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var vms []string
	for _, op := range ops {
		if op.Request.Image != newest {
			t.Errorf("%s is to have %s, not %s", op.VM, op.Request.Image, newest)
		}
		vms = append(vms, op.VM)
	}
	slices.Sort(vms)
	if len(vms) != 10 || len(slices.Compact(vms)) != 10 {
		t.Errorf("unfinished operations on %v", vms)
	}
}

func TestNothingIsLostWhenTheServerIsKilledInMidBurst(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	acknowledged, lost := killInMidBurst(t, 200, 100)
	if lost > 0 || acknowledged == 0 || acknowledged == 200 {
		t.Errorf("%d of 200 acknowledged before the kill, %d lost", acknowledged, lost)
	}
}

// BenchmarkAcknowledge prints how long GitLab waits for an answer, with the
// durable write in it, at 200 deliveries a second over TCP, signed, to the whole
// of Sluice in a process of its own; and how many are lost when that is killed.
func BenchmarkAcknowledge(b *testing.B) {
	const perSecond = 200
	for b.Loop() {
		w := newWorld(b, nil)
		p := startProcess(b, instructions{Journal: journalIn(b), Whole: true})
		acknowledged, took := newBurst(w).send(p, 0, 10*perSecond, perSecond)
		p.kill()
		if len(acknowledged) != 10*perSecond {
			b.Errorf("%d of %d acknowledged", len(acknowledged), 10*perSecond)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		before, lost := killInMidBurst(b, 5*perSecond, perSecond)
		b.ReportMetric(float64(before), "acknowledged-before-kill")
		b.ReportMetric(float64(lost), "lost")
	}
}
