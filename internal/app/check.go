package app

import (
	"errors"

	"gitlab.com/sluice-runners/sluice/internal/config"
)

// Check finds what [Open] would refuse of a configuration, everything at once:
// secrets that cannot be read, keys that are none, providers that cannot work.
// It connects nowhere and writes nothing. Errors: CodeInvalid.
func Check(c *config.Config) error {
	var problems []error
	secret := func(s *config.Secret) {
		if s != nil {
			_, err := s.Value()
			problems = append(problems, err)
		}
	}
	secret(c.GitLab.Token)
	secret(c.GitLab.WriteToken)
	for _, name := range c.Names() {
		f := c.Fleets[name]
		secret(f.Runner.Token)
		_, err := signer(f.Host.Key)
		problems = append(problems, err, execConfig(name, f).Validate())
	}
	_, err := webhookKeys(c)
	return errors.Join(append(problems, err)...)
}
