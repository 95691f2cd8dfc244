package stage

import (
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// Config is what a generated sluice.yaml says. Its secrets and the journal lie beside it,
// so that each config directory is a controller of its own.
type Config struct {
	Fleet       string
	VMs         []string
	Cap         string // a duration; "" = 10m
	OnOverrun   string // "" = proceed
	Drain       string // further settings of the drain, as YAML: "unreachable: proceed"
	User        string // the login user; "" = fedora
	NoGitLab    bool   // without a GitLab token
	NoRunner    bool   // without a runner token
	GitLabURL   string // "" = the world's
	Unavailable int    // max_unavailable; 0 = 1
	Door        *Door  // nil = the socket only
}

// Door lets the jobs of a GitLab's projects in.
type Door struct {
	Listen   string // IP:port in the world's network
	Issuer   string // who signs their id_tokens
	Audience string
	Project  string // path of the project whose jobs may recreate the fleet's VMs
}

var configTemplate = template.Must(template.New("sluice.yaml").Parse(`gitlab:
  url: {{.GitLabURL}}
{{- if not .NoGitLab}}
  token: {file: {{.Dir}}/gitlab-token}
{{- end}}

fleets:
  {{.Fleet}}:
    runner:
      id: {{.RunnerID}}
{{- if not .NoRunner}}
      token: {file: {{.Dir}}/runner-token}
{{- end}}
    vms: {names: [{{.Names}}]}
    provider:
      exec:
        list: [{{.Program}}, provider, {{.World}}]
        describe: [{{.Program}}, provider, {{.World}}]
        prepare: [{{.Program}}, provider, {{.World}}]
        check: [{{.Program}}, provider, {{.World}}]
        create: [{{.Program}}, provider, {{.World}}]
        delete: [{{.Program}}, provider, {{.World}}]
        remains: [{{.Program}}, provider, {{.World}}]
    host:
      user: {{.User}}
      runner_user: fedora
      key: {file: {{.Key}}}
      host_keys: provider
    drain: {cap: {{.Cap}}, on_overrun: {{.OnOverrun}}{{with .Drain}}, {{.}}{{end}}}
    rollout: {max_unavailable: {{.Unavailable}}, gate: {online: 2m}}

store: {sqlite: {{.Dir}}/sluice.db}
{{- with .Door}}

server:
  listen: {{.Listen}}
  oidc: [{issuer: "{{.Issuer}}", audience: "{{.Audience}}"}]
access:
  - {claims: {project_path: {{.Project}}}, allow: [recreate], fleets: [{{$.Fleet}}]}
{{- end}}
`))

// WriteConfig makes the directory conf/NAME with a sluice.yaml and what belongs to it,
// and yields the file's path.
func (s *Stage) WriteConfig(name string, c Config) (string, error) {
	dir := s.Path("conf", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	set := s.World.Settings
	for file, content := range map[string]string{
		"gitlab-token": set.GitLabToken, "runner-token": set.RunnerToken,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	err := configTemplate.Execute(&text, struct {
		Config
		Dir, Names, Program, World, Key string
		RunnerID                        int64
	}{c.withDefaults(), dir, strings.Join(c.VMs, ", "), set.Program, s.World.Name, s.Path("id_ed25519"), set.RunnerID})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sluice.yaml")
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}

func (c Config) withDefaults() Config {
	for field, value := range map[*string]string{
		&c.Cap: "10m", &c.OnOverrun: "proceed", &c.User: "fedora", &c.GitLabURL: GitLabURL,
	} {
		if *field == "" {
			*field = value
		}
	}
	if c.Unavailable == 0 {
		c.Unavailable = 1
	}
	return c
}
