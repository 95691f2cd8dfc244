package config

import "gitlab.com/sluice-runners/sluice/internal/fleet"

// override applies the environment variables that the reference page names.
// Only single values outside of the fleets have one: a fleet's name cannot be
// told from a key in a variable's name.
func (c *Config) override(env func(string) (string, bool)) error {
	for name, target := range map[string]*string{
		"SLUICE_GITLAB_URL":    &c.GitLab.URL,
		"SLUICE_STORE_SQLITE":  &c.Store.SQLite,
		"SLUICE_SERVER_SOCKET": &c.Server.Socket,
		"SLUICE_SERVER_LISTEN": &c.Server.Listen,
		"SLUICE_LOG_LEVEL":     &c.Log.Level,
		"SLUICE_LOG_FORMAT":    &c.Log.Format,
	} {
		if value, ok := env(name); ok && value != "" {
			*target = value
		}
	}
	for name, c := range map[string]struct {
		value   string
		allowed []string
	}{
		"SLUICE_LOG_LEVEL":  {c.Log.Level, []string{"", "debug", "info", "warn", "error"}},
		"SLUICE_LOG_FORMAT": {c.Log.Format, []string{"", "text", "json"}},
	} {
		if !oneOf(c.value, c.allowed) {
			return fleet.Errorf(fleet.CodeInvalid, "$%s: %q is not known", name, c.value)
		}
	}
	return nil
}

func oneOf(value string, allowed []string) bool {
	for _, a := range allowed {
		if a == value {
			return true
		}
	}
	return false
}
