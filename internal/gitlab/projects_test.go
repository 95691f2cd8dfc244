package gitlab_test

import (
	"slices"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// projectWorld has a runner of two projects; the token is u's.
func projectWorld(t *testing.T, u simgitlab.User, observe func(route, code string)) *world {
	t.Helper()
	return newWorld(t, func(sc *simgitlab.Config, gc *gitlab.Config) {
		u.Name, u.Token = "reader", simgitlab.DefaultUserToken
		sc.Users = []simgitlab.User{u}
		sc.Runners = []simgitlab.RunnerSpec{{
			ID: simgitlab.DefaultRunnerID, Token: simgitlab.DefaultRunnerToken, Type: "project_type", Projects: []string{"acme/app", "acme/secret"},
		}}
		if observe != nil {
			gc.Observe = observe
		}
	})
}

// facts/gitlab.md 1.3: GitLab leaves out the jobs of projects in which the
// caller is no Reporter.
func TestTheProjectsWhoseJobsAreLeftOutAreNamed(t *testing.T) {
	read := []string{"read_api"}
	for name, c := range map[string]struct {
		user simgitlab.User
		want []string
	}{
		"a Reporter in both":          {simgitlab.User{Scopes: read, Role: simgitlab.RoleOwner}, nil},
		"a Guest in one":              {simgitlab.User{Scopes: read, Role: simgitlab.RoleOwner, Projects: []string{"acme/app"}, Guest: []string{"acme/secret"}}, []string{"acme/secret"}},
		"a member of one, that is it": {simgitlab.User{Scopes: read, Role: simgitlab.RoleOwner, Projects: []string{"acme/app"}}, nil},
		"an administrator":            {simgitlab.User{Scopes: read, Role: simgitlab.RoleAdmin}, nil},
	} {
		got, err := projectWorld(t, c.user, nil).entry.UnseenProjects(t.Context())
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestOnlyAProjectRunnersProjectsAreAskedFor(t *testing.T) {
	w := newWorld(t, nil)
	if got, err := w.entry.UnseenProjects(t.Context()); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if codes := w.codes(); len(codes) != 1 {
		t.Errorf("asked %v", codes)
	}
}

func TestRolesThatCannotBeReadAreNotTakenForSufficient(t *testing.T) {
	w := projectWorld(t, simgitlab.User{Scopes: []string{"read_api"}, Role: simgitlab.RoleOwner}, nil)
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Routes: []string{"GET /projects"}, Code: 500})
	if _, err := w.entry.UnseenProjects(t.Context()); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("got %v", err)
	}
}
