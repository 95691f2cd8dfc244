package main

import (
	"reflect"
	"testing"
)

func TestContainersGetTheNetworkAndVolumesOfTheirEntry(t *testing.T) {
	t.Parallel()
	config, err := parseConfig(`
concurrent = 1

[[runners]]
  name = "plain"

[[runners]]
  name = "open"
  [runners.docker]
    image = "not read"
    network_mode = "host"
    volumes = ["/opt/tool:/bin/tool:ro", "/data"]
  [runners.cache]
    network_mode = "none"
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{Name: "plain", Image: "localhost/job:latest", Network: "none"},
		{Name: "open", Image: "localhost/job:latest", Network: "host", Volumes: []string{"/opt/tool:/bin/tool:ro", "/data"}},
	}
	if !reflect.DeepEqual(config.Runners, want) {
		t.Errorf("%+v, want %+v", config.Runners, want)
	}
}

func TestUselessContainerSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no list":                   "[[runners]]\n[runners.docker]\nvolumes = \"/data\"\n",
		"no string":                 "[[runners]]\n[runners.docker]\nnetwork_mode = 1\n",
		"a table without its entry": "[runners.docker]\nnetwork_mode = \"host\"\n",
	} {
		if config, err := parseConfig(text); err == nil {
			t.Errorf("%s: read as %+v", name, config)
		}
	}
}
