package config

import "gitlab.com/sluice-runners/sluice/internal/fleet"

// registration finds what does not fit a fleet whose VMs have a runner entry
// each: an id or a token of an entry that they share, and no way to ask GitLab.
func (l *lint) registration(c *Config, name string) {
	r := c.Fleets[name].Runner
	if r.Registration != string(fleet.RegistrationIndividual) {
		return
	}
	at := func(key string) []string { return []string{"fleets", name, "runner", key} }
	if r.ID != 0 {
		l.add("is given, and registration is individual: each VM has a runner entry of its own", "leave it out: the id is read from [[runners]] in each VM's config.toml; or set registration: fleet", at("id")...)
	}
	if r.Token != nil {
		l.add("is given, and registration is individual: no token is shared", "leave it out: the create script registers each VM's own entry; or set registration: fleet", at("token")...)
	}
	if c.GitLab.Token == nil {
		l.add("is individual, and gitlab.token is missing", "give gitlab.token: without it nothing is known of the VMs' entries, and no drain could be proven", at("registration")...)
	}
}
