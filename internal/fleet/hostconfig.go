package fleet

import "strings"

// refuseConfig refuses a host whose runner uses another config.toml than the
// one that is read: identity and entries would be somebody else's, and GitLab
// would be asked about a system_id that runs nothing.
func refuseConfig(vm Ref, s HostSettings, f *HostFacts) *Refusal {
	if !isRunner(f.MainCommand) {
		return nil // refused for that, or nothing runs; a shell's -c names no config.toml
	}
	used := configOf(f.MainCommand)
	if used == "" || s.ConfigPath == "" || used == s.ConfigPath {
		return nil
	}
	return refuse(FaultOtherConfig, Errorf(CodeInvalid, "%s: the runner uses %s, but host.config says %s: its identity would be read from the wrong place", vm, used, s.ConfigPath).
		WithHint("set host.config of the fleet to %s, in deploy/sudoers/sluice too", used))
}

// configOf finds the config.toml that a runner was told to use; "" = none, or
// not by its whole path.
func configOf(argv []string) string {
	for i, arg := range argv {
		value := ""
		switch arg {
		case "--config", "-config", "-c":
			if i+1 < len(argv) {
				value = argv[i+1]
			}
		default:
			if given, ok := strings.CutPrefix(arg, "--config="); ok {
				value = given
			}
		}
		if strings.HasPrefix(value, "/") {
			return value
		}
	}
	return ""
}
