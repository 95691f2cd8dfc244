package gitlab_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// ownWorld is a GitLab with an entry of a VM's own, whose VM has joined and is
// gone, and the claim that an operation has to it.
type ownWorld struct {
	*world
	own     simgitlab.RunnerSpec
	entries *gitlab.Entries
	claim   fleet.EntryClaim
	later   time.Duration // our clock, and GitLab's, is so far ahead
}

func newOwnWorld(t *testing.T) *ownWorld {
	t.Helper()
	o := &ownWorld{}
	now := func() time.Time { return time.Now().Add(o.later) }
	o.world = newWorld(t, func(sc *simgitlab.Config, gc *gitlab.Config) { sc.Now, gc.Now = now, now })
	o.own = o.Register("gcp/a")
	o.joinOwn("s_a")
	o.VMGone("s_a")
	o.claim = fleet.EntryClaim{Entry: o.own.ID, Description: "gcp/a", SystemID: "s_a", Asked: now().Add(5 * time.Minute), Gone: now().Add(7 * time.Minute)}
	o.later = 10 * time.Minute
	o.entries = o.in.Entries(simgitlab.DefaultWriteToken)
	return o
}

func (o *ownWorld) joinOwn(systemID string) {
	o.t.Helper()
	if code, body := o.post(http.MethodPost, "/jobs/request", map[string]string{"token": o.own.Token, "system_id": systemID}); code != http.StatusNoContent {
		o.t.Fatalf("join = %d %s", code, body)
	}
}

// removals counts the calls that could have removed an entry.
func (o *ownWorld) removals() int {
	n := 0
	for _, seen := range o.codes() {
		if strings.HasPrefix(seen, "DELETE ") {
			n++
		}
	}
	return n
}

func TestAVMsOwnEntryIsReadThroughItsOwnNumber(t *testing.T) {
	o := newOwnWorld(t)
	subject := about("s_a")
	subject.Entry = o.own.ID
	if r := o.entries.Read(t.Context(), subject, time.Now()); r.Unknown != "" || !r.Present || r.Busy() != fleet.BusyIdle {
		t.Errorf("reading = %+v", r)
	}
	if r := o.entries.Read(t.Context(), about("s_a"), time.Now()); r.Busy() != fleet.BusyUnknown {
		t.Errorf("of an unknown entry: %+v", r)
	}
	if _, _, err := o.entries.Managers(t.Context()); fleet.CodeOf(err) != fleet.CodeInvalid {
		t.Errorf("the managers of no entry: %v", err)
	}
	info, err := o.entries.Entry(o.own.ID).Runner(t.Context())
	if err != nil || info.Description != "gcp/a" || info.CreatedAt.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := o.entries.Entry(99).Runner(t.Context()); fleet.CodeOf(err) != fleet.CodeNotFound || !strings.Contains(err.Error(), "config.toml names entry 99") {
		t.Errorf("an entry that is not there: %v", err)
	}
}

func TestTheEntryOfADeletedVMIsRemovedOnceAndNoOther(t *testing.T) {
	o := newOwnWorld(t)
	other := o.Register("gcp/b")
	if doubt, err := o.entries.RemoveEntry(t.Context(), o.claim); doubt != "" || err != nil {
		t.Fatalf("%q, %v", doubt, err)
	}
	if _, err := o.entries.RemoveEntry(t.Context(), o.claim); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("the second time: %v", err)
	}
	ledger := o.Ledger()
	left := o.Entries()
	if !slices.Equal(ledger.Removed, []int64{o.own.ID}) || len(ledger.Damage) != 0 || len(left) != 1 || left[0].ID != other.ID || o.removals() != 1 {
		t.Errorf("removed %v, damage %v, left %v, %d calls", ledger.Removed, ledger.Damage, left, o.removals())
	}
}

// Any doubt: nothing is sent but readings.
func TestAnEntryInDoubtIsLeftAndNothingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*ownWorld)
		want string
	}{
		"renamed":                        {func(o *ownWorld) { o.Rename(o.own.ID, "by hand") }, "description"},
		"created during the operation":   {func(o *ownWorld) { o.claim.Asked = o.claim.Asked.Add(-time.Hour) }, "created after"},
		"another VM has joined under it": {func(o *ownWorld) { o.joinOwn("s_b") }, "2 managers"},
		"its VM lives":                   {func(o *ownWorld) { o.joinOwn("s_a") }, "contacted GitLab since"},
		"its VM was another":             {func(o *ownWorld) { o.claim.SystemID = "s_x" }, "its manager is s_a"},
		"the shared entry of a fleet":    {func(o *ownWorld) { o.claim.Entry = simgitlab.DefaultRunnerID }, "description"},
	} {
		o := newOwnWorld(t)
		c.bend(o)
		doubt, err := o.entries.RemoveEntry(t.Context(), o.claim)
		if err != nil || !strings.Contains(doubt, c.want) || o.removals() != 0 || len(o.Ledger().Removed)+len(o.Ledger().Damage) != 0 {
			t.Errorf("%s: %q, %v, %v", name, doubt, err, o.codes())
		}
	}
}

func TestWhatGitLabDoesNotSayLeavesTheEntryAndIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		fault simgitlab.Fault
		want  fleet.Code
		calls int
	}{
		"the managers are not told": {simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"GET /runners/:id/managers"}, Code: 500}, fleet.CodeUnavailable, 0},
		"the entry is not told":     {simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"GET /runners/:id"}, Code: 403}, fleet.CodeForbidden, 0},
		"the removal fails":         {simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"DELETE /runners/:id"}, Code: 502}, fleet.CodeUnavailable, 1},
		"the removal is forbidden":  {simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"DELETE /runners/:id"}, Code: 403}, fleet.CodeForbidden, 1},
		"it changes in between":     {simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"DELETE /runners/:id"}, Code: 412}, fleet.CodeConflict, 1},
	} {
		o := newOwnWorld(t)
		o.Inject(c.fault)
		doubt, err := o.entries.RemoveEntry(t.Context(), o.claim)
		if doubt != "" || fleet.CodeOf(err) != c.want || o.removals() != c.calls || len(o.Entries()) != 1 {
			t.Errorf("%s: %q, %v, %v", name, doubt, err, o.codes())
		}
		if c.want == fleet.CodeForbidden && c.calls == 1 && !strings.Contains(fleet.HintOf(err), "gitlab.write_token") {
			t.Errorf("%s: the hint is %q", name, fleet.HintOf(err))
		}
	}
}

// GitLab checks the same once more: what was changed since the look is refused.
func TestAnEntryThatIsChangedAfterTheLookIsNotRemoved(t *testing.T) {
	o := newOwnWorld(t)
	o.Rename(o.own.ID, "gcp/a") // as it was, but touched in what is the future of the look
	o.later -= time.Minute
	if _, err := o.entries.RemoveEntry(t.Context(), o.claim); fleet.CodeOf(err) != fleet.CodeConflict || len(o.Entries()) != 1 {
		t.Errorf("%v, left %v", err, o.Entries())
	}
}

func TestWithoutAWriteTokenNoEntryIsRemoved(t *testing.T) {
	o := newOwnWorld(t)
	for token, want := range map[string]string{"": "no gitlab.write_token", simgitlab.DefaultUserToken: "403", "glpat-nobody": "401"} {
		_, err := o.in.Entries(token).RemoveEntry(t.Context(), o.claim)
		if fleet.CodeOf(err) != fleet.CodeForbidden || !strings.Contains(err.Error(), want) || len(o.Entries()) != 1 {
			t.Errorf("with %q: %v", token, err)
		}
		if token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("the token is shown: %v", err)
		}
	}
}
