package stage

import (
	"fmt"
	"strings"
)

// Guide says how people reach what stands, with a sluice.yaml ready in the world's
// directory.
func (s *Stage) Guide() (string, error) {
	all, err := s.World.List()
	if err != nil {
		return "", err
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	config, err := s.WriteConfig("people", Config{Fleet: "lab", VMs: names})
	if err != nil {
		return "", err
	}
	inside := strings.Join(s.World.InCloud(), " ")
	e2e := s.Program("e2e")
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "GitLab        %s   (only inside the world's network: %s COMMAND)\n", GitLabURL, inside)
	_, _ = fmt.Fprintf(&b, "user token    %s\n", s.World.Settings.GitLabToken)
	_, _ = fmt.Fprintf(&b, "runner        id %d, token %s\n", s.World.Settings.RunnerID, s.World.Settings.RunnerToken)
	_, _ = fmt.Fprintf(&b, "login key     %s\n", s.Path("id_ed25519"))
	for _, m := range all {
		_, _ = fmt.Fprintf(&b, "machine       %s  %s  %s   %s ssh %s %s\n", m.Name, m.ID, m.Address, e2e, s.World.Name, m.Name)
	}
	_, _ = fmt.Fprintf(&b, "queue a job   %s curl -s %s/sim/jobs -d '{\"duration\": 60000000000, \"after_duration\": 3000000000}'\n", inside, GitLabURL)
	_, _ = fmt.Fprintf(&b, "what happened %s curl -s %s/sim/ledger\n", inside, GitLabURL)
	_, _ = fmt.Fprintf(&b, "provider      %s provider %s   (list, describe, prepare, check, create, delete, remains)\n", e2e, s.World.Name)
	_, _ = fmt.Fprintf(&b, "sluice.yaml   %s\n", config)
	_, _ = fmt.Fprintf(&b, "try           %s %s recreate lab/%s --config %s\n", inside, s.Program("sluice"), names[0], config)
	return b.String(), nil
}
