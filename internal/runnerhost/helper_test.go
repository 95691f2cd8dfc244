package runnerhost

import "gitlab.com/sluice-runners/sluice/internal/fleet"

const testBootID = "0f1e2d3c-0000-4000-8000-000000000001"

func testSettings() fleet.HostSettings {
	return fleet.HostSettings{
		User: "fedora", RunnerUser: "fedora",
		Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml",
	}
}
