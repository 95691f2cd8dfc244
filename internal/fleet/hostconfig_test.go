package fleet

import (
	"strings"
	"testing"
)

func TestARunnerWithAnotherConfigThanTheOneReadIsRefused(t *testing.T) {
	settings := testSettings
	settings.ConfigPath = "/etc/gitlab-runner/config.toml"
	for _, argv := range [][]string{
		{"/usr/bin/gitlab-runner", "run", "--config", "/srv/r/config.toml"},
		{"/usr/bin/gitlab-runner", "run", "--config=/srv/r/config.toml"},
		{"/usr/bin/gitlab-runner", "run", "-c", "/srv/r/config.toml"},
	} {
		f := goodHost()
		f.MainCommand = argv
		err := RefuseHost(testExpected.Ref, settings, f)
		if CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), "/srv/r/config.toml") || !strings.Contains(err.Error(), "host.config") {
			t.Errorf("%q: %v", argv, err)
		}
	}
	for _, argv := range [][]string{{"/usr/bin/gitlab-runner", "run"}, {"/usr/bin/gitlab-runner", "run", "--config", settings.ConfigPath}, nil} {
		f := goodHost()
		f.MainCommand = argv
		if err := RefuseHost(testExpected.Ref, settings, f); err != nil {
			t.Errorf("%q: %v", argv, err)
		}
	}
}
