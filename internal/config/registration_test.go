package config

import (
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAFleetOfIndividualEntriesNamesNoneItself(t *testing.T) {
	c, err := parse(t, minimal+"    runner: {registration: individual}\ngitlab: {token: {env: T}, write_token: {env: W}}\n")
	if err != nil {
		t.Fatal(err)
	}
	spec := c.Specs()["gcp"]
	if !spec.Individual() || spec.RunnerID != 0 || spec.HasRunnerToken || !spec.HasGitLab {
		t.Errorf("spec %+v", spec)
	}
}

func TestWhatDoesNotFitTheRegistrationIsNamedWithWhatToWrite(t *testing.T) {
	const gitlab = "gitlab: {token: {env: T}}\n"
	for file, want := range map[string][]string{
		minimal + "    runner: {registration: individual, id: 7}\n" + gitlab:           {"fleets.gcp.runner.id: is given, and registration is individual", "[[runners]]"},
		minimal + "    runner: {registration: individual, token: {env: R}}\n" + gitlab: {"fleets.gcp.runner.token: is given, and registration is individual", "create script"},
		minimal + "    runner: {registration: individual}\n":                           {"fleets.gcp.runner.registration: is individual, and gitlab.token is missing", "give gitlab.token"},
		minimal + "    runner: {registration: none}\n" + gitlab:                        {"fleets.gcp.runner.id: is missing"},
		minimal + "    runner: {registration: each}\n" + gitlab:                        {"fleets.gcp.runner.registration"},
	} {
		_, err := parse(t, file)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s\n%v\nwant %q", file, err, part)
			}
		}
	}
}

func TestARegistrationOfNoneIsAFleetWithItsEntry(t *testing.T) {
	c, err := parse(t, minimal+"    runner: {registration: none, id: 7, token: {env: R}}\ngitlab: {token: {env: T}}\n")
	if err != nil || c.Specs()["gcp"].Registration != fleet.RegistrationNone || c.Specs()["gcp"].RunnerID != 7 {
		t.Errorf("%v", err)
	}
}
